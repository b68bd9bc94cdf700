"""Metrics over HTTP, on the loopback address."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.watching.metrics import CONTENT_TYPE, MetricsServer


def test_what_is_served() -> None:
    server = MetricsServer("127.0.0.1", 0, lambda: "# EOF\n")
    try:
        assert server.address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(server.address, timeout=10) as answer:
            assert (answer.headers["Content-Type"], answer.read()) == (CONTENT_TYPE, b"# EOF\n")
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(server.address.replace("/metrics", "/"), timeout=10)
        refused.value.close()
        with pytest.raises(UsageError, match="cannot listen on 127.0.0.1"):
            MetricsServer("127.0.0.1", int(server.address.split(":")[2].split("/")[0]), str)
    finally:
        server.end()
    with pytest.raises(OSError):  # noqa: PT011
        urllib.request.urlopen(server.address, timeout=10)
