"""Install CUDA libraries and cuDNN as wheels, and make the loader find them."""

import re

from gpudoctor.data.cuda_libraries import FIRST_CUDNN_WITHOUT_VOLTA, cuda_major_of, library_stem, wheel_of
from gpudoctor.data.gpu_names import device_capability
from gpudoctor.model import ComputeCapability, Devices, Python, Pytorch, Remedy, System
from gpudoctor.remedies.commands import Environment, environment_of, quote, quote_value
from gpudoctor.remedies.fixes import Machine, fix
from gpudoctor.remedies.packages import install_packages

IMPORT_TORCH = "import torch; print(torch.__version__, torch.cuda.is_available())"
CUDNN_FOLDER = "import os, nvidia.cudnn; print(os.path.join(list(nvidia.cudnn.__path__)[0], 'lib'))"

# The first CTranslate2 that loads cuDNN 9; earlier ones load 8. Source: CHANGELOG.md of CTranslate2.
FIRST_CTRANSLATE2_WITH_CUDNN_9 = "4.5.0"

# The oldest cuDNN that NVIDIA offers as a wheel. Source: the releases of nvidia-cudnn-cu11.
FIRST_CUDNN_WHEEL = 8


@fix
def install_cudnn(
    *, machine: Machine, pytorch: Pytorch | None, cuda_major: int | None, version: str, major: int | None
) -> tuple[Remedy, ...]:
    """Return how to install cuDNN as a wheel that the loader finds, then for the whole system.

    version: "==9.*" or ">=8.6"; "" for any. major: cuDNN's major version, if known. cuda_major: from the message, if
    PyTorch's is unknown; otherwise that of the installed packages.
    """
    environment: Environment = machine.call(environment_of)
    if pytorch is not None and pytorch.cuda_version is not None:
        cuda_major = pytorch.cuda_version.major
    elif cuda_major is None:
        cuda_major = machine.call(_cuda_major_of_packages)
    if major is not None and major < FIRST_CUDNN_WHEEL:
        return (machine.call(_older_cudnn, version=version, major=major),)
    old = machine.call(_oldest_device) if major in (None, 9) else ""
    version = f">=9,<{FIRST_CUDNN_WITHOUT_VOLTA}" if old else version
    requirement = f"nvidia-cudnn-cu{cuda_major or 12}{version}"
    where = f": {FIRST_CUDNN_WITHOUT_VOLTA} and newer have no code for {old}" if old else ""
    where += "" if cuda_major else ". If the framework was built for CUDA 11 or 13, write cu11 or cu13 instead of cu12"
    install = (*environment.setup, environment.install(["--upgrade", requirement]))
    if environment.windows:
        code = "import os, nvidia.cudnn; print(os.path.join(list(nvidia.cudnn.__path__)[0], 'bin'))"
        commands = (*install, f'$env:PATH = "$({environment.run(code)});$env:PATH"')
        text = "Install cuDNN as a wheel and put its bin folder on PATH"
    else:
        folder = f"$({environment.run(CUDNN_FOLDER)})"
        commands = (*install, f'export LD_LIBRARY_PATH="{folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"')
        text = "Install cuDNN as a wheel and put its folder first on LD_LIBRARY_PATH"
    wheel = Remedy(
        summary=f"{text}{where}",
        commands=commands,
        needs=("restart",),
        reference="https://docs.nvidia.com/deeplearning/cudnn/installation/latest/",
    )
    number = str(major) if major else "of the version needed"
    package = {8: " (Debian and Ubuntu: libcudnn8)", 9: " (Debian and Ubuntu: cudnn9-cuda-12)"}.get(major or 0, "")
    source = "with NVIDIA's installer" if environment.windows else f"from NVIDIA's repository{package}"
    package_of_system = Remedy(
        summary=f"Install cuDNN {number} for the whole system {source}"
        + ("" if environment.windows else ", and run sudo ldconfig"),
        needs=("root",),
        reference="https://developer.nvidia.com/cudnn-archive",
    )
    return wheel, package_of_system


def _oldest_device(devices: Devices) -> str:
    """Return a device that newer cuDNN versions do not support; "" if none is known."""
    known = ((device_capability(device), device.label) for device in devices or ())
    return next((label for number, label in known if number is not None and number < ComputeCapability(7, 5)), "")


def _cuda_major_of_packages(python: Python) -> int | None:
    """Return the CUDA major version in the names of all installed packages; None if they have none or several."""
    names = [package.name for package in python.packages or ()]
    found = {int(match[1]) for name in names if (match := re.search(r"-cu(1\d)$", name))}
    return found.pop() if len(found) == 1 else None


