"""The proprietary kernel module against the GPUs on the bus."""

from collections.abc import Iterator

from gpudoctor.data.gpu_names import capability_of
from gpudoctor.model import ComputeCapability, Devices, Driver, DriverState, Finding, Fix, PciGpu, Place, System
from gpudoctor.registry import CUDA_FAILS, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind

# Source: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html: Blackwell and later
# GPUs need the open module, and so does Grace Hopper (PCI ids of the supported-GPU table of open-gpu-kernel-modules).
FIRST_UNSUPPORTED = ComputeCapability(10, 0)
GRACE_HOPPER = ("2342", "2348")


@check(family="driver", explains=(*CUDA_FAILS, "driver-not-loaded", "cuda-visible-devices-hides-gpu"))
def proprietary_kernel_module_unsupported_gpu(
    place: Place,
    driver_state: DriverState,
    driver: Driver = Driver(),
    system: System = System(),
    devices: Devices = None,
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """The driver's proprietary kernel module does not support this GPU.

    Why: Grace Hopper (GH200) and Blackwell or newer GPUs (GeForce RTX 50, B200, GB10) need NVIDIA's open kernel module.
    With the proprietary one nvidia-smi says "No devices were found".
    Exception: a machine whose GPUs NVML lists passes.
    Reference: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html
    """
    skip_unless(not place.in_wsl, "WSL has no NVIDIA kernel module")
    refused = first(of_kind(symptoms, "nvrm-open-module-required"))
    none_found = of_kind(symptoms, "nvidia-smi-no-devices")
    if driver_state.works or (devices and refused is None and not none_found):
        return
    gpus = system.nvidia_gpus
    new = [gpu for gpu in gpus or () if _is_new(gpu)]
    if refused is None:
        if known(driver.module_flavor, "driver.module_flavor") != "proprietary":
            return
        known(gpus, "system.pci_gpus")
        if not new or not (none_found or known(devices, "devices") == ()):
            return
    name = new[0].label if new else (devices[0].name if devices else None) or "this GPU"
    version = f" {driver.version}" if driver.version else ""
    summary = f"The proprietary kernel module{version} is loaded, but {name} needs the open one"
    facts = (refused.fact if refused is not None else "driver.module_flavor", "system.pci_gpus" if new else "")
    yield Finding.error(name, summary, facts, Fix("install-open-module"))


def _is_new(gpu: PciGpu) -> bool:
    capability = capability_of(name=gpu.name or None, pci_device_id=gpu.device_id)
    grace_hopper = gpu.device_id.upper() in GRACE_HOPPER or "GH200" in gpu.name
    return grace_hopper or (capability is not None and capability >= FIRST_UNSUPPORTED)
