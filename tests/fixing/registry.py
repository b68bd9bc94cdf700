"""An index of packages behind HTTPS: a proxy on this machine that answers in every host's name, with its own CA."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote, unquote

import pytest

from tests.fixing.beds import ROOT

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_LEAF = """\
basicConstraints=CA:FALSE
keyUsage=digitalSignature
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
"""
DEFAULT = "https://index.example/simple/"
"""The index of everything. PyTorch's indexes have, under their own addresses, the builds of their variant."""


@contextmanager
def registry(index: Path, folder: Path) -> Iterator[Mapping[str, str]]:
    """Serve the wheels of a folder, and give the variables by which pip, uv and poetry find the server."""
    folder.mkdir()
    uses = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # Python 3.13 and newer insist on them
    made = ("-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=tests", "-days", "2")
    _openssl(folder, "req", "-x509", *_KEY, *uses, *made)
    command = [sys.executable, "-m", "tests.fixing.registry", str(index), str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    proxy, authority = f"http://127.0.0.1:{int(process.stdout.readline())}", str(folder / "ca.pem")
    trusted = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"), authority)
    try:
        yield {
            **dict.fromkeys(("HTTPS_PROXY", "https_proxy", "ALL_PROXY"), proxy),
            **trusted,
            "NO_PROXY": "",
            "no_proxy": "",
            "UV_DEFAULT_INDEX": DEFAULT,
            "UV_OFFLINE": "0",
            "UV_FIND_LINKS": "",
            "PIP_INDEX_URL": DEFAULT,
            "PIP_NO_INDEX": "",
            "PIP_FIND_LINKS": "",
        }
    finally:
        process.kill()
        process.communicate()


def _openssl(folder: Path, *arguments: str) -> None:
    try:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")


_one_at_a_time = Lock()


def _certificate(folder: Path, host: str) -> tuple[Path, Path]:
    key, certificate = folder / f"{host}.key", folder / f"{host}.pem"
    with _one_at_a_time:
        if certificate.exists():
            return key, certificate
        _openssl(folder, "req", *_KEY, "-keyout", key.name, "-out", f"{host}.csr", "-subj", f"/CN={host}")
        (folder / f"{host}.ext").write_text(f"subjectAltName=DNS:{host}\n{_LEAF}")
        made = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{host}.ext")
        _openssl(folder, "x509", "-req", "-in", f"{host}.csr", *made, "-out", certificate.name)
    return key, certificate


def _handler(index: Path, folder: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_CONNECT(self) -> None:
            key, certificate = _certificate(folder, self.path.partition(":")[0])
            self.send_response(200)
            self.end_headers()
            self.close_connection = False  # poetry asks by HTTP/1.0
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self.connection: Any = context.wrap_socket(self.connection, server_side=True)
            self.rfile = self.connection.makefile("rb")
            self.wfile = self.connection.makefile("wb")

        def do_GET(self) -> None:
            parts = [unquote(part) for part in self.path.split("?")[0].split("/") if part]
            if parts[-1].endswith(".whl"):
                self._answer("application/octet-stream", (index / Path(parts[-1]).name).read_bytes())
                return
            wheels = sorted(index.glob(f"{parts[-1].replace('-', '_')}-*.whl"))
            if "whl" in parts:
                wheels = [wheel for wheel in wheels if f"+{parts[-2]}-" in wheel.name]
            links = "".join(f'<a href="{quote(wheel.name)}">{wheel.name}</a>\n' for wheel in wheels)
            page = f"<!DOCTYPE html><html><body>{links}</body></html>"
            self._answer("text/html", page.encode(), 200 if wheels else 404)

        do_HEAD = do_GET  # noqa: N815 - named by the library

        def _answer(self, kind: str, data: bytes, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)
            self.wfile.flush()

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    return Handler


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(Path(sys.argv[1]), Path(sys.argv[2])))
    print(server.server_port, flush=True)
    server.serve_forever()
