"""Compiled extensions of PyTorch against the installed PyTorch, by the versions of their wheels."""

import re
from collections.abc import Iterator

from gpudoctor.model import Finding, Package, Python, Remedy, Severity, System, Torch, TorchRuntime
from gpudoctor.model.record import record
from gpudoctor.reasoning.installed import torch_fact, whole_torch
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import python_command
from gpudoctor.remedies.commands import environment_of

OWN = ("torch", "torchvision", "torchaudio", "torchtext")
PYG = ("torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv", "pyg-lib")
# Their setup.py takes the wheel that fits the installed torch, where there is one, else compiles.
# Source: setup.py of flash-attention, causal-conv1d and mamba: get_wheel_url.
FIND_THEIR_WHEEL = ("flash-attn", "causal-conv1d", "mamba-ssm")


@record
class _Built:
    """What an extension was built for, as the local part of its version says; None for what it does not say."""

    package: Package
    number: int
    torch: str | None
    cuda_major: int | None
    cxx11_abi: bool | None


@check(family="torch")
def extension_abi_mismatch(
    python: Python,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    system: System | None = None,
) -> Iterator[Finding]:
    """A compiled extension was built against another PyTorch than the installed one.

    Why: its import ends with "undefined symbol", or with a libcudart of another CUDA that cannot be opened: PyTorch's
    C++ interface changes with every release.
    Exception: only what the version of the wheel names is compared, as in 2.6.3+cu123torch2.3cxx11abifalse or
    2.1.2+pt20cu118. Minor versions of CUDA, and patch releases of PyTorch, may differ.
    Reference: https://github.com/Dao-AILab/flash-attention#installation-and-features
    """
    whole = whole_torch(torch, torch_runtime)
    applies(known(whole.installed, "torch.installed"), "PyTorch is not installed")
    packages = known(python.packages, "python.packages")
    built = tuple(_built(number, package) for number, package in enumerate(packages) if package.name not in OWN)
    extensions = tuple(extension for extension in built if extension is not None)
    applies(extensions, "no extension names the PyTorch that it was built for")
    version = known(whole.version, "torch.version")
    wrong = tuple(extension for extension in extensions if _differs(extension, whole))
    if wrong:
        names = " and ".join(f"{extension.package.name} {extension.package.version}" for extension in wrong)
        abi = any(extension.cxx11_abi not in (None, whole.cxx11_abi) for extension in wrong)
        yield Finding(
            severity=Severity.ERROR,
            summary=f"{names} {'was' if len(wrong) == 1 else 'were'} not built for the installed PyTorch "
            f"{_name(whole)}",
            subject=", ".join(extension.package.name for extension in wrong),
            facts=(
                *(f"python.packages[{extension.number}].version" for extension in wrong),
                torch_fact("version", torch, torch_runtime),
                *(("torch.cxx11_abi",) if abi and torch is not None and torch.cxx11_abi is not None else ()),
            ),
            remedies=tuple(_remedy(extension, whole, python, system) for extension in wrong),
            details={"torch": str(version), "cuda": str(whole.cuda_version or "")},
        )


def _name(whole: Torch) -> str:
    cuda = f" (CUDA {whole.cuda_version})" if whole.cuda_version else ""
    abi = "" if whole.cxx11_abi is None else f", C++11 ABI {'on' if whole.cxx11_abi else 'off'}"
    return f"{whole.version}{cuda}{abi}"


def _built(number: int, package: Package) -> _Built | None:
    """Return what the package was built for, None where its version does not name a PyTorch."""
    local = package.version.local.lower()
    torch = _torch_release(local)
    cuda = re.search(r"cu(\d{2})\d?(?!\d)", local)
    abi = re.search(r"cxx11abi(true|false)", local)
    if torch is None and abi is None:
        return None
    return _Built(
        package=package,
        number=number,
        torch=torch,
        cuda_major=int(cuda[1]) if cuda else None,
        cxx11_abi=abi[1] == "true" if abi else None,
    )


def _torch_release(local: str) -> str | None:
    """Return the release of PyTorch in a local version: "2.3" of "cu123torch2.3", "pt23cu121" and "torch230cu121"."""
    dotted = re.search(r"(?:torch|pt)(\d)\.(\d{1,2})", local)
    if dotted:
        return f"{dotted[1]}.{dotted[2]}"
    digits = re.search(r"(torch|pt)(\d)(\d{1,3})(?!\d)", local)
    if digits is None:
        return None
    prefix, major, rest = digits[1], digits[2], digits[3]
    if prefix == "pt" and len(rest) <= 2:  # PyTorch Geometric: pt113 is 1.13, pt20 is 2.0
        return f"{major}.{rest}"
    if len(rest) == 1:
        return f"{major}.{rest}"
    if len(rest) == 3:
        return f"{major}.{rest[:2]}"
    # Three digits may end with the patch number: torch260 is 2.6.0; of torch210 nobody knows.
    return f"{major}.{rest[0]}" if rest[1] == "0" and rest[0] != "1" else None


def _differs(extension: _Built, whole: Torch) -> bool:
    version, cuda = whole.version, whole.cuda_version
    if extension.torch is not None and version is not None and version.minor_release != extension.torch:
        return True
    if extension.cuda_major is not None and cuda is not None and cuda.major != extension.cuda_major:
        return True
    return None not in (extension.cxx11_abi, whole.cxx11_abi) and extension.cxx11_abi != whole.cxx11_abi


def _remedy(extension: _Built, whole: Torch, python: Python, system: System | None) -> Remedy:
    name, version = extension.package.name, extension.package.version
    module = name.replace("-", "_")
    verify = python_command(python, "-c", f"import torch, {module}; print(torch.__version__)")
    environment = environment_of(python, system)
    pinned = f"{name}=={version.public}"
    if name in PYG and whole.version is not None and whole.build in ("cuda", "cpu"):
        variant = whole.cuda_version.tag if whole.cuda_version is not None else "cpu"
        page = f"https://data.pyg.org/whl/torch-{whole.version.minor_release}.0+{variant}.html"
        options = ["--no-deps", "--no-cache-dir", "--find-links", page]
        # Any version of it: not every one was built for every PyTorch.
        return Remedy(
            summary=f"Install the {name} that is built for PyTorch {whole.version.minor_release} and {variant}",
            commands=(environment.uninstall([name]), environment.install([*options, name]), verify),
            reference="https://pytorch-geometric.readthedocs.io/en/latest/install/installation.html",
        )
    if name in FIND_THEIR_WHEEL:
        return Remedy(
            summary=f"Install {name} again: without build isolation it takes the wheel for the installed PyTorch, "
            "or is compiled with nvcc",
            commands=(
                environment.install(["--no-deps", "--no-build-isolation", "--no-cache-dir", pinned], force=True),
                verify,
            ),
        )
    return Remedy(summary=f"Install the wheel of {name} that is built for PyTorch {_name(whole)}, or compile it here")
