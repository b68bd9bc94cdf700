"""Fixtures of several test folders."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import pytest

from tests import stand_ins

# Without hypothesis the other tests still run: `pytest -m gpu` needs nothing but pytest.
WITH_HYPOTHESIS = [
    "configuration/test_options.py",
    "configuration/test_requirements.py",
    "containers/rebuild/test_engine_build.py",
    "parsers/test_mutated_texts.py",
    "parsers/test_nvidia_smi_xml.py",
    "readers/test_hostile.py",
    "readers/test_messages.py",
    "reporters/test_report_properties.py",
    "tuning/test_memory.py",
]
collect_ignore = [] if find_spec("hypothesis") else WITH_HYPOTHESIS
if find_spec("hypothesis"):
    from hypothesis import HealthCheck, settings

    # No test depends on an idle machine.
    settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy")


def pytest_configure() -> None:
    """Prepare what the programs that tests start inherit.

    They must hear an interrupt: what a shell starts in the background ignores SIGINT. And they keep compiled modules:
    without those, each of some hundred imports of torch takes four seconds more. They compute in one thread: threads
    that wait for each other would take the processors from the tests beside.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.dont_write_bytecode = False


def pytest_collection_finish() -> None:
    """Keep the garbage collector off what lives until the end: libraries and thousands of collected tests."""
    if "torch" in sys.modules:
        import_module("torch._dynamo")  # 800 modules, which the first optimizer imports
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the slow tests begin at once, and side by side.

    xdist gives each process a contiguous part. The first of three begins with the tests that have the engine for
    themselves, the second with the others that use it, the third with those in environments of their own.
    """
    slow: list[list[pytest.Item]] = [[], [], []]
    short: list[pytest.Item] = []
    for item in items:
        if "engine_alone" in getattr(item, "fixturenames", ()):
            slow[0].append(item)
        elif item.get_closest_marker("engine"):
            slow[1].append(item)
        elif item.get_closest_marker("environments"):
            slow[2].append(item)
        else:
            short.append(item)
    part = len(items) // len(slow)
    items[:] = []
    for first in slow:
        items += [*first, *short[: max(0, part - len(first))]]
        short = short[max(0, part - len(first)) :]
    items += short


class Install(Protocol):
    """`stand_ins.install`, with the folder of compiled libraries filled in."""

    def __call__(
        self,
        folder: Path,
        *,
        nvml: stand_ins.Nvml | stand_ins.Broken | None = None,
        cuda: stand_ins.Cuda | stand_ins.Broken | None = None,
        nvidia_smi: stand_ins.NvidiaSmi | None = None,
    ) -> dict[str, str]:
        """Put the stand-ins below `folder`; return the environment variables to add."""


@pytest.fixture
def engine_alone() -> Iterator[None]:
    """Let one test at a time rely on the engine's build cache, or prune it, also where tests run side by side."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with (Path(tempfile.gettempdir()) / "gpudoctor-tests-engine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def driver_stand_in(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Return `stand_ins.install`, which compiles each library once a session."""
    if sys.platform != "linux" or stand_ins.COMPILER is None:
        pytest.skip("stand-ins for the driver's libraries need Linux and a C compiler (gcc or cc)")
    return partial(stand_ins.install, build_folder=tmp_path_factory.mktemp("stand-ins"))
