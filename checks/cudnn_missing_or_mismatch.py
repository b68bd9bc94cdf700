"""cuDNN against what PyTorch needs."""

import re
from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import text_with
from gpudoctor.conclusions.installed import matching_packages, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Finding,
    PackageVersion,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import install_packages, reinstall_torch, unset_variable
from gpudoctor.remedies.commands import environment_of
from gpudoctor.remedies.cuda_libraries import cudnn_of_torch, install_cudnn

# Statuses that name another version, in lower case. CUDNN_STATUS_NOT_INITIALIZED has other causes, memory among them.
# Source: cudnnStatus_t in https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html
STATUSES = (
    "cudnn_status_sublibrary_version_mismatch",
    "cudnn_status_sublibrary_loading_failed",
    "cudnn_status_version_mismatch",
    "cudnn version incompatibility",
)

# Kinds of messages that show it, those that say most first.
VERSIONS = ("cudnn-older-than-torch", "cudnn-older-than-built", "cudnn-other-than-built", "cudnn-outdated-for-jax")
FILES = (
    *("cudnn-not-found", "cudnn-not-found-by-name", "cudnn-dll-not-found", "cudnn-dll-not-found-by-name"),
    *("cudnn-not-loaded", "cudnn-without-dependencies", "cudnn-header-missing"),
)
OTHERS = (
    *("cudnn-symbol-missing", "cudnn-version-status", "cudnn-not-loaded-by-jax"),
    *("cudnn-required-by-onnxruntime", "cudnn-provider-not-loaded"),
)
MAYBE = ("cudnn-failed-status", "cudnn-failed-tensorflow")

CUDNN_HOME = "import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])"

# The first CTranslate2 that loads cuDNN 9; before, 8. Source: CHANGELOG.md of CTranslate2.
FIRST_CTRANSLATE2_WITH_CUDNN_9 = "4.5.0"


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
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """cuDNN is missing, or another version is loaded than the framework was built with.

    Why: convolutions and attention run in cuDNN. PyTorch, TensorFlow and JAX refuse an older one, and parts of two
    versions do not work together: "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH". Mostly LD_LIBRARY_PATH leads to the
    cuDNN of a toolkit, or two packages need different major versions: CTranslate2 from 4.5 on and PyTorch from 2.4 on
    need 9, those before 8.
    Exception: another version that works is advice. Wheels of cuDNN for two CUDA major versions do not disturb each
    other.
    Reference: https://docs.nvidia.com/deeplearning/cudnn/backend/latest/developer/forward-compatibility.html
    """
    whole = whole_torch(torch, torch_runtime)
    told = _told(symptoms)
    if told is not None:
        yield _told_finding(told, whole, python, toolkit, system)
        return
    skip_unless(whole.installed is not False, "PyTorch is not installed")
    skip_unless(whole.build in (None, "cuda"), "PyTorch is not built for CUDA")
    missing = whole.missing_libraries or ()
    skip_unless(all("cudnn" in name for name in missing), "other libraries of PyTorch are missing too")
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
            remedies=(reinstall_torch(python=python, system=system, pytorch=whole),),
        )
    else:
        known(torch_runtime and torch_runtime.cudnn_error, "torch_runtime.cudnn_error")
        yield from _other_version(torch_runtime, whole, python, place, remedies)


def _told(symptoms: tuple[Symptom, ...] | None) -> tuple[str, Symptom] | None:
    """Return the message that says most about cuDNN, by its fact; one that memory may explain only where none does."""
    for kinds in (VERSIONS, FILES, OTHERS):
        found = reported(symptoms, *kinds)
        if found and not (kinds is OTHERS and _of_another_library(found[0][1], symptoms)):
            return found[0]
    full = any("out-of-memory" in message.kind for message in symptoms or ())
    maybe = reported(symptoms, *MAYBE)
    return maybe[0] if maybe and not full else None


def _of_another_library(message: Symptom, symptoms: tuple[Symptom, ...] | None) -> bool:
    """Return whether ONNX Runtime, which asks for CUDA and cuDNN in one breath, misses another library."""
    return message.library == "onnxruntime" and bool(reported(symptoms, "cuda-library-missing*", "cuda-dll-missing*"))


def _told_finding(
    told: tuple[str, Symptom], whole: Torch, python: Python | None, toolkit: Toolkit | None, system: System | None
) -> Finding:
    fact, message = told
    place = _on_library_path(toolkit)
    return Finding(
        severity=Severity.WARNING if message.kind in MAYBE else Severity.ERROR,
        summary=_told_summary(message),
        subject="cuDNN",
        facts=(fact, *_place_fact(place)),
        remedies=tuple(_told_remedies(message, whole, python, system)),
        details=dict(message.names),
    )


