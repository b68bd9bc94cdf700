"""The open kernel module against the GPUs on the bus."""

from collections.abc import Iterator

from gpudoctor.data.gpu_names import capability_of
from gpudoctor.model import Devices, Driver, DriverState, Finding, Fix, PciGpu, Place, Severity, System
from gpudoctor.model.versions import ComputeCapability
from gpudoctor.registry import CUDA_FAILS, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind
from gpudoctor.symptoms.answers import answers

# The open module needs the GPU System Processor, which came with Turing.
# Source: "Open Linux Kernel Modules" in the driver's README.
FIRST_SUPPORTED = ComputeCapability(7, 5)


@check(family="driver", explains=(*CUDA_FAILS, "driver-not-loaded", "cuda-visible-devices-hides-gpu"))
def open_kernel_module_unsupported_gpu(
    place: Place,
    driver_state: DriverState,
    driver: Driver = Driver(),
    system: System = System(),
    devices: Devices = None,
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The driver's open kernel module does not support this GPU.

    Why: NVIDIA's open kernel module supports Turing (compute capability 7.5) and newer GPUs. It ignores an older one,
    and nvidia-smi says "No devices were found". Since R560, installers choose the open module by default.
    Exception: a GPU that NVML lists works and passes, whatever its age.
    Reference: https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/kernel_open.html
    """
    skip_unless(not place.in_wsl, "WSL has no NVIDIA kernel module")
    gpus = system.nvidia_gpus
    left_out = [gpu for gpu in gpus or () if _is_too_old(gpu) and not _is_listed(gpu, devices)]
    refused = first(of_kind(symptoms, "nvrm-open-module-unsupported"))
    said = answers(symptoms, "open-kernel-module-unsupported-gpu")
    if refused is None and said:
        yield said[0]
        return
    if refused is None:
        if known(driver.module_flavor, "driver.module_flavor") != "open":
            return
        known(gpus, "system.pci_gpus")
        none_found = of_kind(symptoms, "nvidia-smi-no-devices")
        if left_out and not none_found:
            known(devices if devices is not None else driver.nvml_code, "devices")
        if not left_out or (devices is None and driver.nvml_code == 0 and not none_found):
            return
    name = left_out[0].label if left_out else (devices[0].name if devices else None) or "the GPU"
    version = f" {driver.version}" if driver.version else ""
    severity = Severity.WARNING if devices and driver_state.works else Severity.ERROR
    summary = f"The open kernel module{version} supports compute capability {FIRST_SUPPORTED} and newer, but not {name}"
    facts = (refused.fact if refused is not None else "driver.module_flavor", "system.pci_gpus" if left_out else "")
    yield Finding.of(severity, name, summary, facts, Fix("install-proprietary-module"))


def _is_too_old(gpu: PciGpu) -> bool:
    capability = capability_of(name=gpu.name or None, pci_device_id=gpu.device_id)
    return capability is not None and capability < FIRST_SUPPORTED


def _is_listed(gpu: PciGpu, devices: Devices) -> bool:
    """Return whether NVML lists `gpu`; the domain of an address has four digits on the bus and eight in NVML."""
    address = gpu.address.lower()[-10:]
    return any((device.pci_address or "").lower()[-10:] == address for device in devices or ())
