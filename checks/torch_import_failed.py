"""PyTorch is there, and importing it fails."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.model import Finding, Fix, Python, Pytorch, Severity, TorchRuntime
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms
from gpudoctor.symptoms.answers import answers

FACT = "torch_runtime.import_error"


@check(family="torch", explains=("torch-cuda-unavailable", "torch-wrong-results"))
def torch_import_failed(
    pytorch: Pytorch, torch_runtime: TorchRuntime, python: Python = Python(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """PyTorch is installed, but importing it fails.

    Why: every program that uses PyTorch fails at its first line. Usually a library of the build is missing or has
    another version, or a file named torch.py is imported instead.
    Exception: if PyTorch is not installed at all, torch-not-installed says so.
    Reference: https://docs.pytorch.org/docs/stable/notes/faq.html
    """
    error = known(torch_runtime.import_error, FACT)
    skip_unless(pytorch.installed is not False and not pytorch.lacks_module, "PyTorch is not installed")
    if not error:
        return
    causes = answers(symptoms, "torch-import-failed")
    unknown = Finding(severity=Severity.ERROR, summary="import torch fails", fixes=(Fix("reinstall-torch"),))
    finding = causes[0] if causes else unknown
    shadowing = [path for path in (python.shadowed_modules) or () if "torch" in path]
    yield replace(
        finding,
        summary=f"{finding.summary} ({error if len(error) <= 240 else f'{error[:237]}...'})",
        subject=pytorch.subject,
        facts=(FACT, "python.shadowed_modules" if shadowing else ""),
        fixes=(Fix("rename-file-that-hides-torch", files=" and ".join(shadowing)),) if shadowing else finding.fixes,
    )
