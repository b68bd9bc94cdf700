"""The open kernel module against the GPUs on the bus."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import gpu_name, in_wsl, nvidia_gpus, works
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import capability_of
from gpudoctor.model import ComputeCapability, Device, Driver, Finding, PciGpu, Remedy, Severity, Symptom, System
from gpudoctor.registry import Skip, check, known, skip_unless

# The open module needs the GPU System Processor, which came with Turing.
# Source: "Open Linux Kernel Modules" in the driver's README.
FIRST_SUPPORTED = ComputeCapability(7, 5)
MESSAGE = "does not include the required gpu"
KIND = "nvrm-open-module-unsupported"


@check(
    family="driver",
    explains=(
        "torch-cuda-unavailable",
        "cupy-unusable",
        "cuda-init-unknown-error-999",
        "driver-not-loaded",
        "cuda-visible-devices-hides-gpu",
    ),
)
def open_kernel_module_unsupported_gpu(
    driver: Driver | None = None,
    system: System | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The open kernel module of the driver does not support this GPU.

    Why: NVIDIA's open kernel module runs GPUs from Turing (compute capability 7.5) on; an older one is left out, and
    nvidia-smi says "No devices were found". From R560 on installers choose the open module unless told otherwise.
    Exception: a GPU that NVML lists works and passes, whatever its age.
    Reference: https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/kernel_open.html
    """
    skip_unless(not in_wsl(system), "WSL has no kernel module of NVIDIA")
    if driver is None and not symptoms:
        raise Skip("driver is unknown")
    driver = driver or Driver()
    message = _message(driver) or next((fact for fact, _ in reported(symptoms, KIND)), None)
    none_found = reported(symptoms, "nvidia-smi-no-devices")
    if message is None:
        known(driver.module_flavor, "driver.module_flavor")
    if message is None and driver.module_flavor != "open":
        return
    left_out = [gpu for gpu in nvidia_gpus(system) or () if _too_old(gpu) and not _listed(gpu, devices)]
    if message is None:
        known(nvidia_gpus(system), "system.pci_gpus")
        if left_out and not none_found:
            known(devices if devices is not None else driver.nvml_code, "devices")
        if not left_out or (devices is None and driver.nvml_code == 0 and not none_found):
            return
    name = gpu_name(left_out[0]) if left_out else (devices[0].name if devices else None) or "the GPU"
    yield Finding(
        severity=Severity.WARNING if devices and works(driver, devices) else Severity.ERROR,
        summary=f"The open kernel module{f' {driver.version}' if driver.version else ''} is loaded, which supports "
        f"compute capability {FIRST_SUPPORTED} and newer, not {name}",
        subject=name,
        facts=(
            *((message,) if message else ("driver.module_flavor",)),
            *(("system.pci_gpus",) if left_out else ()),
        ),
        remedies=(_proprietary_module(driver, system),),
    )


def _message(driver: Driver) -> str | None:
    """Return the line of the kernel log in which the module refuses a GPU."""
    for number, line in enumerate(driver.kernel_messages or ()):
        if MESSAGE in line.lower() or "not supported by open nvidia.ko" in line.lower():
            return f"driver.kernel_messages[{number}]"
    return None


def _too_old(gpu: PciGpu) -> bool:
    capability = capability_of(name=gpu.name or None, pci_device_id=gpu.device_id)
    return capability is not None and capability < FIRST_SUPPORTED


def _listed(gpu: PciGpu, devices: tuple[Device, ...] | None) -> bool:
    """Return whether NVML lists `gpu`; the domain of an address has four digits on the bus and eight in NVML."""
    address = gpu.address.lower()[-10:]
    return any((device.pci_address or "").lower()[-10:] == address for device in devices or ())


def _proprietary_module(driver: Driver, system: System | None) -> Remedy:
    branch = str(driver.version.parts[0]) if driver.version is not None else ""
    distribution = system.distribution if system is not None else None
    commands: tuple[str, ...] = ()
    if distribution == "ubuntu" and branch:
        commands = (f"sudo apt-get install nvidia-driver-{branch}", "sudo reboot", "nvidia-smi")
    elif distribution == "debian":
        commands = ("sudo apt-get install nvidia-kernel-dkms", "sudo reboot", "nvidia-smi")
    elif distribution is None:
        commands = (f"sudo apt-get install nvidia-driver-{branch or '580'}", "sudo reboot", "nvidia-smi")
    return Remedy(
        summary="Install the proprietary kernel module of the same driver (with NVIDIA's installer: "
        "--kernel-module-type=proprietary), of Ubuntu nvidia-driver-580 without -open; R580 is the last branch for "
        "Maxwell, Pascal and Volta",
        commands=commands,
        needs=("root", "reboot"),
        reference="https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html",
    )
