"""Metrics over HTTP, on the loopback address."""

from __future__ import annotations

import socket
import struct
import time
import urllib.error
import urllib.request

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.watching.metrics import CONTENT_TYPE, MetricsServer


def test_what_is_served() -> None:
    server = MetricsServer("127.0.0.1", 0)
    try:
        server.serve(lambda: "# EOF\n")
        assert server.address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(server.address, timeout=10) as answer:
            assert (answer.headers["Content-Type"], answer.read()) == (CONTENT_TYPE, b"# EOF\n")
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(server.address.replace("/metrics", "/"), timeout=10)
        refused.value.close()
        with pytest.raises(UsageError, match="cannot listen on 127.0.0.1"):
            MetricsServer("127.0.0.1", int(server.address.split(":")[2].split("/")[0]))
    finally:
        server.end()
    with pytest.raises(OSError):  # noqa: PT011
        urllib.request.urlopen(server.address, timeout=10)


def test_a_server_that_never_answered_ends() -> None:
    MetricsServer("127.0.0.1", 0).end()


def test_no_address_is_not_every_address() -> None:
    with pytest.raises(UsageError, match="no address"):
        MetricsServer("", 0)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_ipv6() -> None:
    try:
        server = MetricsServer("::1", 0)
    except UsageError as error:  # the system may have none
        assert "cannot listen on [::1]:0" in str(error)  # noqa: PT017
        return
    try:
        server.serve(lambda: "# EOF\n")
        assert server.address.startswith("http://[::1]:")
        with urllib.request.urlopen(server.address, timeout=10) as answer:
            assert answer.read() == b"# EOF\n"
    finally:
        server.end()


def test_clients_that_go_away_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    server = MetricsServer("127.0.0.1", 0)
    try:
        server.serve(lambda: "x" * 10_000_000)
        port = int(server.address.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            client.recv(1)
        time.sleep(0.5)
    finally:
        server.end()
    assert capfd.readouterr().err == ""
