"""The one way to NVML, through the real pynvml and a stand-in for libnvidia-ml.so.1."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor import nvml as module
from gpudoctor.nvml import Gate, is_own
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
        pytest.param(WHOLE, "x = 1", "False the module pynvml is not from nvidia-ml-py", id="another module"),
        pytest.param(
            WHOLE,
            "nvmlInit = 1",
            "False the module pynvml is not from nvidia-ml-py",
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


class NVMLError(Exception):
    value = 13


class Missing(NVMLError):
    """What pynvml raises where the library has no such function."""

    value = 13


def raising(error: Exception) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise error

    return function


def undecodable(*_: Any) -> Any:
    return b"Tesla \xff".decode()


def gate(library: Any = None, **functions: Any) -> Gate:
    text = {12: b"Invalid Argument"}
    return Gate(SimpleNamespace(NVMLError=NVMLError, nvmlErrorString=lambda code: text[code], **functions), library)


OTHER = NVMLError("in use")
OTHER.value = 12
ODD = NVMLError("in its own words")
ODD.value = 99


@pytest.mark.parametrize(
    ("functions", "answer"),
    [
        pytest.param({"a": lambda: b"GPU \xff"}, {"value": "GPU \ufffd"}, id="bytes"),
        pytest.param({"a": undecodable}, {"value": "Tesla \ufffd"}, id="a name that pynvml cannot decode"),
        pytest.param({"a": lambda: ((1, None), [2.5])}, {"value": [[1, None], [2.5]]}, id="lists"),
        pytest.param({"a": lambda: SimpleNamespace(used=b"1")}, {"value": {"used": "1"}}, id="an object"),
        pytest.param({"b": lambda: 2}, {"value": 2}, id="the second, where the first is missing"),
        pytest.param({"a": raising(Missing()), "b": lambda: 2}, {"value": 2}, id="missing in the library"),
        pytest.param({}, {"error": 13, "text": "Function Not Found"}, id="neither"),
        pytest.param({"a": raising(OTHER), "b": lambda: 2}, {"error": 12, "text": "Invalid Argument"}, id="an error"),
        pytest.param({"a": raising(ODD)}, {"error": 99, "text": "in its own words"}, id="an error without text"),
        pytest.param({"a": raising(ValueError("x"))}, {"error": None, "text": "ValueError: x"}, id="another exception"),
    ],
)
def test_an_answer_or_the_code_of_its_error(functions: dict[str, Any], answer: dict[str, Any]) -> None:
    assert gate(**functions).ask("a b") == answer


@pytest.mark.parametrize(
    ("count", "answer"),
    [
        (module.MOST_ENTRIES, {"value": [7]}),
        (module.MOST_ENTRIES + 1, {"error": None, "text": f"b counts {module.MOST_ENTRIES + 1} entries"}),
    ],
)
def test_a_list_is_asked_for_only_if_its_length_is_no_garbage(count: int, answer: dict[str, Any]) -> None:
    def counting(device: str, pointer: Any, none: None) -> None:
        ctypes.cast(pointer, ctypes.POINTER(ctypes.c_uint))[0] = count

    assert gate(SimpleNamespace(b=counting), b=lambda device: [7]).ask_list("a b", "0") == answer
    assert gate(SimpleNamespace()).ask_list("a b", "0") == {"error": 13, "text": "Function Not Found"}


@pytest.mark.parametrize("path", [None, "notes.txt"])
def test_without_a_module_to_load_its_own_error_counts(monkeypatch: pytest.MonkeyPatch, path: str | None) -> None:
    monkeypatch.setattr(module, "import_module", raising(SyntaxError("broken")))
    with pytest.raises(SyntaxError, match="broken"):
        module._load_module(path)


def test_a_broken_module_is_replaced_by_the_one_at_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """pynvml looks itself up in sys.modules, from nvidia-ml-py 13 on while it is imported."""
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    (tmp_path / "pynvml.py").write_text("import sys\nsys.modules[__name__].x = 1\n")
    (tmp_path / "worse.py").write_text("raise SyntaxError('worse')")
    monkeypatch.setattr(module, "import_module", raising(SyntaxError("broken")))
    with pytest.raises(SyntaxError, match="worse"):
        module._load_module(str(tmp_path / "worse.py"))
    assert "pynvml" not in sys.modules
    assert module._load_module(str(tmp_path / "pynvml.py")).x == 1


def test_an_error_without_a_code_keeps_its_text() -> None:
    other = SimpleNamespace(NVMLError=LookupError, nvmlErrorString={}.__getitem__, a=raising(LookupError("odd")))
    assert Gate(other, None).ask("a") == {"error": -1, "text": "odd"}


@pytest.mark.parametrize(("bit", "name"), module.EVENT_REASONS.items())
def test_each_reason_for_a_lower_clock_has_the_bit_of_nvml(bit: int, name: str) -> None:
    pynvml = pytest.importorskip("pynvml")
    words = name.title().replace("_", "")
    assert getattr(pynvml, f"nvmlClocksThrottleReason{words}") == bit
    assert sum(module.EVENT_REASONS) == pynvml.nvmlClocksThrottleReasonAll


@pytest.mark.parametrize(
    ("stats", "own"),
    [
        ({7: "7 (a) S 5"}, True),
        ({7: "7 (a b) c) S 6 1 2", 6: "6 (x) S 5 1"}, True),
        ({7: "7 (a) S 6", 6: "6 (x) S 1"}, False),
        ({7: "7 (a) S"}, False),
        ({7: "7 (a) S five"}, False),
        ({}, False),
    ],
)
def test_who_started_a_process(stats: dict[int, str], own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_start", lambda path: stats.get(int(path.split("/")[2]), ""))
    assert is_own(7, {5}) is own
