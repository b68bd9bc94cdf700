"""Loading the kernel module of an installed driver, and restarting the machine."""

from __future__ import annotations

from gpudoctor.model import Driver, Place, Remedy, System
from gpudoctor.remedies.commands import with_sudo
from gpudoctor.remedies.driver_install import GUIDE, UBUNTU_BRANCH, VERIFY, WSL
from gpudoctor.remedies.fixes import fix

NOUVEAU_FILE = "/etc/modprobe.d/blacklist-nouveau.conf"
# Where DKMS keeps the key that it signs modules with: Debian's and Ubuntu's packages, and DKMS itself elsewhere.
# Source: https://wiki.debian.org/SecureBoot, dkms(8).
DEBIAN_KEY = "/var/lib/shim-signed/mok/MOK.der"
DKMS_KEY = "/var/lib/dkms/mok.pub"
MODULES = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html"
SUSPEND_OPTION = "options nvidia NVreg_PreserveVideoMemoryAllocations=1"


@fix
def load_driver(*, system: System | None, driver: Driver | None) -> Remedy:
    """Return how to load the kernel module of an installed driver.

    In this order: nouveau holds the GPU; no module was built for the running kernel; Secure Boot refuses a module that
    DKMS signed with a key that is not enrolled; the module only waits to be loaded.
    """
    system, driver = system or System(), driver or Driver()
    if system.wsl:
        return Remedy(
            summary="Restart WSL: its driver is the one of Windows",
            commands=("wsl --shutdown",),
            needs=("restart",),
            reference=WSL,
        )
    if system.container:
        return Remedy(
            summary="Load the NVIDIA kernel module on the host: a container uses the host's",
            commands=("sudo modprobe nvidia", VERIFY),
            needs=("root",),
            reference=GUIDE,
        )
    if driver.nouveau_loaded:
        return _replace_nouveau(system)
    if driver.module_built_for_kernel is False:
        return _build_module(system, driver)
    if system.secure_boot and driver.dkms:
        return _enrol_key(system)
    return Remedy(
        summary="Load the NVIDIA kernel module",
        commands=(with_sudo("modprobe nvidia", system), VERIFY),
        needs=("root",),
        reference=GUIDE,
    )


def _replace_nouveau(system: System) -> Remedy:
    lines = rf"printf 'blacklist nouveau\noptions nouveau modeset=0\n' | {with_sudo(f'tee {NOUVEAU_FILE}', system)}"
    rebuild = {"ubuntu": "update-initramfs -u", "debian": "update-initramfs -u", "arch": "mkinitcpio -P"}
    rebuild |= dict.fromkeys(("fedora", "rhel", "centos", "rocky", "almalinux", "ol", "sles"), "dracut --force")
    command = rebuild.get(system.distribution or "")
    summary = "Keep nouveau from loading, so that the NVIDIA module can take the GPU"
    if command is None:
        return Remedy(
            summary=f"{summary}: put it on the list in {NOUVEAU_FILE}, rebuild the initial RAM disk and restart",
            needs=("root", "reboot"),
            reference=GUIDE,
        )
    commands = (lines, with_sudo(command, system), with_sudo("reboot", system), VERIFY)
    return Remedy(summary=summary, commands=commands, needs=("root", "reboot"), reference=GUIDE)


def _build_module(system: System, driver: Driver) -> Remedy:
    kernel = f" {system.kernel}" if system.kernel else ""
    summary = f"Build the NVIDIA kernel module for the running kernel{kernel}"
    if not driver.dkms:
        return Remedy(
            summary=f"{summary}: install the driver's package again, which builds or brings it",
            needs=("root", "reboot"),
            reference=GUIDE,
        )
    headers = {
        "ubuntu": 'apt-get install -y "linux-headers-$(uname -r)"',
        "debian": 'apt-get install -y "linux-headers-$(uname -r)"',
    }
    headers |= dict.fromkeys(
        ("fedora", "rhel", "centos", "rocky", "almalinux", "ol"), 'dnf install -y "kernel-devel-$(uname -r)"'
    )
    first = headers.get(system.distribution or "")
    names = [*([first] if first else []), "dkms autoinstall", "modprobe nvidia"]
    commands = (*(with_sudo(name, system) for name in names), VERIFY)
    return Remedy(summary=summary, commands=commands, needs=("root",), reference=GUIDE)


