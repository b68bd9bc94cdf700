"""The libraries of PyTorch's build on disk."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Pytorch, Severity, Torch
from gpudoctor.registry import check, known, skip_unless

MOST_NAMED = 3


@check(family="torch", explains=("torch-import-failed", "torch-cuda-unavailable", "torch-wrong-results"))
def torch_library_missing(pytorch: Pytorch, torch: Torch) -> Iterator[Finding]:
    """Libraries that belong to this build of PyTorch are not on disk.

    Why: the import fails with "cannot open shared object file", or the first call that needs the library does. An
    NVIDIA wheel was removed or replaced, an installation was interrupted, or a virus scanner deleted a file.
    Exception: libcuda.so.1 is the driver's and is not counted. A library in another folder that the loader searches is
    not missing. If the import works, this is a warning.
    Reference: https://pytorch.org/get-started/locally/
    """
    skip_unless(torch.installed is not False, "PyTorch is not installed")
    missing = known(torch.missing_libraries, "torch.missing_libraries")
    if not missing:
        return
    more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
    severity = Severity.WARNING if pytorch.import_error == "" else Severity.ERROR
    summary = f"{pytorch.label} needs {', '.join(missing[:MOST_NAMED])}{more}, which the loader cannot find"
    facts = ("torch.missing_libraries", *pytorch.paths("version"))
    yield Finding.of(severity, pytorch.subject, summary, facts, Fix("reinstall-torch"))
