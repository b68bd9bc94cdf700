"""Whether the machine has an NVIDIA GPU at all."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import (
    INSUFFICIENT_DRIVER,
    NO_DEVICE,
    NVML_VERSION_MISMATCH,
    UNKNOWN_ERROR,
    asks_for_cuda,
    cuda_error,
    no_driver_reported,
    nvidia_gpus,
    nvml_error,
    works,
)
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Cupy, Device, Driver, Finding, Remedy, Severity, Symptom, System, Torch, TorchRuntime
from gpudoctor.registry import Skip, check, known, skip_unless

# Symptoms of a kernel module that found a GPU and could not take it.
THERE = ("nvrm-legacy-gpu", "nvrm-probe-not-called", "nvrm-open-module-*", "nvrm-gpu-not-in-release")
# Symptoms of programs that looked for a GPU of NVIDIA, or for its driver, and found none.
NOT_FOUND = ("torch-not-compiled-with-cuda", "nvidia-smi-not-found", "nvml-*", "container-no-device-driver")
INSERTING = "kernel-module-not-inserted"
LOOK = Remedy(
    summary="See whether the PCI bus shows a GPU of NVIDIA, and which kernel driver holds it: one that is not there is "
    "not seated, has no power, or was not handed to this virtual machine",
    commands=("lspci -nnk | grep -iA3 nvidia",),
)
REMEDIES = (
    Remedy(
        summary="Run on a machine with an NVIDIA GPU; in a virtual machine, attach one (PCI passthrough or vGPU)",
        reference="https://docs.nvidia.com/cuda/cuda-installation-guide-linux/",
    ),
    Remedy(summary="Leave it if the CPU is to compute: a CUDA build runs there too, it is only larger"),
)


@check(
    family="driver",
    explains=(
        "torch-cuda-unavailable",
        "torch-cpu-build",
        "windows-pypi-cpu-wheel",
        "cupy-unusable",
        "driver-missing",
        "driver-not-loaded",
        "driver-too-old",
        "libcuda-not-on-linker-path",
        "cuda-init-unknown-error-999",
        "cuda-visible-devices-hides-gpu",
        "nvidia-container-toolkit-missing",
    ),
)
def no_nvidia_gpu(
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy: Cupy | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """There is no NVIDIA GPU to use.

    Why: a CUDA build of PyTorch or CuPy runs on an NVIDIA GPU only; without one PyTorch works on the CPU and CuPy
    not at all. Where nothing asks for CUDA this is advice, no fault: a CPU build on such a machine is right.
    Exception: WSL and the boards of the Jetson family have no GPU on the PCI bus; macOS has none since 10.14.
    Reference: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#verify-you-have-a-cuda-capable-gpu
    """
    if system is None and not symptoms:
        raise Skip("system is unknown")
    system = system or System()
    missed_on_mac = system.os == "darwin" and no_driver_reported(torch_runtime, symptoms)
    skip_unless(system.os != "darwin" or missed_on_mac, "macOS has no NVIDIA GPUs")
    skip_unless("tegra" not in (system.kernel or ""), "the GPU of a Jetson is not on the PCI bus")
    skip_unless(torch is None or torch.build != "rocm", "PyTorch is built for AMD")
    # A build for the CPU does not look for a driver.
    asks = asks_for_cuda(torch, cupy)
    unavailable = torch_runtime is not None and torch_runtime.available is False
    missed = _missed(torch_runtime, symptoms) or (unavailable and asks is not False)
    asked = asks or missed or _fails(torch_runtime, symptoms)
    available = torch_runtime is not None and torch_runtime.available
    if devices or works(driver, devices) or _module_answers(driver) or available:
        return
    told = _told(missed, driver, symptoms) if not nvidia_gpus(system) else None
    if told is not None and system.pci_gpus is None:
        yield _as_told(told, asked is not False)
        return
    if missed_on_mac and not nvidia_gpus(system):
        yield _on_mac(missed_on_mac)
        return
    skip_unless(not system.wsl, "WSL shows no PCI bus")
    gpus = known(nvidia_gpus(system), "system.pci_gpus")
    if gpus:
        return
    yield Finding(
        severity=Severity.WARNING if asked else Severity.INFO,
        summary=f"The PCI bus holds no NVIDIA GPU{_others(system)}{_user(torch, cupy)}",
        subject="GPU",
        facts=("system.pci_gpus", *(("torch.build",) if torch is not None and torch.build else ())),
        remedies=REMEDIES if asked else (),
    )


def _on_mac(fact: str) -> Finding:
    """Return the finding of a CUDA build on a Mac: macOS 10.13 was the last with drivers of NVIDIA."""
    return Finding(
        severity=Severity.WARNING,
        summary="A CUDA build of PyTorch runs on a Mac and finds no NVIDIA driver",
        subject="GPU",
        facts=(fact,),
        remedies=(
            Remedy(
                summary="Use a build for the CPU (on Apple silicon with MPS): only a Mac with a GPU of NVIDIA, macOS "
                "10.13 or older and NVIDIA's web driver and CUDA driver runs CUDA",
                reference="https://developer.nvidia.com/nvidia-cuda-toolkit-developer-tools-mac-hosts",
            ),
        ),
    )


def _missed(torch_runtime: TorchRuntime | None, symptoms: tuple[Symptom, ...] | None) -> bool:
    """Return whether a program looked for a GPU and found none."""
    codes = (NO_DEVICE, INSUFFICIENT_DRIVER)
    seen = no_driver_reported(torch_runtime, symptoms) or any(
        cuda_error(code, None, torch_runtime, symptoms=symptoms) for code in codes
    )
    return bool(seen or reported(symptoms, *NOT_FOUND))


def _fails(torch_runtime: TorchRuntime | None, symptoms: tuple[Symptom, ...] | None) -> bool:
    """Return whether CUDA fails without a reason, as it also does on a driver that has no GPU."""
    return cuda_error(UNKNOWN_ERROR, None, torch_runtime, symptoms=symptoms) is not None


def _told(missed: bool, driver: Driver | None, symptoms: tuple[Symptom, ...] | None) -> tuple[str, Symptom] | None:
    """Return the words of the report that there is no NVIDIA GPU, or that there is another where a driver is missed."""
    said = reported(symptoms, "no-nvidia-gpu-told")
    if said:
        return said[0]
    if reported(symptoms, "nvidia-gpu-named"):
        return None
    driver_known = driver is not None and (driver.version is not None or driver.module_loaded)
    not_found = reported(symptoms, "nvrm-no-gpu")
    if not_found and not reported(symptoms, *THERE):
        return not_found[0]
    refused = [told for told in reported(symptoms, INSERTING) if told[1].names.get("reason") == "No such device"]
    if refused and not reported(symptoms, *THERE):
        return refused[0]
    other = reported(symptoms, "other-gpu-named")
    return other[0] if other and missed and not driver_known else None


def _as_told(told: tuple[str, Symptom], asked: bool) -> Finding:
    fact, message = told
    by_kernel = message.kind in ("nvrm-no-gpu", INSERTING)
    summary = f'The report says that there is no NVIDIA GPU: "{message.text}"'
    if message.kind == "other-gpu-named":
        name = message.names.get("gpu", message.text)
        summary = f"A program looks for an NVIDIA GPU, and the report names only {name}"
    elif by_kernel:
        summary = f'The driver\'s kernel module finds no GPU: "{message.text}"'
    return Finding(
        severity=Severity.WARNING if asked or by_kernel else Severity.INFO,
        summary=summary,
        subject="GPU",
        facts=(fact,),
        remedies=((LOOK,) if by_kernel else ()) + (REMEDIES if asked or by_kernel else ()),
    )


def _others(system: System) -> str:
    """Return which other GPUs are there: an AMD or Intel one runs no CUDA."""
    vendors = {"amd": "AMD", "intel": "Intel"}
    others = sorted({vendors.get(gpu.vendor, "another vendor") for gpu in system.pci_gpus or ()})
    return f", only GPUs of {' and '.join(others)}" if others else ""


def _user(torch: Torch | None, cupy: Cupy | None) -> str:
    if torch is not None and torch.build == "cuda":
        return f", and PyTorch {torch.version or ''} is a CUDA build".replace("  ", " ")
    if cupy is not None and asks_for_cuda(None, cupy):
        return ", and CuPy is installed"
    if torch is not None and torch.build == "cpu":
        return "; PyTorch is a CPU build, as it should be"
    return ""


def _module_answers(driver: Driver | None) -> bool:
    """Return whether the kernel module answers: it stays loaded only where it found a GPU, be it on a hidden bus."""
    return driver is not None and (bool(driver.module_loaded) or nvml_error(NVML_VERSION_MISMATCH, driver) is not None)
