"""cuDNN against what PyTorch needs."""

import re
from collections.abc import Iterator

from gpudoctor.model import Finding, PackageVersion, Python, Remedy, Severity, System, Toolkit, Torch, TorchRuntime
from gpudoctor.reasoning.installed import whole_torch
from gpudoctor.reasoning.symptoms import text_with
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import reinstall_torch, unset_variable

# Statuses that name another version, in lower case. CUDNN_STATUS_NOT_INITIALIZED has other causes, memory among them.
# Source: cudnnStatus_t in https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html
STATUSES = (
    "cudnn_status_sublibrary_version_mismatch",
    "cudnn_status_sublibrary_loading_failed",
    "cudnn_status_version_mismatch",
    "cudnn version incompatibility",
)


@check(
    family="cuda",
    explains=("torch-import-failed", "torch-library-missing", "torch-cuda-unavailable", "torch-wrong-results"),
)
def cudnn_missing_or_mismatch(
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    python: Python | None = None,
    toolkit: Toolkit | None = None,
    system: System | None = None,
) -> Iterator[Finding]:
    """cuDNN is missing, or another version is loaded than PyTorch was built with.

    Why: convolutions and attention run in cuDNN. PyTorch refuses an older one, and parts of two versions do not work
    together: "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH". Mostly LD_LIBRARY_PATH leads to the cuDNN of a toolkit.
    Exception: another version that works is advice. Wheels of cuDNN for two CUDA major versions do not disturb each
    other.
    Reference: https://docs.nvidia.com/deeplearning/cudnn/backend/latest/developer/forward-compatibility.html
    """
    whole = whole_torch(torch, torch_runtime)
    applies(whole.installed is not False, "PyTorch is not installed")
    applies(whole.build in (None, "cuda"), "PyTorch is not built for CUDA")
    missing = whole.missing_libraries or ()
    applies(all("cudnn" in name for name in missing), "other libraries of PyTorch are missing too")
    failed = _failure(torch_runtime)
    place = _on_library_path(toolkit)
    remedies = _remedies(place, whole, python, system)
    if failed is not None:
        fact, text = failed
        path = _path(toolkit, place)
        yield Finding(
            severity=Severity.ERROR,
            summary=f"PyTorch cannot use cuDNN: {_one_line(text)}{path and f', and LD_LIBRARY_PATH leads to {path}'}",
            subject="cuDNN",
            facts=(fact, *_place_fact(place)),
            remedies=remedies,
        )
    elif missing:
        imported = torch_runtime is not None and torch_runtime.import_error == ""
        yield Finding(
            severity=Severity.WARNING if imported else Severity.ERROR,
            summary=f"PyTorch needs {missing[0]}, which the loader cannot find",
            subject="cuDNN",
            facts=("torch.missing_libraries",),
            remedies=(reinstall_torch(python=python, system=system, torch=whole),),
        )
    else:
        known(torch_runtime and torch_runtime.cudnn_error, "torch_runtime.cudnn_error")
        yield from _other_version(torch_runtime, whole, python, place, remedies)


def _failure(torch_runtime: TorchRuntime | None) -> tuple[str, str] | None:
    """Return the name and text of the error that names cuDNN, None where there is none."""
    if torch_runtime is None:
        return None
    for name in ("cudnn_error", "import_error"):
        text = getattr(torch_runtime, name) or ""
        if "cudnn" in text.lower():
            return f"torch_runtime.{name}", text
    return text_with(*STATUSES, torch_runtime=torch_runtime)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 240 else f"{line[:237]}..."


def _on_library_path(toolkit: Toolkit | None) -> int | None:
    """Return the place of the first cuDNN to which LD_LIBRARY_PATH leads, None where it leads to none."""
    libraries = (toolkit.library_path_libraries if toolkit is not None else None) or ()
    return next((number for number, library in enumerate(libraries) if library.soname.startswith("libcudnn")), None)


def _path(toolkit: Toolkit | None, place: int | None) -> str:
    libraries = (toolkit.library_path_libraries if toolkit is not None else None) or ()
    return "" if place is None else libraries[place].path


def _place_fact(place: int | None) -> tuple[str, ...]:
    return () if place is None else (f"toolkit.library_path_libraries[{place}].path",)


def _other_version(
    torch_runtime: TorchRuntime | None,
    whole: Torch,
    python: Python | None,
    place: int | None,
    remedies: tuple[Remedy, ...],
) -> Iterator[Finding]:
    """Yield advice where the cuDNN that was loaded is not that of the wheel."""
    loaded = torch_runtime.cudnn_version if torch_runtime is not None else None
    wheel = _wheel(whole, python)
    if not loaded or wheel is None:
        return
    fact, version = wheel
    if version.release[:3] != decode(loaded):
        text = ".".join(map(str, decode(loaded)))
        yield Finding(
            severity=Severity.INFO,
            summary=f"PyTorch loads cuDNN {text}, and its own wheel is of {version}",
            subject="cuDNN",
            facts=("torch_runtime.cudnn_version", fact, *_place_fact(place)),
            remedies=remedies,
        )


def decode(number: int) -> tuple[int, int, int]:
    """Return the version that cuDNN codes as a number: 91002 is 9.10.2, 8902 is 8.9.2.

    Source: CUDNN_VERSION in cudnn_version.h: 10000 * major + 100 * minor + patch from 9 on, 1000 * major before.
    """
    major = 10000 if number >= 90000 else 1000
    return number // major, number % major // 100, number % 100


def _wheel(whole: Torch, python: Python | None) -> tuple[str, PackageVersion] | None:
    """Return the wheel of cuDNN for PyTorch's CUDA major version, by the fact that names its version."""
    if whole.cuda_version is None:
        return None
    name = re.compile(rf"nvidia-cudnn-cu{whole.cuda_version.major}")
    for number, package in enumerate((python.packages if python is not None else None) or ()):
        if name.fullmatch(package.name):
            return f"python.packages[{number}].version", package.version
    return None


def _remedies(place: int | None, whole: Torch, python: Python | None, system: System | None) -> tuple[Remedy, ...]:
    reinstall = reinstall_torch(python=python, system=system, torch=whole)
    if place is None:
        return (reinstall,)
    unset = unset_variable(
        system=system,
        name="LD_LIBRARY_PATH",
        summary="Remove LD_LIBRARY_PATH, so that PyTorch loads the cuDNN that it brings",
    )
    return (unset, reinstall)
