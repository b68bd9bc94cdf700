"""Compiled extensions of PyTorch against the installed PyTorch, by the versions of their wheels."""

import re
from collections.abc import Iterator

from gpudoctor.conclusions.installed import package as installed_package
from gpudoctor.conclusions.installed import torch_fact, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Finding,
    Package,
    PackageVersion,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.record import record
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies.extension_install import described_torch, reinstall_extension, replace_extension

OWN = ("torch", "torchvision", "torchaudio", "torchtext")
KINDS = (
    "extension-undefined-symbol",
    "extension-symbol-not-found-macos",
    "extension-dll-load-failed",
    "extension-cuda-differs",
    "xformers-built-for",
    "extension-libtorch-missing",
    "extension-part-missing",
    "extension-import-name",
    "extension-cache-broken",
    "extension-mmcv-ops-missing",
    "extension-dll-not-loaded",
)
TOO_OLD = "extension-source-too-old"
# What is in the path or name of a compiled file → the distribution that it belongs to.
DISTRIBUTIONS = {
    "flash_attn": "flash-attn",
    "flash-attn": "flash-attn",
    "torch_scatter": "torch-scatter",
    "torch-scatter": "torch-scatter",
    "_scatter": "torch-scatter",
    "_segment_c": "torch-scatter",
    "torch_sparse": "torch-sparse",
    "torch-sparse": "torch-sparse",
    "_spmm_": "torch-sparse",
    "torch_cluster": "torch-cluster",
    "torch-cluster": "torch-cluster",
    "torch_spline_conv": "torch-spline-conv",
    "pyg_lib": "pyg-lib",
    "xformers": "xformers",
    "mmcv": "mmcv",
    "detectron2": "detectron2",
    "pytorch3d": "pytorch3d",
    "causal_conv1d": "causal-conv1d",
    "mamba_ssm": "mamba-ssm",
    "selective_scan": "mamba-ssm",
    "transformer_engine": "transformer-engine",
    "sageattention": "sageattention",
    "_qattn": "sageattention",
    "vllm": "vllm",
    "sgl_kernel": "sgl-kernel",
    "torchtext": "torchtext",
    "fairseq": "fairseq",
    "auto_gptq": "auto-gptq",
    "autogptq": "auto-gptq",
    "exllama": "auto-gptq",
    "awq": "autoawq",
    "apex": "apex",
    "amp_C": "apex",
    "fused_layer_norm": "apex",
    "deepspeed": "deepspeed",
    "torch_extensions": "torch_extensions",
    "natten": "natten",
    "spconv": "spconv",
    "torchao": "torchao",
    "bitsandbytes": "bitsandbytes",
    "torch_tensorrt": "torch-tensorrt",
    "nvdiffrast": "nvdiffrast",
    "kaolin": "kaolin",
    "groundingdino": "groundingdino",
}
# Of these torchvision-mismatch and the checks of CUDA's libraries tell; libtorch itself is no extension.
NOT_EXTENSIONS = ("torchvision", "torchaudio", "libtorch", "libc10", "libcud", "libnccl", "libcublas", "cupy")


@record
class _Built:
    """What an extension was built for, as the local part of its version says; None for what it does not say."""

    package: Package
    number: int
    torch: str | None
    cuda_major: int | None
    cxx11_abi: bool | None


