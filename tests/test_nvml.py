"""The one way to NVML, through the real pynvml and a stand-in for libnvidia-ml.so.1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.nvml import is_own
from tests.conftest import Install
from tests.stand_ins import RTX_4090, Broken, Nvml

PROGRAM = "import sys; from gpudoctor.nvml import open_nvml; gate, why = open_nvml(sys.argv[1]); print(bool(gate), why)"
WHOLE = Nvml(devices=(RTX_4090,))


@pytest.mark.parametrize(
    ("nvml", "pynvml", "answer"),
    [
        pytest.param(WHOLE, None, "True ", id="it answers"),
        pytest.param(
            Broken(), None, "False the NVIDIA driver's library libnvidia-ml.so.1 cannot be loaded", id="library"
        ),
        pytest.param(WHOLE, "raise OSError('no')", "the module pynvml of nvidia-ml-py cannot be imported", id="module"),
        pytest.param(WHOLE, "x = 1", "False the module pynvml is not that of nvidia-ml-py", id="another module"),
        pytest.param(
            WHOLE,
            "nvmlInit = 1",
            "False the module pynvml is not that of nvidia-ml-py",
            id="another module with a start",
        ),
        pytest.param(
            Nvml(fail={"nvmlInit": 18}), None, "False NVML does not start: Driver/library", id="it does not start"
        ),
    ],
)
def test_how_it_opens(
    nvml: Nvml | Broken, pynvml: str | None, answer: str, driver_stand_in: Install, tmp_path: Path
) -> None:
    pytest.importorskip("pynvml")
    environ = {**os.environ, **driver_stand_in(tmp_path, nvml=nvml)}
    root = str(Path(__file__).parents[1])
    (tmp_path / "other").mkdir()
    if pynvml is not None:
        (tmp_path / "other" / "pynvml.py").write_text(pynvml)
    environ["PYTHONPATH"] = os.pathsep.join((str(tmp_path / "other"), root))
    run = subprocess.run([sys.executable, "-c", PROGRAM, ""], env=environ, capture_output=True, text=True, check=True)
    assert answer in run.stdout


def test_a_process_is_own_by_itself_or_by_who_started_it() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            assert is_own(child.pid, {child.pid})
            assert is_own(child.pid, {os.getpid()})
            assert not is_own(os.getpid(), {child.pid})
            assert not is_own(child.pid, {1_000_000_000})
        finally:
            child.kill()
