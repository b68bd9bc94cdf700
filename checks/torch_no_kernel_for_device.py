"""The machine code in PyTorch's build against the compute capability of each device."""

import re
from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.conclusions.error_codes import gpu_name, nvidia_gpus, text_with
from gpudoctor.conclusions.installed import Machine, as_devices, known_gpus, torch_fact, whole_torch
from gpudoctor.conclusions.nvrtc import named_gpus, nvrtc
from gpudoctor.data import TorchBuild, capability_of, runs_on, toolkit_span, torch_builds, torch_releases
from gpudoctor.data.numerics import is_right
from gpudoctor.model import (
    ComputeCapability,
    Device,
    Driver,
    Finding,
    KnownGpu,
    Origin,
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
from gpudoctor.remedies import python_command, set_variable, show_devices

# What PyTorch says, in lower case. Source: torch/cuda/__init__.py of PyTorch 2.14.1 and older.
WARNINGS = (
    "is not compatible with the current pytorch install",
    "with cuda capability sm_",
    "does not include kernels for this gpu",
    "no published pytorch cuda builds",
    "which is of compute capability",
    "no longer supports this gpu because it is too old",
    "minimum and maximum cuda capability supported",
    "which requires cuda_version >=",
)
# What libraries say whose kernels are for other devices. Source: the message "kernel-built-for-other-device".
OTHERS = (
    *("was built for sm", "gpus or newer", "(too new)"),
    *("kernel binaries compatible with compute capability", "minimum required cuda capability"),
)
# What CUDA says at the first kernel: errors 209 (48 before CUDA 10.1) and 98, and ptxas for a kernel of Triton.
ERRORS = (
    "no kernel image",
    "cudaerrornokernelimagefordevice",
    "cuda runtime error (48)",
    "cuda runtime error (209)",
    "invalid device function",
    "cudaerrorinvaliddevicefunction",
    *OTHERS,
)
PTXAS = ("is not defined for option 'gpu-name'", "is not a recognized processor")
MESSAGES = (*ERRORS, *WARNINGS, *PTXAS)
WITHOUT_FLASH_ATTENTION = Remedy(
    summary="FlashAttention 2 needs Ampere (RTX 30, A100) or newer: on this GPU do without it, "
    'attn_implementation="sdpa" or "eager", VLLM_ATTENTION_BACKEND=XFORMERS, or without flash-attn installed',
    reference="https://github.com/Dao-AILab/flash-attention#nvidia-cuda-support",
)
FIND_OUT = "import torch; print(torch.__version__, torch.cuda.get_arch_list(), torch.cuda.get_device_capability())"


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
    origin: Origin,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    devices: tuple[Device, ...] | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    python: Python | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
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
    unknown_to_nvrtc = nvrtc(cupy=None, cupy_runtime=None, toolkit=None, python=None, symptoms=symptoms).refused
    refused = (unknown_to_nvrtc.fact, unknown_to_nvrtc.text) if unknown_to_nvrtc else None
    failed = text_with(*ERRORS, torch_runtime=torch_runtime) if origin.is_report else None
    skip_unless(refused or failed or known(whole.installed, "torch.installed"), "PyTorch is not installed")
    skip_unless(whole.build in (None, "cuda"), "PyTorch is not built for CUDA")
    skip_unless(devices != () or (torch_runtime and torch_runtime.device_capabilities), "there is no NVIDIA GPU")
    code = _code(whole, torch, torch_runtime, system)
    gpus = known_gpus(devices, torch_runtime) or _reported_gpus(torch_runtime)
    if not gpus and origin.is_report:
        gpus = _named_gpus(system)
    if refused is not None:
        gpus = gpus or named_gpus(symptoms)
        yield _refused_by_nvrtc(
            refused,
            gpus,
            whole,
            Machine(python=python, system=system, driver=driver, devices=as_devices(gpus, devices)),
        )
        return
    if failed is not None and not gpus:
        yield _unknown_gpu(failed, whole, Machine(python=python, system=system, driver=driver))
        return
    known(gpus or None, "devices[0].compute_capability")
    machine = Machine(python=python, system=system, driver=driver, devices=as_devices(gpus, devices))
    code = code or _reported_code(torch_runtime)
    if code is not None and text_with(*MESSAGES, torch_runtime=torch_runtime) is not None:
        # Only a part of PyTorch holds PTX, so that it does not help where PyTorch itself complains.
        code = replace(code, lists=tuple(tuple(n for n in names if n.startswith("sm_")) for names in code.lists))
    if code is None:
        message = known(text_with(*MESSAGES, torch_runtime=torch_runtime), "torch.architectures")
        yield _reported_finding(message, gpus[0], whole, machine)
        return
    runs = {gpu: _computes(gpu, torch_runtime) or code.runs_on(whole, gpu.capability) for gpu in gpus}
    if failed is not None:
        # A build of the release that runs here would not have failed.
        runs = {gpu: False if answer is None else answer for gpu, answer in runs.items()}
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
    if origin.is_report and all(runs.values()):
        yield from _code_of_others(gpus[0], whole, torch_runtime, machine)
    if None in runs.values() and False not in runs.values():
        raise Skip("torch.cuda_version is unknown, and the builds of this release differ in what they run on")


def _unknown_gpu(message: tuple[str, str], whole: Torch, machine: Machine) -> Finding:
    """Return the finding where CUDA found no code for a GPU that the report does not name."""
    return Finding(
        severity=Severity.ERROR,
        summary=f"The program holds no code for the GPU: PyTorch{f' {whole.version}' if whole.version else ''} or an "
        f"extension of it was built for other compute capabilities ({message[1][:120]})",
        subject=f"torch {whole.version}" if whole.version else "torch",
        facts=(message[0],),
        remedies=(
            *((WITHOUT_FLASH_ATTENTION,) if "gpus or newer" in message[1].lower() else ()),
            Remedy(
                summary="Compare the GPU's compute capability with the list of the build: RTX 50 and newer (12.0) "
                "need a build for cu128 or newer, GTX 10 and older and V100 (5.0 to 7.0) one for cu126 or older, "
                "RTX 30 and 40 (8.6, 8.9) any from cu111 on; Kepler (3.x) only runs builds from source",
                commands=(
                    "nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv",
                    python_command(machine.python, "-c", FIND_OUT),
                ),
                reference="https://developer.nvidia.com/cuda-gpus",
            ),
            machine.install_torch(whole),
            _compile_for(None, machine),
        ),
    )


def _refused_by_nvrtc(message: tuple[str, str], gpus: tuple[KnownGpu, ...], whole: Torch, machine: Machine) -> Finding:
    """Return the finding where the NVRTC that PyTorch brings does not compile for the GPU.

    PyTorch's own machine code may run there, of an older device of the same major version: the release is not kept.
    """
    gpu = gpus[0] if gpus else None
    of = f" for {gpu}{toolkit_span(gpu.capability)}" if gpu else " for this GPU: it is of a CUDA before the GPU's time"
    return Finding(
        severity=Severity.ERROR,
        summary=f"The NVRTC of PyTorch{f' {whole.version}' if whole.version else ''} does not compile{of}",
        subject=gpu.name if gpu else "torch",
        facts=tuple(dict.fromkeys((message[0], *((gpu.fact,) if gpu else ())))),
        remedies=(
            machine.install_torch(),
            Remedy(
                summary="Which CUDA is the first that compiles for a GPU: 11.1 for RTX 30 (8.6), 11.8 for RTX 40 and "
                "Hopper (8.9, 9.0), 12.8 for RTX 50 (12.0); PyTorch's build (cu118, cu128) must be for it or a newer "
                "one, a newer toolkit or driver beside PyTorch does not help",
                commands=(
                    "nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv",
                    python_command(machine.python, "-c", FIND_OUT),
                ),
            ),
        ),
        details={"compute_capability": str(gpu.capability)} if gpu else {},
    )


def _code_of_others(
    gpu: KnownGpu, whole: Torch, torch_runtime: TorchRuntime | None, machine: Machine
) -> Iterator[Finding]:
    """Yield the finding where code is missing, and not that of PyTorch: of an extension or of Triton's ptxas."""
    failed = text_with(*ERRORS, torch_runtime=torch_runtime)
    ptxas = text_with(*PTXAS, torch_runtime=torch_runtime)
    if failed is None and ptxas is None:
        return
    built = f"PyTorch{f' {whole.version}' if whole.version else ''} has code for {gpu}"
    fact = (failed or ptxas or ("", ""))[0]
    yield Finding(
        severity=Severity.ERROR,
        summary=built + (", and Triton's ptxas does not know it" if failed is None else ", and an extension has none"),
        subject=gpu.name,
        facts=tuple(dict.fromkeys((fact, gpu.fact))),
        remedies=(_newer_ptxas(machine) if failed is None else _compile_for(gpu, machine),),
        details={"compute_capability": str(gpu.capability)},
    )


def _compile_for(gpu: KnownGpu | None, machine: Machine) -> Remedy:
    """Return how to compile an extension for the GPU; of one that is not known the number is to be looked up."""
    return replace(
        set_variable(
            system=machine.system,
            name="TORCH_CUDA_ARCH_LIST",
            value=str(gpu.capability) if gpu else "<compute capability>",
            summary=("" if gpu else "If it is an extension that fails: ")
            + "Compile the extension that fails (flash-attn, xformers, a CUDA kernel of the project) "
            "again for this GPU, with --no-binary and --no-build-isolation, or install its newest release",
        ),
        reference="https://docs.pytorch.org/docs/stable/cpp_extension.html",
    )


def _newer_ptxas(machine: Machine) -> Remedy:
    return set_variable(
        system=machine.system,
        name="TRITON_PTXAS_PATH",
        value="/usr/local/cuda/bin/ptxas",
        summary="Let Triton use the ptxas of an installed CUDA toolkit that knows the GPU, or install a newer PyTorch, "
        "which brings a newer Triton",
    )


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


def _computes(gpu: KnownGpu, torch_runtime: TorchRuntime | None) -> bool | None:
    """Return True where a product of PyTorch on the device came out right, else None."""
    index = re.search(r"device_capabilities\[(\d+)\]", gpu.fact)
    results = (torch_runtime.precision_results if torch_runtime is not None else None) or ()
    if index and any(is_right(result) for result in results if result.device == f"cuda:{index[1]}"):
        return True
    return None


def _reported_gpus(torch_runtime: TorchRuntime | None) -> tuple[KnownGpu, ...]:
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
    return (KnownGpu(name=named[1] if named else "the GPU", capability=capability, fact=found[0]),)


def _named_gpus(system: System | None) -> tuple[KnownGpu, ...]:
    """Return the GPU that a report names; of several nothing tells which is meant."""
    found = nvidia_gpus(system) or ()
    capability = capability_of(found[0].name, found[0].device_id or None) if len(found) == 1 else None
    if capability is None:
        return ()
    return (KnownGpu(name=gpu_name(found[0]), capability=capability, fact="system.pci_gpus"),)


def _reported_code(torch_runtime: TorchRuntime | None) -> _Code | None:
    """Return the list in PyTorch's message: "supports CUDA capabilities sm_50 sm_60"."""
    found = text_with(*MESSAGES, torch_runtime=torch_runtime)
    match = re.search(r"supports CUDA capabilities ((?:(?:sm|compute)_\d+[af]? ?)+)", found[1]) if found else None
    return _Code(lists=(tuple(match[1].split()),), fact=found[0]) if match and found else None


def _reported_finding(message: tuple[str, str], gpu: KnownGpu, whole: Torch, machine: Machine) -> Finding:
    """Return the finding where PyTorch says so itself, and what its build holds is not known."""
    return Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch{f' {whole.version}' if whole.version else ''} says that its build has no code for {gpu}",
        subject=gpu.name,
        facts=tuple(dict.fromkeys((message[0], gpu.fact))),
        # The words of CUDA do not tell whether the kernel was one of PyTorch's.
        remedies=(machine.install_torch(whole), *((_compile_for(gpu, machine),) if _is_of_cuda(message[1]) else ())),
        details={"compute_capability": str(gpu.capability)},
    )


def _is_of_cuda(text: str) -> bool:
    return any(error in text.lower() for error in ERRORS)


def _described(code: _Code, whole: Torch) -> str:
    if len(code.lists) == 1:
        return " ".join(code.lists[0])
    release = whole.version.minor_release if whole.version else ""
    return f"{' '.join(sorted(set().union(*code.lists), key=_number))} at most in any build of {release}"


def _number(architecture: str) -> int:
    return int(re.sub(r"\D", "", architecture) or 0)


def _version_fact(whole: Torch, torch: Torch | None, torch_runtime: TorchRuntime | None) -> tuple[str, ...]:
    return (torch_fact("version", torch, torch_runtime),) if whole.version else ()


def _remedies(runs: dict[KnownGpu, bool | None], whole: Torch, machine: Machine) -> Iterator[Remedy]:
    install = machine.install_torch(whole)
    works = any(runs.values())
    if install.commands or not works:
        yield install
    working = [
        device.nvml_index
        for device in machine.devices or ()
        if any(runs[gpu] and gpu.capability == device.compute_capability for gpu in runs)
    ]
    if working:
        yield show_devices(
            system=machine.system,
            nvml_indices=working,
            summary="Let PyTorch see only the GPUs that it runs on",
        )
