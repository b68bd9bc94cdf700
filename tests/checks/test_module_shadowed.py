"""Files that are imported in place of an installed module."""

from __future__ import annotations

import pytest

from gpudoctor.model import Outcome, Python, Severity, System
from gpudoctor.testing import run_check


@pytest.mark.parametrize(
    ("path", "severity", "subject"),
    [
        pytest.param("/work/torch.py", Severity.ERROR, "torch", id="a file"),
        pytest.param("/work/numpy/__init__.py", Severity.ERROR, "numpy", id="a folder"),
        pytest.param("/work/cupy.py", Severity.ERROR, "cupy", id="CuPy"),
        pytest.param("/work/triton.py", Severity.WARNING, "triton", id="one that can be missed"),
        pytest.param(r"C:\work\torch.py", Severity.ERROR, "torch", id="Windows"),
    ],
)
def test_severity(path: str, severity: Severity, subject: str) -> None:
    (finding,) = run_check("module-shadowed", python=Python(shadowed_modules=(path,))).findings
    assert (finding.severity, finding.subject) == (severity, subject)
    assert finding.summary == f"{path} is imported instead of the installed module {subject}"


@pytest.mark.parametrize(
    ("path", "system", "command"),
    [
        ("/work/torch.py", "linux", "mv /work/torch.py /work/torch_renamed.py"),
        ("/my work/torch/__init__.py", "linux", "mv '/my work/torch' '/my work/torch_renamed'"),
        (r"C:\work\torch.py", "windows", r"Move-Item C:\work\torch.py C:\work\torch_renamed.py"),
    ],
)
def test_command(path: str, system: str, command: str) -> None:
    python = Python(shadowed_modules=(path,))
    (finding,) = run_check("module-shadowed", python=python, system=System(os=system)).findings
    assert finding.remedies[0].commands[0] == command


@pytest.mark.parametrize(
    ("files", "outcome", "reason"),
    [
        pytest.param((), Outcome.PASSED, "", id="none"),
        pytest.param(("/work/pynvml.py",), Outcome.PASSED, "", id="pynvml has its own check"),
        pytest.param(None, Outcome.SKIPPED, "python.shadowed_modules is unknown", id="not known"),
    ],
)
def test_outcome(files: tuple[str, ...] | None, outcome: Outcome, reason: str) -> None:
    result = run_check("module-shadowed", python=Python(shadowed_modules=files))
    assert (result.outcome, result.reason) == (outcome, reason)