def _enrol_key(system: System) -> Remedy:
    key = DEBIAN_KEY if system.distribution in ("ubuntu", "debian") else DKMS_KEY
    return Remedy(
        summary="Secure Boot refuses the module until the key that signed it is enrolled: choose a password, restart, "
        "and enrol the key in the blue screen that asks for it",
        commands=(with_sudo(f"mokutil --import {key}", system), with_sudo("reboot", system), VERIFY),
        needs=("root", "reboot"),
        reference="https://wiki.debian.org/SecureBoot",
    )


@fix
def reboot(*, system: System | None, summary: str) -> Remedy:
    """Return a restart of the machine, or of WSL, after which the driver is asked again."""
    system = system or System()
    if system.wsl:
        return Remedy(summary=summary, commands=("wsl --shutdown",), needs=("restart",), reference=WSL)
    if system.container:
        return Remedy(summary=f"{summary}, on the host", needs=("root", "reboot"))
    if system.os == "windows":
        return Remedy(summary=summary, commands=("shutdown /r /t 0", VERIFY), needs=("reboot",))
    return Remedy(summary=summary, commands=(with_sudo("reboot", system), VERIFY), needs=("root", "reboot"))


@fix
def reload_uvm(*, place: Place, driver: Driver | None, system: System | None) -> tuple[Remedy, ...]:
    """Return how to bring back the kernel module nvidia_uvm and its device nodes."""
    restart = reboot(system=system, summary="Reboot, if that does not help")
    if place.in_wsl or place.is_windows:
        return (restart,)
    if place.in_container:
        host = Remedy(
            summary="On the container's host create the device nodes of nvidia_uvm, then restart the container",
            commands=("sudo nvidia-modprobe -u -c=0", "docker restart CONTAINER"),
            needs=("root", "restart"),
        )
        return (host,)
    missing = driver is not None and driver.uvm_loaded is False
    commands = ("sudo modprobe nvidia_uvm",) if missing else ("sudo rmmod nvidia_uvm", "sudo modprobe nvidia_uvm")
    reload = Remedy(
        summary="Load the kernel module nvidia_uvm and create its device nodes"
        if missing
        else "Reload the kernel module nvidia_uvm, with every program that uses the GPU ended",
        commands=(*commands, "sudo nvidia-modprobe -u -c=0", "gpudoctor check"),
        needs=("root",),
    )
    suspend = Remedy(
        summary="If it comes back after every suspend, let the driver save its memory",
        commands=(
            f"echo '{SUSPEND_OPTION}' | sudo tee /etc/modprobe.d/nvidia-power-management.conf",
            "sudo systemctl enable nvidia-suspend.service nvidia-hibernate.service nvidia-resume.service",
        ),
        needs=("root", "reboot"),
        reference="https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/powermanagement.html",
    )
    return (reload, restart, suspend)


@fix
def install_open_module(*, driver: Driver | None, system: System | None) -> Remedy:
    """Return how to replace the proprietary kernel module by the open one of the same driver."""
    branch = str(driver.version.parts[0]) if driver is not None and driver.version is not None else ""
    distribution = system.distribution if system is not None else None
    by_ubuntu = distribution is None or (distribution == "ubuntu" and branch)
    package = f"nvidia-driver-{branch or UBUNTU_BRANCH}-open"
    return Remedy(
        summary="Install the open kernel module of the same driver (nvidia-open; with NVIDIA's installer: "
        "--kernel-module-type=open)",
        commands=(f"sudo apt-get install {package}", "sudo reboot", VERIFY) if by_ubuntu else (),
        needs=("root", "reboot"),
        reference=MODULES,
    )


@fix
def install_proprietary_module(*, driver: Driver | None, system: System | None) -> Remedy:
    """Return how to replace the open kernel module by the proprietary one of the same driver."""
    branch = str(driver.version.parts[0]) if driver is not None and driver.version is not None else ""
    distribution = system.distribution if system is not None else None
    package = ""
    if distribution is None or (distribution == "ubuntu" and branch):
        package = f"nvidia-driver-{branch or UBUNTU_BRANCH}"
    elif distribution == "debian":
        package = "nvidia-kernel-dkms"
    return Remedy(
        summary="Install the proprietary kernel module of the same driver (with NVIDIA's installer: "
        "--kernel-module-type=proprietary), of Ubuntu nvidia-driver-580 without -open; R580 is the last branch for "
        "Maxwell, Pascal and Volta",
        commands=(f"sudo apt-get install {package}", "sudo reboot", VERIFY) if package else (),
        needs=("root", "reboot"),
        reference=MODULES,
    )
