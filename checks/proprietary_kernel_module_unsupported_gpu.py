"""The proprietary kernel module against the GPUs on the bus."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import gpu_name, in_wsl, nvidia_gpus, works
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import capability_of
from gpudoctor.model import ComputeCapability, Device, Driver, Finding, Remedy, Severity, Symptom, System
from gpudoctor.registry import Skip, check, known, skip_unless

# Source: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html: Blackwell and later
# GPUs need the open module.
FIRST_UNSUPPORTED = ComputeCapability(10, 0)
MESSAGE = "requires use of the nvidia open kernel modules"
KIND = "nvrm-open-module-required"


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
def proprietary_kernel_module_unsupported_gpu(
    driver: Driver | None = None,
    system: System | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The proprietary kernel module of the driver does not support this GPU.

    Why: GPUs from Blackwell on (GeForce RTX 50, B200, GB10) run with NVIDIA's open kernel module only; with the
    proprietary one nvidia-smi says "No devices were found".
    Exception: a machine whose GPUs NVML lists passes.
    Reference: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html
    """
    skip_unless(not in_wsl(system), "WSL has no kernel module of NVIDIA")
    if driver is None and not symptoms:
        raise Skip("driver is unknown")
    driver = driver or Driver()
    message = _message(driver) or next((fact for fact, _ in reported(symptoms, KIND)), None)
    none_found = reported(symptoms, "nvidia-smi-no-devices")
    if works(driver, devices) or (devices and not message and not none_found):
        return
    new = [
        gpu
        for gpu in nvidia_gpus(system) or ()
        if (capability_of(name=gpu.name or None, pci_device_id=gpu.device_id) or ComputeCapability(0, 0))
        >= FIRST_UNSUPPORTED
    ]
    if message is None:
        if known(driver.module_flavor, "driver.module_flavor") != "proprietary":
            return
        known(nvidia_gpus(system), "system.pci_gpus")
        if not new or not (none_found or known(devices, "devices") == ()):
            return
    name = gpu_name(new[0]) if new else (devices[0].name if devices else None) or "this GPU"
    yield Finding(
        severity=Severity.ERROR,
        summary=f"The proprietary kernel module{f' {driver.version}' if driver.version else ''} is loaded, "
        f"and {name} needs the open one",
        subject=name,
        facts=(
            *((message,) if message else ("driver.module_flavor",)),
            *(("system.pci_gpus",) if new else ()),
        ),
        remedies=(_open_module(driver, system),),
    )


def _message(driver: Driver) -> str | None:
    """Return the line of the kernel log in which the module refuses a GPU."""
    for number, line in enumerate(driver.kernel_messages or ()):
        if MESSAGE in line.lower():
            return f"driver.kernel_messages[{number}]"
    return None


def _open_module(driver: Driver, system: System | None) -> Remedy:
    branch = str(driver.version.parts[0]) if driver.version is not None else ""
    commands: tuple[str, ...] = ()
    distribution = system.distribution if system is not None else None
    if distribution == "ubuntu" and branch:
        commands = (f"sudo apt-get install nvidia-driver-{branch}-open", "sudo reboot", "nvidia-smi")
    elif distribution is None:
        commands = (f"sudo apt-get install nvidia-driver-{branch or '580'}-open", "sudo reboot", "nvidia-smi")
    return Remedy(
        summary="Install the open kernel module of the same driver (nvidia-open; with NVIDIA's installer: "
        "--kernel-module-type=open)",
        commands=commands,
        needs=("root", "reboot"),
        reference="https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html",
    )
