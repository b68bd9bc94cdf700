"""Whether PyTorch is there at all."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Python, Pytorch, Severity, TorchNeed
from gpudoctor.registry import check, known
from gpudoctor.symptoms import Symptoms, of_kind


@check(family="torch")
def torch_not_installed(
    pytorch: Pytorch, torch_need: TorchNeed, python: Python = Python(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """PyTorch is not installed in this environment.

    Why: import torch fails with "No module named 'torch'". Often it is installed in another environment.
    Exception: if nothing asks for PyTorch, this is advice: no requirement of the project names it, and no program
    imports it. A requirement in an extra or a group does not count.
    Reference: https://pytorch.org/get-started/locally/
    """
    if known(pytorch.installed, "torch.installed"):
        return
    requirement, imported = torch_need.requirement, torch_need.imported
    severity = Severity.ERROR if imported or requirement else Severity.INFO
    where = f" in the environment {python.prefix}" if python.prefix else ""
    asks = f", and {requirement.source} asks for {requirement.name}{requirement.specifier}" if requirement else ""
    if imported and not requirement:
        asks = ", and a program imports it"
    yield Finding.of(
        severity,
        "torch",
        f"PyTorch is not installed{where}{asks}",
        (*pytorch.paths("installed"), imported, "project.requirements" if requirement else ""),
        Fix("use-environment-with-torch") if of_kind(symptoms, "torch-imports-elsewhere") else None,
        Fix("install-torch-first"),
        Fix("install-after-torch") if of_kind(symptoms, "torch-missing-in-setup") else None,
        Fix("use-environment-with-torch") if imported else None,
    )
