"""Metrics over HTTP while a program is watched."""

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

from gpudoctor.errors import UsageError

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class MetricsServer:
    """Listens from now on, and answers GET /metrics from `serve` on. Port 0 takes a free one: see `address`.

    Raises:
        UsageError: nothing can listen there.
    """

    def __init__(self, host: str, port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        try:
            if not host:  # it would mean every address
                raise OSError("no address")
            self._server = _Server(host, port)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"--metrics-port: cannot listen on {shown}:{port}: {reason}") from None
        self.address = f"http://{shown}:{self._server.server_address[1]}/metrics"
        self._thread: threading.Thread | None = None

    def serve(self, render: Callable[[], str]) -> None:
        """Answer with what `render` returns."""
        self._server.render = render
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop listening."""
        if self._thread is not None:
            self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingMixIn, TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    render: Callable[[], str]

    def __init__(self, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def handle_error(self, *_: Any) -> None:
        """Print nothing about a client that went away: the terminal is the program's."""


class _Handler(BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404)
            return
        assert isinstance(self.server, _Server)
        body = self.server.render().encode()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing: the terminal is the program's."""
