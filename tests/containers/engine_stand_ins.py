"""Stand-ins for an engine that only a ping is asked of: on a socket of this machine, or by TCP with TLS or without."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OPENSSL_SECONDS = 20
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")
NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


def ping(status: str = "200 OK", body: str = "OK", **headers: str) -> bytes:
    """Return an answer to a ping. headers: with "_" for "-"."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines, "", body)).encode()


DOCKER = ping(Api_Version="1.41")
PODMAN = ping(Api_Version="1.41", Libpod_Api_Version="5.4.2")


@contextmanager
def on_socket(path: Path, answer: bytes | None) -> Iterator[str]:
    """Give the address of a socket where every question gets `answer`; for None, none ever."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        with _answering(server, answer, None):
            yield f"unix://{path}"


@contextmanager
def on_tcp(answer: bytes, tls: ssl.SSLContext | None) -> Iterator[str]:
    """Give the address of a port of this machine where every question gets `answer`."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        with _answering(server, answer, tls):
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def _answering(server: socket.socket, answer: bytes | None, tls: ssl.SSLContext | None) -> Iterator[None]:
    server.listen()
    waiting: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):  # closed at the end
            while True:
                client = server.accept()[0]
                if answer is None:
                    waiting.append(client)
                    continue
                with suppress(OSError), client if tls is None else tls.wrap_socket(client, server_side=True) as stream:
                    stream.recv(1 << 16)
                    stream.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # wakes accept
        server.close()
        thread.join()
        for client in waiting:
            client.close()


def make_authority(folder: Path) -> Path:
    """Make a CA, and a certificate signed by it for 127.0.0.1 and for clients: ca.pem, cert.pem and key.pem.

    Raises:
        OSError: there is no openssl.
        subprocess.SubprocessError: it fails.
    """
    folder.mkdir()
    _openssl(folder, "req", "-x509", *KEY, "-subj", "/CN=ca", "-keyout", "ca-key.pem", "-out", "ca.pem")
    _openssl(folder, "req", *KEY, "-subj", "/CN=gpudoctor", "-keyout", "key.pem", "-out", "request.pem")
    (folder / "names").write_text(NAMES)
    signed_by = ("-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-extfile", "names")
    _openssl(folder, "x509", "-req", "-in", "request.pem", *signed_by, "-out", "cert.pem")
    return folder


def server_tls(folder: Path) -> ssl.SSLContext:
    """Return what a server needs that, as dockerd with --tlsverify, takes clients of its own CA only."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.pem"))
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=OPENSSL_SECONDS)