def _told_summary(message: Symptom) -> str:
    names = message.names
    if "built_with" in names and "loaded" in names:
        who = {"torch": "PyTorch", "jax": "JAX"}.get(message.library, "The framework")
        built_with, loaded = _dotted(names["built_with"]), _dotted(names["loaded"])
        return f"{who} was built with cuDNN {built_with}, and cuDNN {loaded} is loaded"
    if message.kind in VERSIONS:
        return f"Another cuDNN is loaded than the framework was built with: {message.text}"
    if message.kind == "cudnn-header-missing":
        return f"The build finds no {names.get('header', 'library')} of cuDNN: {message.text[:200]}"
    if "library" in names:
        version = f" (cuDNN {names['major']})" if "major" in names else ""
        return f"{names['library']}{version} cannot be loaded"
    if "symbol" in names:
        return f"The cuDNN that is loaded lacks {names['symbol']}: it is of another version, or not whole"
    if "status" in names:
        return f"cuDNN fails with CUDNN_STATUS_{names['status']}"
    needs = f"cuDNN {names['major']}, which it needs" if "major" in names else "cuDNN"
    who = {"jax": "JAX or TensorFlow", "onnxruntime": "ONNX Runtime"}.get(message.library, "The framework")
    return f"{who} cannot load {needs}"


def _dotted(text: str) -> str:
    """Return a version in any of the forms of the messages as "8.5.0": "(8, 5, 0)", "8.5.0", "91002"."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if len(numbers) == 1 and numbers[0] >= 1000:
        return ".".join(map(str, decode(numbers[0])))
    return ".".join(map(str, numbers))


def _told_remedies(message: Symptom, whole: Torch, python: Python | None, system: System | None) -> Iterator[Remedy]:
    built_with = [int(number) for number in _dotted(message.names.get("built_with", "")).split(".") if number]
    own = cudnn_of_torch(whole)
    major = int(message.names["major"]) if "major" in message.names else built_with[0] if built_with else own
    if message.kind in MAYBE:
        yield Remedy(
            summary="Look for full memory first, which is the most frequent reason, and end what holds it",
            commands=("nvidia-smi",),
        )
    if built_with or message.kind in (*OTHERS, *MAYBE):
        yield unset_variable(
            system=system,
            name="LD_LIBRARY_PATH",
            summary="Remove LD_LIBRARY_PATH where it leads to another cuDNN, so that the one of the package itself is "
            "loaded",
        )
    if major is not None and own is not None and major != own:
        yield from _of_two_majors(major, own, python)
    if message.kind == "cudnn-header-missing":
        yield Remedy(
            summary="Install cuDNN with its headers (Debian and Ubuntu: libcudnn9-dev-cuda-12, libcudnn8-dev; conda: "
            "cudnn), or name the folder of the wheel in CUDNN_HOME, CUDNN_PATH and CPATH",
            commands=(f'export CUDNN_HOME="$({environment_of(python, system).run(CUDNN_HOME)})"',),
            reference="https://docs.nvidia.com/deeplearning/cudnn/installation/latest/",
        )
    version = f">={'.'.join(map(str, built_with[:2]))},<{built_with[0] + 1}" if built_with else ""
    version = version or (f"=={major}.*" if major else "")
    if own is None or major in (None, own):
        cuda = whole.cuda_version.major if whole.cuda_version else _cuda_major(message, python)
        yield from install_cudnn(python=python, system=system, cuda_major=cuda, version=version, major=major)
    if own is None and major is not None and "_" in message.names.get("library", "").partition("64_")[0]:
        yield from _ctranslate2(major, python)
    if whole.installed:
        yield reinstall_torch(python=python, system=system, pytorch=whole)


def _cuda_major(message: Symptom, python: Python | None) -> int | None:
    """Return the CUDA major version of the packages here, by their names."""
    if "cuda_major" in message.names:
        return int(message.names["cuda_major"])
    packages = (python.packages if python is not None else None) or ()
    found = {int(match[1]) for package in packages if (match := re.search(r"-cu(1\d)$", package.name))}
    return found.pop() if len(found) == 1 else None


def _of_two_majors(major: int, own: int, python: Python | None) -> Iterator[Remedy]:
    """Yield how to make the package that needs another cuDNN than PyTorch need the same."""
    if own == 9:
        requirement = f"ctranslate2>={FIRST_CTRANSLATE2_WITH_CUDNN_9}"
    else:
        requirement = f"ctranslate2<{FIRST_CTRANSLATE2_WITH_CUDNN_9}"
    installed = matching_packages(python, "ctranslate2", "faster-whisper", "whisperx")
    yield install_packages(
        python=python,
        requirements=(requirement,),
        summary=f"PyTorch here brings cuDNN {own}, another package asks for cuDNN {major}: take the version of that "
        f"package that uses cuDNN {own}"
        + (f" ({requirement})" if installed else f"; of CTranslate2 (faster-whisper, WhisperX) it is {requirement}"),
    )


def _ctranslate2(major: int, python: Python | None) -> Iterator[Remedy]:
    sign = ">=" if major == 8 else "<"
    other = 9 if major == 8 else 8
    yield install_packages(
        python=python,
        requirements=(f"ctranslate2{sign}{FIRST_CTRANSLATE2_WITH_CUDNN_9}",),
        summary=f"Or, where CTranslate2 (faster-whisper, WhisperX) asks for it and PyTorch brings cuDNN {other}, take "
        f"the CTranslate2 that uses cuDNN {other}",
    )


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
    reinstall = reinstall_torch(python=python, system=system, pytorch=whole)
    if place is None:
        return (reinstall,)
    unset = unset_variable(
        system=system,
        name="LD_LIBRARY_PATH",
        summary="Remove LD_LIBRARY_PATH, so that PyTorch loads the cuDNN that it brings",
    )
    return (unset, reinstall)
