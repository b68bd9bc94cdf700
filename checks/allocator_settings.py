"""The environment variables that configure PyTorch's allocator."""

from collections.abc import Iterator

from gpudoctor.model import Allocator, AllocatorVariable, Finding, Fix, Severity
from gpudoctor.registry import check, known, skip_unless

NEW_NAME, OLD_NAME = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"


@check(family="memory")
def allocator_settings(allocator: Allocator) -> Iterator[Finding]:
    """Settings of PyTorch's allocator in the environment are malformed, unknown or contradict each other.

    Why: PyTorch reads these settings at the first CUDA call. A malformed one makes that call fail with "Unrecognized
    key", "Expected 'True' or 'False'" or an index error in ConfigTokenizer. A setting that PyTorch does not read has no
    effect: PyTorch 2.9 ignores expandable_segments:True in PYTORCH_ALLOC_CONF.
    Exception: PyTorch reads PYTORCH_ALLOC_CONF and its older name PYTORCH_CUDA_ALLOC_CONF, so the old name passes.
    Reference: https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf
    """
    skip_unless(allocator.supported, "PyTorch is not built for a GPU")
    variables = known(allocator.variables, "environment")
    skip_unless(variables, "no setting of the allocator is in the environment")
    read, *others = variables
    for variable in variables:
        yield from _own_problems(variable)
    for other in others:
        if other.value != read.value:
            summary = f"{read.name} is {read.value} and {other.name} is {other.value}, but PyTorch reads only the first"
            facts = (f"environment.{read.name}", f"environment.{other.name}")
            yield _finding(other, Severity.INFO, summary, Fix("unset-variable", name=other.name), facts=facts)
    if read.name == NEW_NAME and not others and allocator.too_old:
        summary = f"PyTorch {allocator.too_old} reads {read.value} only from {OLD_NAME}, but {NEW_NAME} is set"
        rename = Fix("set-variable", name=OLD_NAME, value=read.value)
        yield _finding(read, Severity.WARNING, summary, rename, facts=(f"environment.{NEW_NAME}", "torch.version"))


def _own_problems(variable: AllocatorVariable) -> Iterator[Finding]:
    name = variable.name
    if variable.problems:
        correct = (Fix("set-variable", name=name, value=variable.corrected),) if variable.corrected else ()
        summary = f"In {name}, {' and '.join(variable.problems)}"
        yield _finding(variable, Severity.WARNING, summary, *correct, Fix("unset-variable", name=name))
    if variable.ignored:
        summary = f"In {name}, backend:cudaMallocAsync ignores {' and '.join(variable.ignored)}"
        yield _finding(variable, Severity.INFO, summary, Fix("choose-allocator-backend"))


def _finding(
    variable: AllocatorVariable, severity: Severity, summary: str, *fixes: Fix, facts: tuple[str, ...] = ()
) -> Finding:
    facts = facts or (f"environment.{variable.name}",)
    return Finding.of(severity, variable.name, summary, facts, *fixes)