@check(family="torch", explains=("torch-import-failed",))
def extension_abi_mismatch(
    python: Python | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """A compiled extension was built against another PyTorch than the installed one.

    Why: its import ends with "undefined symbol", or with a libcudart of another CUDA that cannot be opened: PyTorch's
    C++ interface changes with every release. The source of an old extension does not compile for the same reason.
    Exception: only what the version of the wheel names is compared, as in 2.6.3+cu123torch2.3cxx11abifalse or
    2.1.2+pt20cu118. Minor versions of CUDA, and patch releases of PyTorch, may differ. A part of which a program
    only warns, and goes on, is a warning.
    Reference: https://github.com/Dao-AILab/flash-attention#installation-and-features
    """
    whole = whole_torch(torch, torch_runtime)
    told = (*_told(whole, python, system, symptoms), *_too_old(whole, symptoms))
    yield from told
    if told:
        return
    if python is None:
        raise Skip("python is unknown")
    skip_unless(known(whole.installed, "torch.installed"), "PyTorch is not installed")
    packages = known(python.packages, "python.packages")
    built = tuple(_built(number, package) for number, package in enumerate(packages) if package.name not in OWN)
    extensions = tuple(extension for extension in built if extension is not None)
    skip_unless(extensions, "no extension names the PyTorch that it was built for")
    version = known(whole.version, "torch.version")
    wrong = tuple(extension for extension in extensions if _differs(extension, whole))
    if wrong:
        names = " and ".join(f"{extension.package.name} {extension.package.version}" for extension in wrong)
        abi = any(extension.cxx11_abi not in (None, whole.cxx11_abi) for extension in wrong)
        yield Finding(
            severity=Severity.ERROR,
            summary=f"{names} {'was' if len(wrong) == 1 else 'were'} not built for the installed PyTorch "
            f"{described_torch(whole)}",
            subject=", ".join(extension.package.name for extension in wrong),
            facts=(
                *(f"python.packages[{extension.number}].version" for extension in wrong),
                torch_fact("version", torch, torch_runtime),
                *(("torch.cxx11_abi",) if abi and torch is not None and torch.cxx11_abi is not None else ()),
            ),
            remedies=tuple(
                replace_extension(extension.package.name, extension.package.version, whole, python, system)
                for extension in wrong
            ),
            details={"torch": str(version), "cuda": str(whole.cuda_version or "")},
        )


def _told(
    whole: Torch, python: Python | None, system: System | None, symptoms: tuple[Symptom, ...] | None
) -> Iterator[Finding]:
    """Yield the extensions whose import failed in a report, each distribution once."""
    seen: set[str] = set()
    for fact, message in reported(symptoms, *KINDS):
        path = _path(message)
        name = _distribution(path, message, python)
        libtorch = message.kind == "extension-libtorch-missing"
        if name in seen or (libtorch and seen) or any(other in path.lower() for other in NOT_EXTENSIONS):
            continue
        seen.add(name)
        version = installed_package(python, name)
        yield Finding(
            severity=Severity.WARNING if "warned" in message.names else Severity.ERROR,
            summary=f"{_extension(name, version)} was not built for the installed PyTorch"
            f"{f' {described_torch(whole)}' if whole.version is not None else ''}{_abi(message)}: {message.text[:200]}",
            subject=name or "extension",
            facts=(fact, *((version[0],) if version else ())),
            remedies=reinstall_extension(name, whole, python, system),
            details={"torch": str(whole.version or ""), "symbol": message.names.get("symbol", "")},
        )


def _too_old(whole: Torch, symptoms: tuple[Symptom, ...] | None) -> Iterator[Finding]:
    """Yield that the source of an extension uses what this PyTorch no longer has: the headers of THC since 1.11."""
    for fact, message in reported(symptoms, TOO_OLD)[:1]:
        version = f" {described_torch(whole)}" if whole.version is not None else ""
        yield Finding(
            severity=Severity.ERROR,
            summary=f"The source of the extension is older than the installed PyTorch{version}: {message.text}",
            subject=message.names.get("header", "extension"),
            facts=(fact,),
            remedies=(
                Remedy(
                    summary="Build a newer release of the extension. If there is none, replace what was removed (THC "
                    "headers by those of ATen and c10, AT_CHECK by TORCH_CHECK, -std=c++14 by -std=c++17) or build it "
                    "in an environment with the PyTorch for which it was written: 1.10 is the last with THC",
                    reference="https://github.com/pytorch/pytorch/issues/73520",
                ),
            ),
        )


def _path(message: Symptom) -> str:
    names = message.names
    return names.get("file") or names.get("path") or names.get("file2") or ""


def _distribution(path: str, message: Symptom, python: Python | None) -> str:
    """Return the distribution that the compiled file belongs to, "" where that is not known."""
    if message.kind.startswith("xformers"):
        return "xformers"
    if "mmcv" in message.kind:
        return "mmcv"
    folder = re.search(r"(?:site|dist)-packages[/\\]([A-Za-z]\w{0,60})[/\\.]", path)
    for place in (folder[1] if folder else "", path):
        for mark, name in DISTRIBUTIONS.items():
            if mark in place:
                return name
    if folder:
        from packaging.utils import canonicalize_name

        return canonicalize_name(folder[1])
    # Without a file the only installed one of those that are known to be compiled is meant.
    packages = (python.packages if python is not None else None) or ()
    installed = [found.name for found in packages if found.name in DISTRIBUTIONS.values()]
    return installed[0] if not path and len(installed) == 1 else ""


def _extension(name: str, version: tuple[str, PackageVersion] | None) -> str:
    if name == "torch_extensions":
        return "An extension in the cache torch_extensions"
    return f"{name} {version[1] if version else ''}".strip() or "A compiled extension"


def _abi(message: Symptom) -> str:
    """Return which C++ ABI the symbol is of: strings are __cxx11 in the newer one, Ss in the older one."""
    symbol = message.names.get("symbol", "")
    if "__cxx11" in symbol:
        return " (it asks for the C++11 ABI)"
    return " (it asks for the ABI before C++11)" if re.search(r"(?:RK|E)Ss(?:b|i|$)", symbol) else ""


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
