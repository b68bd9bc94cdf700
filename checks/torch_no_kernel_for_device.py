"""The machine code in PyTorch's build against the compute capability of each device."""

import re
from collections.abc import Iterator

from gpudoctor.data import TorchBuild, runs_on, torch_builds, torch_releases
from gpudoctor.model import (
    ComputeCapability,
    Device,
    Driver,
    Finding,
    Python,
    Remedy,
    Severity,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.record import record
from gpudoctor.reasoning.installed import Gpu, Machine, as_devices, known_gpus, torch_fact, whole_torch
from gpudoctor.reasoning.numerics import is_right
from gpudoctor.reasoning.symptoms import text_with
from gpudoctor.registry import Skip, applies, check, known
from gpudoctor.remedies import set_variable

# What PyTorch says, in lower case. Source: torch/cuda/__init__.py of PyTorch 2.14.1 and older.
MESSAGES = (
    "no kernel image is available",
    "is not compatible with the current pytorch installation",
    "does not include kernels for this gpu",
    "which is of compute capability",
)


@record
class _Code:
    """What the build holds machine code for: `lists` has one list, or one for each build that it may be.

    fact: where that is read. source: the table's, where it is not read from the installation.
    """

    lists: tuple[tuple[str, ...], ...]
    fact: str
    source: str = ""

    def runs_on(self, torch: Torch, capability: ComputeCapability) -> bool | None:
        """Return whether the build runs on the device; None where it may be one that does or one that does not."""
        answers = {runs_on(names, capability, torch.cuda_version) for names in self.lists}
        return answers.pop() if len(answers) == 1 else None


@check(family="torch", explains=("torch-wrong-results", "torch-cuda-unavailable", "fp16-nan"))
def torch_no_kernel_for_device(
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    devices: tuple[Device, ...] | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    python: Python | None = None,
) -> Iterator[Finding]:
    """PyTorch's build has no machine code and no PTX that runs on the GPU.

    Why: torch.cuda.is_available() is true, and the first kernel ends with "no kernel image is available for execution
    on the device". A GPU newer than the build needs a build for a newer CUDA, one that CUDA 13 has dropped (before
    compute capability 7.5) an older one; the wheels hold no PTX that the driver could compile.
    Exception: code for sm_86 runs on 8.9 too, as on every device of the same major and the same or a higher minor
    version. A device on which PyTorch computes passes. Where another GPU runs, this is a warning.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/01-introduction/cuda-platform.html
    """
    whole = whole_torch(torch, torch_runtime)
    applies(known(whole.installed, "torch.installed"), "PyTorch is not installed")
    applies(whole.build in (None, "cuda"), "PyTorch is not built for CUDA")
    applies(devices != () or (torch_runtime and torch_runtime.device_capabilities), "there is no NVIDIA GPU")
    code = _code(whole, torch, torch_runtime, system)
    gpus = known_gpus(devices, torch_runtime) or _reported_gpus(torch_runtime)
    known(gpus or None, "devices[0].compute_capability")
    machine = Machine(python=python, system=system, driver=driver, devices=as_devices(gpus, devices))
    code = code or _reported_code(torch_runtime)
    if code is None:
        message = known(text_with(*MESSAGES, torch_runtime=torch_runtime), "torch.architectures")
        yield _reported_finding(message, gpus[0], whole, machine)
        return
    runs = {gpu: _computes(gpu, torch_runtime) or code.runs_on(whole, gpu.capability) for gpu in gpus}
    for gpu in {gpu.capability: gpu for gpu in reversed(gpus) if runs[gpu] is False}.values():
        yield Finding(
            severity=Severity.WARNING if any(runs.values()) else Severity.ERROR,
            summary=f"PyTorch{f' {whole.version}' if whole.version else ''} has machine code for "
            f"{_described(code, whole)}, which does not run on {gpu}",
            subject=gpu.name,
            facts=tuple(dict.fromkeys((code.fact, *_version_fact(whole, torch, torch_runtime), gpu.fact))),
            remedies=tuple(_remedies(runs, whole, machine)),
            details={"compute_capability": str(gpu.capability), **({"table": code.source} if code.source else {})},
        )
    if None in runs.values() and False not in runs.values():
        raise Skip("torch.cuda_version is unknown, and the builds of this release differ in what they run on")


def _code(whole: Torch, torch: Torch | None, torch_runtime: TorchRuntime | None, system: System | None) -> _Code | None:
    """Return what the build has machine code for: as read from it, else as the table knows it."""
    if whole.architectures:
        return _Code(lists=(whole.architectures,), fact=torch_fact("architectures", torch, torch_runtime))
    builds = _builds(whole)
    platform = "linux_aarch64" if system is not None and system.machine in ("aarch64", "arm64") else "linux_x86_64"
    if system is not None and system.os == "windows":
        platform = "windows_amd64"
    lists = tuple(dict.fromkeys(build.platform_architectures.get(platform, ()) for build in builds))
    if not lists or () in lists:
        return None
    return _Code(lists=lists, fact=torch_fact("version", torch, torch_runtime), source=builds[0].source)


def _builds(whole: Torch) -> tuple[TorchBuild, ...]:
    """Return the builds of PyTorch's own that this may be; none for a build of conda or from source."""
    version = whole.version
    if version is None or whole.conda_build:
        return ()
    listed = any(version.public in release.versions for release in torch_releases())
    of_release = torch_builds(version.minor_release) if listed else ()
    if version.local:
        return tuple(build for build in of_release if build.variant == version.local)
    if whole.cuda_version is not None:
        return tuple(build for build in of_release if build.cuda == whole.cuda_version)
    return of_release


def _computes(gpu: Gpu, torch_runtime: TorchRuntime | None) -> bool | None:
    """Return True where a product of PyTorch on the device came out right, else None."""
    index = re.search(r"device_capabilities\[(\d+)\]", gpu.fact)
    results = (torch_runtime.precision_results if torch_runtime is not None else None) or ()
    if index and any(is_right(result) for result in results if result.device == f"cuda:{index[1]}"):
        return True
    return None


def _reported_gpus(torch_runtime: TorchRuntime | None) -> tuple[Gpu, ...]:
    """Return the GPU that a message of PyTorch names, with its compute capability."""
    found = text_with(*MESSAGES, torch_runtime=torch_runtime)
    if found is None:
        return ()
    match = re.search(r"capability sm_(\d{1,2})(\d)\b|compute capability \(CC\) (\d{1,2})\.(\d)", found[1])
    if match is None:
        return ()
    capability = ComputeCapability(int(match[1] or match[3]), int(match[2] or match[4]))
    named = re.search(
        r"(?:^|Found GPU\d+ )\s*((?:NVIDIA|GeForce|Tesla|Quadro)[\w .-]*?) (?:with CUDA|which is)", found[1]
    )
    return (Gpu(name=named[1] if named else "the GPU", capability=capability, fact=found[0]),)


def _reported_code(torch_runtime: TorchRuntime | None) -> _Code | None:
    """Return the list in PyTorch's message: "supports CUDA capabilities sm_50 sm_60"."""
    found = text_with(*MESSAGES, torch_runtime=torch_runtime)
    match = re.search(r"supports CUDA capabilities ((?:(?:sm|compute)_\d+[af]? ?)+)", found[1]) if found else None
    return _Code(lists=(tuple(match[1].split()),), fact=found[0]) if match and found else None


def _reported_finding(message: tuple[str, str], gpu: Gpu, whole: Torch, machine: Machine) -> Finding:
    """Return the finding where PyTorch says so itself, and what its build holds is not known."""
    return Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch{f' {whole.version}' if whole.version else ''} says that its build has no code for {gpu}",
        subject=gpu.name,
        facts=tuple(dict.fromkeys((message[0], gpu.fact))),
        remedies=(machine.install_torch(whole),),
        details={"compute_capability": str(gpu.capability)},
    )


def _described(code: _Code, whole: Torch) -> str:
    if len(code.lists) == 1:
        return " ".join(code.lists[0])
    release = whole.version.minor_release if whole.version else ""
    return f"{' '.join(sorted(set().union(*code.lists), key=_number))} at most in any build of {release}"


def _number(architecture: str) -> int:
    return int(re.sub(r"\D", "", architecture) or 0)


def _version_fact(whole: Torch, torch: Torch | None, torch_runtime: TorchRuntime | None) -> tuple[str, ...]:
    return (torch_fact("version", torch, torch_runtime),) if whole.version else ()


def _remedies(runs: dict[Gpu, bool | None], whole: Torch, machine: Machine) -> Iterator[Remedy]:
    install = machine.install_torch(whole)
    works = any(runs.values())
    if install.commands or not works:
        yield install
    working = [
        device.uuid
        for device in machine.devices or ()
        if device.uuid and any(runs[gpu] and gpu.capability == device.compute_capability for gpu in runs)
    ]
    if working:
        yield set_variable(
            system=machine.system,
            name="CUDA_VISIBLE_DEVICES",
            value=",".join(working),
            summary="Let PyTorch see only the GPUs that it runs on",
        )
