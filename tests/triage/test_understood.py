"""What was understood of a report, and what is missing, in words for a person."""

import re

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import Concern, Cupy, Driver, Gpu, Place, Pytorch, Symptom, System
from gpudoctor.readers.report import read_texts
from gpudoctor.triage.features import features
from gpudoctor.triage.understood import NO_FAULT, missing, understood


def facts(text: str) -> Facts:
    return Facts(read_texts([("report.txt", text.encode())]))


def test_system_gpu_driver_and_complaint_are_understood() -> None:
    text = "Windows 11, RTX 3060\nRuntimeError: CUDA error: no CUDA-capable device is detected\n"
    found = facts(text).call(understood)
    assert any("Windows" in line for line in found)
    assert any("3060" in line for line in found)
    assert any("no CUDA-capable device" in line for line in found)


@pytest.mark.parametrize(
    "text", ["PyTorch version: 2.9.0+cu128\nOS: Ubuntu 22.04\n", "ollama only uses CPU, RTX 3060", ""]
)
def test_no_internal_name_is_shown(text: str) -> None:
    lines = (*facts(text).call(understood), *facts(text).call(missing))
    assert not [line for line in lines if re.search(r"\b(?:torch_runtime|driver|system|devices)\.\w+|None\b", line)]


def test_what_the_report_shows_is_not_missing() -> None:
    assert "the PyTorch version" in facts("torch does not see my GPU, Python 3.11").call(missing)
    shown = facts("PyTorch version: 2.9.0+cu128\nOS: Ubuntu 22.04.3 LTS (x86_64)\nNvidia driver version: 580.95.05\n")
    assert not {"the PyTorch version", "the operating system", "the driver version"} & set(shown.call(missing))


def test_a_program_that_uses_the_gpu_is_understood_whatever_else_fails() -> None:
    known = facts("GPU available: True (cuda), used: True\nKeyError: 'mask'\n")
    assert 'a program uses the GPU: "GPU available: True (cuda), used: True"' in known.call(understood)
    assert "whether a program computes on the GPU" not in known.call(missing)
    seen = facts("PyTorch version: 2.9.0+cu128\nIs CUDA available: True\n")
    assert not any("uses the GPU" in line for line in seen.call(understood))
    assert "whether a program computes on the GPU" in seen.call(missing)


@pytest.mark.parametrize(
    ("text", "also_missing"),
    [
        pytest.param(
            "OS: Ubuntu 22.04.3 LTS (x86_64)\n", {"the driver version", "which GPU the driver sees"}, id="Linux"
        ),
        pytest.param("OS: macOS 14.5 (arm64)\n", set(), id="a Mac has no NVIDIA driver"),
        pytest.param(
            "", {"the operating system", "the driver version", "which GPU the driver sees"}, id="an unknown system"
        ),
    ],
)
def test_what_is_missing(text: str, also_missing: set[str]) -> None:
    assert set(facts(text).call(missing)) == {"whether a program computes on the GPU", *also_missing}


def test_features_name_the_program_and_the_gpu() -> None:
    found: frozenset[str] = facts("ollama only uses CPU, RTX 3060").call(features)
    assert {"about:ollama", "gpu:nvidia"} <= found
    assert "live" not in found


def test_frameworks_are_understood_by_their_versions() -> None:
    assert "PyTorch 2.9.0+cu128" in facts("PyTorch version: 2.9.0+cu128\n").call(understood)
    assert not [line for line in facts("RTX 3060\n").call(understood) if "PyTorch" in line or "CuPy" in line]


@pytest.mark.parametrize(
    ("kind", "complaints"),
    [("asks-failure", 1), ("asks-words", 0), ("asks-but", 0), ("cuda-out-of-memory", 1), ("of-no-table", 1)],
)
def test_words_of_trouble_are_named_and_others_not(kind: str, complaints: int) -> None:
    symptoms = (Symptom(kind=kind, text="as written"),)
    found = understood(System(), Place(), Gpu(), Driver(), Pytorch(), Cupy(), symptoms, Concern())
    assert sum("as written" in line for line in found) == complaints


def test_that_nothing_fails_now_is_understood_first() -> None:
    none_now = Concern(no_fault=True, share=0.95)
    assert facts("RTX 3060").call(understood, concern=none_now)[0] == NO_FAULT
    assert NO_FAULT not in facts("RTX 3060").call(understood, concern=Concern(share=0.2))
    assert "whether something fails now" in facts("RTX 3060").call(missing, concern=none_now)
    assert "whether something fails now" not in facts("RTX 3060").call(missing, concern=Concern(share=0.2))
