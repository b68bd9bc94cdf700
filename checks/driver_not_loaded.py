"""A driver that is installed, and a kernel that has not loaded it."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import (
    NVML_DRIVER_NOT_LOADED,
    in_container,
    in_wsl,
    no_driver_reported,
    nvidia_gpus,
    nvml_error,
    works,
)
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Device, Driver, Finding, Remedy, Severity, Symptom, System, TorchRuntime
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.remedies import load_driver, reinstall_driver, start_container_with_gpu, update_driver

# Symptoms of a kernel that has no module of the driver, or refuses it.
REFUSED = (
    "kernel-module-key-rejected",
    "kernel-module-not-inserted",
    "kernel-module-not-found",
    "dkms-build-failed",
    "installer-finds-nouveau",
    "installer-module-not-built",
    "nvrm-probe-not-called",
    "nvrm-legacy-gpu",
    "nvrm-gpu-not-in-release",
    "nvidia-device-node-missing",
)
# Words that tell why nvidia-smi fails, beside those that it does.
SECURE_BOOT = "secure-boot-told"
NEW_KERNEL = "kernel-upgraded-told"
NOUVEAU_FILE = "/etc/modprobe.d/blacklist-nouveau.conf"


@check(
    family="driver",
    explains=(
        "torch-cuda-unavailable",
        "cupy-unusable",
        "cuda-init-unknown-error-999",
        "device-permissions-missing",
        "fabric-manager-not-running",
        "cuda-visible-devices-hides-gpu",
    ),
)
def driver_not_loaded(
    driver: Driver | None = None,
    system: System | None = None,
    devices: tuple[Device, ...] | None = None,
    torch_runtime: TorchRuntime | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The NVIDIA driver is installed, but its kernel module is not loaded.

    Why: libcuda talks to the GPU through the kernel module nvidia; without it nvidia-smi "couldn't communicate with
    the NVIDIA driver". The usual reasons: nouveau holds the GPU, Secure Boot refuses an unsigned module, or no module
    was built for a kernel that was upgraded.
    Exception: driver libraries on a machine without an NVIDIA GPU pass, as do containers and WSL, where the host loads
    the module.
    Reference: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    skip_unless(not in_container(system), "the kernel module is loaded by the container's host")
    skip_unless(not in_wsl(system), "WSL has no kernel module of NVIDIA")
    if driver is None and not symptoms:
        raise Skip("driver is unknown")
    driver = driver or Driver()
    refused = _refused(torch_runtime, symptoms)
    said = nvml_error(NVML_DRIVER_NOT_LOADED, driver, symptoms) or refused
    by_message = said is not None and said.startswith("symptoms")
    if (driver.installed is False and not by_message) or nvidia_gpus(system) == ():
        return
    if not by_message and works(driver, devices):
        return
    if not said:
        if driver.module_loaded is None and driver.nvml_code is None:
            raise Skip("driver.module_loaded is unknown")
        if driver.module_loaded is not False or not (driver.installed or driver.library_version):
            return
    reason, facts, remedies = _reason(driver, system, symptoms)
    yield Finding(
        severity=Severity.ERROR,
        summary=f"The NVIDIA driver{_version(driver)} is installed, but its kernel module is not loaded{reason}",
        subject="kernel module nvidia",
        facts=(
            *((said,) if said else ()),
            *(("driver.module_loaded",) if driver.module_loaded is not None else ()),
            *facts,
        ),
        remedies=remedies,
    )


def _refused(torch_runtime: TorchRuntime | None, symptoms: tuple[Symptom, ...] | None) -> str | None:
    """Return the message by which the kernel has no module of the driver, although the rest of it is there."""
    certain = reported(symptoms, *REFUSED)
    if certain:
        return certain[0][0]
    fails = reported(symptoms, "nvidia-smi-fails-told")
    if fails and reported(symptoms, SECURE_BOOT, NEW_KERNEL):
        return fails[0][0]
    # Where libcuda is missing too there is no driver at all.
    running = reported(symptoms, "kernel-driver-not-running")
    return running[0][0] if running and not no_driver_reported(torch_runtime, symptoms) else None


def _version(driver: Driver) -> str:
    version = driver.library_version or driver.version
    return f" {version}" if version else ""


def _reason(
    driver: Driver, system: System | None, symptoms: tuple[Symptom, ...] | None
) -> tuple[str, tuple[str, ...], tuple[Remedy, ...]]:
    """Return why the module is not loaded, as the end of a sentence, the facts that say so, and what helps."""
    if system is not None and system.os == "windows":
        return "", (), (reinstall_driver(system=system),)
    for fact, message in reported(symptoms, "nvrm-legacy-gpu"):
        branch = message.names.get("branch", "")
        return f": it no longer supports this GPU, branch R{branch} does", (fact,), (_legacy(system, branch),)
    for fact, message in reported(symptoms, "nvrm-gpu-not-in-release"):
        text = f": release {message.names.get('driver', '')} does not support this GPU"
        return text, (fact,), (update_driver(system=system, needed=None, driver=driver), _legacy(system, ""))
    for fact, _ in reported(symptoms, "kernel-module-key-rejected"):
        return ": Secure Boot refuses it", (fact,), (_sign(system),)
    load = load_driver(system=system, driver=driver)
    for fact, message in reported(symptoms, "nvidia-device-node-missing"):
        inside = start_container_with_gpu(system=system, summary="If that is a container, start it with the GPU")
        node = message.names.get("node", "its device node")
        return f": {node} is missing", (fact,), (_nodes(), load, _build(system), inside)
    bound = {gpu.bound_driver for gpu in nvidia_gpus(system) or ()}
    if bound == {"vfio-pci"}:
        return ": vfio-pci holds the GPU for a virtual machine", ("system.pci_gpus",), (_unbind(),)
    if driver.module_built_for_kernel is False:
        kernel = f" {system.kernel}" if system is not None and system.kernel else ""
        facts = ("driver.module_built_for_kernel",)
        return (
            f": none is built for the running kernel{kernel}",
            facts,
            (_build(system), reinstall_driver(system=system)),
        )
    if "nouveau" in bound:
        return ": nouveau holds the GPU", ("system.pci_gpus",), (_without_nouveau(system),)
    for fact, _ in reported(symptoms, "nvrm-probe-not-called"):
        return ": another driver, such as nouveau, holds the GPU", (fact,), (_without_nouveau(system), load)
    if driver.nouveau_loaded:
        remedies = (_without_nouveau(system), *(() if _is_signed(system) else (_sign(system),)), _build(system))
        return ": nouveau is loaded instead", ("driver.nouveau_loaded",), remedies
    if system is not None and system.secure_boot:
        reason = ", and Secure Boot is on, which refuses an unsigned module"
        return reason, ("system.secure_boot",), (_sign(system), load)
    if driver.module_built_for_kernel and driver.nouveau_loaded is False:
        return "", (), (load,)
    return _reason_in_words(system, symptoms, load)


def _reason_in_words(
    system: System | None, symptoms: tuple[Symptom, ...] | None, load: Remedy
) -> tuple[str, tuple[str, ...], tuple[Remedy, ...]]:
    """Return the reason as `_reason` does, by what who reports says; without that every usual one is answered."""
    build, sign, reinstall = _build(system), _sign(system), reinstall_driver(system=system)
    for fact, _ in reported(symptoms, SECURE_BOOT):
        reason = ", and the report speaks of Secure Boot, which refuses a module whose key is not enrolled"
        return reason, (fact,), (sign, load, build)
    for fact, _ in reported(symptoms, NEW_KERNEL):
        return ", and the kernel was upgraded", (fact,), (build, reinstall, load)
    return "", (), (load, build, _without_nouveau(system), sign, reinstall)


def _is_signed(system: System | None) -> bool:
    """Return whether Secure Boot is known to be off, so that nothing needs a signature."""
    return system is not None and system.secure_boot is False


def _legacy(system: System | None, branch: str) -> Remedy:
    of_ubuntu = system is not None and system.distribution == "ubuntu" and branch.isdecimal()
    which = f"of branch {branch}, the last one for this GPU" if branch else "of an older branch, where the GPU is old"
    return Remedy(
        summary=f"Install the driver {which}",
        commands=(f"sudo apt-get install nvidia-driver-{branch}", "sudo reboot", "nvidia-smi") if of_ubuntu else (),
        needs=("root", "reboot"),
        reference="https://www.nvidia.com/en-us/drivers/unix/",
    )


def _is_of_debian(system: System | None) -> bool:
    return system is None or system.distribution in (None, "ubuntu", "debian", "linuxmint", "pop")


def _build(system: System | None) -> Remedy:
    headers = (
        'sudo apt-get install "linux-headers-$(uname -r)"'
        if _is_of_debian(system)
        else 'sudo dnf install "kernel-devel-$(uname -r)"'
    )
    return Remedy(
        summary="Build the kernel module for the running kernel; where DKMS does not have its source, reinstall the "
        "driver's package instead",
        commands=(headers, "sudo dkms autoinstall", "sudo modprobe nvidia", "nvidia-smi"),
        needs=("root",),
        reference="https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
    )


def _without_nouveau(system: System | None) -> Remedy:
    rebuild = "sudo update-initramfs -u" if _is_of_debian(system) else "sudo dracut --force"
    return Remedy(
        summary="Keep nouveau from taking the GPU, and reboot",
        commands=(
            rf"printf 'blacklist nouveau\noptions nouveau modeset=0\n' | sudo tee {NOUVEAU_FILE}",
            rebuild,
            "sudo reboot",
            "nvidia-smi",
        ),
        needs=("root", "reboot"),
        reference="https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
    )


def _sign(system: System | None) -> Remedy:
    key = "/var/lib/shim-signed/mok/MOK.der" if _is_of_debian(system) else "/etc/pki/akmods/certs/public_key.der"
    return Remedy(
        summary="With Secure Boot on, enrol the key that the module is signed with (a menu asks for it on the next "
        "start), or turn Secure Boot off in the firmware",
        commands=("mokutil --sb-state", f"sudo mokutil --import {key}", "sudo reboot", "nvidia-smi"),
        needs=("root", "reboot"),
        reference="https://wiki.debian.org/SecureBoot",
    )


def _nodes() -> Remedy:
    return Remedy(
        summary="Load the kernel modules nvidia and nvidia_uvm and make their device nodes; on a machine without a "
        "desktop let nvidia-persistenced do so on every start",
        commands=("sudo nvidia-modprobe -u -c=0", "ls -l /dev/nvidia*", "sudo systemctl enable nvidia-persistenced"),
        needs=("root",),
        reference="https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
    )


def _unbind() -> Remedy:
    return Remedy(
        summary="Remove the GPU's PCI id from the options of vfio-pci, or use the GPU in the virtual machine it is for",
        commands=("grep -rs vfio-pci /etc/modprobe.d /etc/default/grub",),
        needs=("root", "reboot"),
        reference="https://docs.kernel.org/driver-api/vfio.html",
    )
