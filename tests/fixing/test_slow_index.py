"""An index that is too slow, a page that never ends and an installer that hangs are ended, and nothing is changed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpudoctor.fixing.actions import Action
from gpudoctor.fixing.environment import read_inventory
from gpudoctor.fixing.installers import Installer, Pip, Uv
from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.resolution import Pin, Resolution
from tests.fixing.beds import UV, Bed
from tests.fixing.test_transaction import CPU, change
from tests.wheels import make_wheel

pytestmark = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux tells what a process moves")
IDLE_SECONDS = 6.0
ACTION = Action(requirements=("slow==1.0",))
PIN = Resolution(pins=(Pin(name="slow", version="1.0"),), removes=(), changes=())
WITH_UV = pytest.mark.skipif(UV is None, reason="uv is not installed")

Answer = Callable[[str], Iterator[bytes]]
"""The parts of an answer to a path. It may take its time."""


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], Mapping[str, str]]]:
    """Return a function that starts an index, and gives the variables by which pip and uv find it."""
    servers = []

    def start(answer: Answer) -> Mapping[str, str]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/zip" if self.path.endswith(".whl") else "text/html")
                self.end_headers()
                with suppress(OSError):
                    for part in answer(self.path):
                        self.wfile.write(part)

            def log_message(self, *_arguments: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://alice:secret@127.0.0.1:{server.server_port}/simple"
        nothing = dict.fromkeys(("PIP_NO_INDEX", "PIP_FIND_LINKS", "UV_FIND_LINKS"), "")
        direct = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1")
        return {"PIP_INDEX_URL": address, "UV_DEFAULT_INDEX": address, "UV_OFFLINE": "0", **nothing, **direct}

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def a_byte_now_and_then(_path: str) -> Iterator[bytes]:
    while True:
        yield b"\n"
        time.sleep(0.3)


def a_page_without_end(_path: str) -> Iterator[bytes]:
    while True:
        yield b'<a href="other-1.0.whl">other-1.0.whl</a>\n' * 1000
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("installer", "answer"),
    [
        pytest.param(Pip, a_byte_now_and_then, id="pip, slow"),
        pytest.param(Pip, a_page_without_end, id="pip, endless"),
        pytest.param(Uv, a_page_without_end, id="uv, endless", marks=WITH_UV),
    ],
)
def test_an_index_that_does_not_end(
    bed: Bed,
    serve: Callable[[Answer], Mapping[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    installer: type[Installer],
    answer: Answer,
) -> None:
    monkeypatch.setattr("gpudoctor.fixing.programs.IDLE_SECONDS", IDLE_SECONDS)
    index = serve(answer)
    env = bed.environment("tiny", installer=installer.name)
    before, began = env.state(), time.monotonic()
    with pytest.raises(Refused) as found:
        installer(read_inventory(env.python), {**bed.variables, **index}).resolve([ACTION])
    address = index["PIP_INDEX_URL"].replace("alice:secret", "***")
    assert f"{installer.name} made no progress for 0.1 minutes with the index {address}: check " in str(found.value)
    assert time.monotonic() < began + 5 * IDLE_SECONDS
    assert env.state() == before


@pytest.mark.parametrize("installer", [Pip, pytest.param(Uv, marks=WITH_UV)])
def test_a_slow_download_goes_on(
    bed: Bed,
    serve: Callable[[Answer], Mapping[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    installer: type[Installer],
) -> None:
    wheel = make_wheel(bed.folder, "slow", "1.0", {"slow.py": os.urandom(8 << 20)}).read_bytes()

    def answer(path: str) -> Iterator[bytes]:
        if not path.endswith(".whl"):
            yield b'<a href="/slow-1.0-py3-none-any.whl">slow-1.0-py3-none-any.whl</a>\n'
            return
        for at in range(0, len(wheel), 1 << 20):
            yield wheel[at : at + (1 << 20)]
            time.sleep(1.0)

    env, folder = bed.environment(installer=installer.name), bed.folder / "fetched"
    folder.mkdir()
    fetches = installer(read_inventory(env.python), {**bed.variables, **serve(answer)})
    monkeypatch.setattr("gpudoctor.fixing.programs.IDLE_SECONDS", IDLE_SECONDS)
    began = time.monotonic()
    fetches.fetch(PIN, folder)
    assert time.monotonic() > began + IDLE_SECONDS
    assert [*folder.glob("slow*")]


def test_an_installer_that_hangs_in_the_middle_of_the_change_is_undone(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = bed.environment(*CPU)
    before = env.state()

    class Hangs(Pip):
        def _pip(self, *arguments: str) -> list[str]:
            if "--no-index" not in arguments:
                return super()._pip(*arguments)
            monkeypatch.setattr("gpudoctor.fixing.programs.IDLE_SECONDS", 1.0)
            code = "import shutil, sys, time; shutil.rmtree(sys.argv[1]); time.sleep(600)"
            return [env.python, "-c", code, str(env.packages / "torch"), *arguments]

    env = replace(env, bed=replace(bed, variables={**bed.variables, "PYTHONDONTWRITEBYTECODE": "1"}))
    assert "made no progress for 0.017 minutes and was ended" in change(env, Hangs)
    assert env.state() == before
