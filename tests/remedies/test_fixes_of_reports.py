"""The fixes of pasted reports are for the machine that the report is of."""

import re

import pytest

from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Finding, Severity
from gpudoctor.readers.report import read_texts

CPU_BUILD = "AssertionError: Torch not compiled with CUDA enabled\nRTX 3060\n"


def first(text: str) -> Finding | None:
    """Return the first finding that is more than advice."""
    report = run_checks(load_checks(), read_texts([("report.txt", text.encode())]))
    return next((finding for finding in report.findings if finding.severity is not Severity.INFO), None)


def commands_of(text: str) -> list[str]:
    """Return the commands of the first remedy of the first finding."""
    finding = first(text)
    assert finding is not None
    return list(finding.remedies[0].commands)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CPU_BUILD + "Ubuntu 22.04, driver 550.54", id="nothing listed"),
        pytest.param(CPU_BUILD + "Windows 11", id="Windows"),
        pytest.param(CPU_BUILD + "pip list\ntorch 2.3.1+cpu\ntorchvision 0.18.1+cpu", id="one listed"),
        pytest.param(
            "RTX 5070 Ti, torch 2.5.1+cu121: no kernel image is available for execution on the device", id="new GPU"
        ),
    ],
)
def test_torch_comes_with_its_companions(text: str) -> None:
    commands = commands_of(text)
    assert "torchvision==" in commands[0]
    assert any("torchaudio==" in command for command in commands)


def test_conda_brings_the_companions_too() -> None:
    text = "conda list\npytorch 2.3.1 py3.11_cpu_0 pytorch\n" + CPU_BUILD
    assert any(
        "torchvision torchaudio" in command for command in commands_of(text) if command.startswith("conda install")
    )


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        pytest.param(
            "I installed cupy-cuda11x, nvidia-smi says CUDA Version: 12.4\nImportError: libnvrtc.so.11.2: cannot open "
            "shared object file: No such file or directory",
            "cupy-cuda11x",
            id="no list",
        ),
        pytest.param(
            "CuPy failed to load libnvrtc.so.11.2: OSError: libnvrtc.so.11.2: cannot open", "cupy ", id="no name"
        ),
    ],
)
def test_an_old_cupy_goes_first(text: str, removed: str) -> None:
    remove, install, *_ = commands_of(text)
    assert re.search(r"pip uninstall -y .*" + removed, remove)
    assert "pip install" in install