@fix
def use_one_cudnn(*, asked_for: int, of_torch: int, python: Python) -> Remedy:
    """Return how to change a package to PyTorch's cuDNN version."""
    requirement = f"ctranslate2{'>=' if of_torch == 9 else '<'}{FIRST_CTRANSLATE2_WITH_CUDNN_9}"
    installed = python.matching("ctranslate2", "faster-whisper", "whisperx")
    named = f" ({requirement})" if installed else f"; of CTranslate2 (faster-whisper, WhisperX) it is {requirement}"
    return install_packages(
        python=python,
        requirements=(requirement,),
        summary=f"PyTorch here has cuDNN {of_torch}, another package needs cuDNN {asked_for}: install the version "
        f"of that package that uses cuDNN {of_torch}{named}",
    )


@fix
def ctranslate2_for_cudnn(*, asked_for: int, python: Python) -> Remedy:
    """Return how to install the CTranslate2 for the other cuDNN version."""
    other = 9 if asked_for == 8 else 8
    return install_packages(
        python=python,
        requirements=(f"ctranslate2{'>=' if asked_for == 8 else '<'}{FIRST_CTRANSLATE2_WITH_CUDNN_9}",),
        summary=f"If CTranslate2 (faster-whisper, WhisperX) needs it and PyTorch has cuDNN {other}, install "
        f"the CTranslate2 that uses cuDNN {other}",
    )


def _older_cudnn(python: Python, system: System, version: str, major: int) -> Remedy:
    """Return how to get a cuDNN older than the first wheel."""
    environment = environment_of(python, system)
    requirement = f"cudnn{version}" if version else f"cudnn={major}"
    command = f"conda install {quote(requirement)}"
    if environment.conda_prefix:
        command = environment.conda("install", [requirement])
    place = "bin to PATH" if environment.windows else "lib64 to LD_LIBRARY_PATH"
    return Remedy(
        summary=f"Install cuDNN {major} for the framework's CUDA, with conda or from NVIDIA's archive, and add its "
        f"folder {place}. Or install a release of the framework that is built for the installed cuDNN",
        commands=(command,),
        needs=("restart",),
        reference="https://developer.nvidia.com/cudnn-archive",
    )


@fix
def install_cuda_library(*, name: str, python: Python, system: System, pytorch: Pytorch | None) -> tuple[Remedy, ...]:
    """Return how to install the CUDA library `name` for a package, or a package build for the installed CUDA."""
    windows = system.os == "windows"
    major, stem = cuda_major_of(name), library_stem(name)
    cuda = pytorch.cuda_version if pytorch is not None else None
    remedies: list[Remedy] = []
    if major is not None and cuda is not None and cuda.major != major:
        again = Remedy(
            summary=f"Install the package that asks for {name} again, in its build for CUDA {cuda}, or compile it here "
            "against the installed PyTorch (pip install --no-build-isolation)"
        )
        remedies.append(again)
    wheel = wheel_of(stem, major or (cuda.major if cuda is not None else 12)) if stem is not None else None
    if wheel is not None:
        place = "its bin folder on PATH" if windows else "its lib folder on LD_LIBRARY_PATH"
        install = install_packages(
            python=python,
            requirements=(wheel,),
            summary=f"Install {wheel}, which contains {name}, and put {place} if the package does not find it",
        )
        remedies.append(install)
    toolkit = f"CUDA toolkit {major}" if major else "the CUDA toolkit"
    place = "its bin folder on PATH" if windows else "its lib64 folder on LD_LIBRARY_PATH"
    commands = (
        'export LD_LIBRARY_PATH="/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"',
        f"ls /usr/local/cuda/lib64 | grep {quote_value(name.partition('.so')[0])}",
    )
    of_toolkit = Remedy(
        summary=f"Install {toolkit}, which contains {name}, and put {place}",
        commands=() if windows else commands,
        reference="https://developer.nvidia.com/cuda-toolkit-archive",
    )
    keep = Remedy(
        summary=f"To keep the CUDA that is installed, find out what asks for {name}: rebuild your own extension "
        "(remove its build folder first), or install the cuDNN built for this CUDA version, which is often what asks"
    )
    return *remedies, of_toolkit, *([] if cuda is not None or major is None else [keep])


@fix
def reinstall_cuda_wheel(*, wheel: str, certain: bool, python: Python, verify: str = IMPORT_TORCH) -> Remedy:
    """Return how to reinstall a CUDA library wheel. certain: whether its CUDA major version is that of the package."""
    note = "" if certain else " (with cu11 in its name for a package built for CUDA 11)"
    return install_packages(
        python=python,
        requirements=("--upgrade", wheel),
        force=True,
        summary=f"If it still fails, reinstall {wheel}{note}: an older copy from another package may hide it. "
        "pip check names the versions that the packages need",
        verify=verify,
    )
