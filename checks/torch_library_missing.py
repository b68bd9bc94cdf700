"""The libraries of PyTorch's build on disk."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Python, Severity, System, Torch, TorchRuntime
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import reinstall_torch

MOST_NAMED = 3


@check(family="torch", explains=("torch-import-failed", "torch-cuda-unavailable", "torch-wrong-results"))
def torch_library_missing(
    torch: Torch,
    torch_runtime: TorchRuntime | None = None,
    python: Python | None = None,
    system: System | None = None,
) -> Iterator[Finding]:
    """Libraries that belong to this build of PyTorch are not on disk.

    Why: the import ends with "cannot open shared object file", or the first call that needs the library does. A wheel
    of NVIDIA was removed or replaced, an installation broke off, or a scanner deleted a file.
    Exception: libcuda.so.1 is the driver's and is not counted. A library that lies in a folder of another origin, which
    the loader searches, is there. An import that works makes this a warning.
    Reference: https://pytorch.org/get-started/locally/
    """
    skip_unless(torch.installed is not False, "PyTorch is not installed")
    missing = known(torch.missing_libraries, "torch.missing_libraries")
    if not missing:
        return
    imported = torch_runtime is not None and torch_runtime.import_error == ""
    more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
    version = f" {torch.version}" if torch.version else ""
    yield Finding(
        severity=Severity.WARNING if imported else Severity.ERROR,
        summary=f"PyTorch{version} needs {', '.join(missing[:MOST_NAMED])}{more}, which the loader cannot find",
        subject=f"torch{version}",
        facts=("torch.missing_libraries", *(("torch.version",) if torch.version else ())),
        remedies=(reinstall_torch(python=python, system=system, pytorch=torch),),
    )
