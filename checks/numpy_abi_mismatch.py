"""NumPy against the modules that were compiled for another one."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Finding, Python, Remedy, Severity, Symptom, Torch
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies import install_packages

KINDS = ("numpy-not-available", "numpy-compiled-for-1", "numpy-binary-changed")
FIRST_WITH_NUMPY_2 = (2, 3)  # Source: release notes of PyTorch 2.3


@check(family="python")
def numpy_abi_mismatch(
    symptoms: tuple[Symptom, ...], python: Python | None = None, torch: Torch | None = None
) -> Iterator[Finding]:
    """A compiled module was built for another NumPy than the installed one.

    Why: what was compiled with NumPy 1 cannot run with NumPy 2: PyTorch before 2.3 then says "Numpy is not available",
    other modules stop with "numpy.dtype size changed" or "_ARRAY_API not found".
    Exception: of CuPy cupy-numpy-incompatible tells.
    Reference: https://numpy.org/doc/stable/numpy_2_0_migration_guide.html
    """
    told = [found for kind in KINDS for found in reported(symptoms, kind)]
    skip_unless(told, "no such message in the report")
    skip_unless(not reported(symptoms, "cupy-*"), "the report is of CuPy")
    fact, message = told[0]
    old_torch = torch is not None and torch.version is not None and torch.version.release < FIRST_WITH_NUMPY_2
    yield Finding(
        severity=Severity.ERROR if message.kind == "numpy-not-available" else Severity.WARNING,
        summary=f"A module was compiled for another NumPy than the installed one{_version(message)}: {message.text}",
        subject="numpy",
        facts=(fact, *(("torch.version",) if old_torch else ())),
        remedies=_remedies(python, old_torch=old_torch),
    )


def _remedies(python: Python | None, *, old_torch: bool) -> tuple[Remedy, ...]:
    older = install_packages(
        python=python,
        requirements=("numpy<2",),
        summary="Install NumPy 1, for which the module was compiled",
        verify="import torch, numpy; print(numpy.__version__, torch.zeros(1).numpy())",
    )
    newer = Remedy(
        summary="Or update the module that was compiled for NumPy 1: PyTorch 2.3 and newer run with NumPy 2; one "
        "that was compiled for a newer NumPy than the installed one needs pip install --upgrade numpy"
        if not old_torch
        else "Or update PyTorch to 2.3 or newer, which runs with NumPy 2"
    )
    return older, newer


def _version(message: Symptom) -> str:
    return f" {message.names['numpy']}" if "numpy" in message.names else ""
