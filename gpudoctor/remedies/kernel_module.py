"""The driver's kernel module: loading, building, signing and replacing it, and restarting the machine."""

from gpudoctor.data.drivers import first_driver
from gpudoctor.model import Devices, Driver, Fix, Place, Remedy, System
from gpudoctor.remedies.commands import with_sudo
from gpudoctor.remedies.driver_install import (
    GUIDE,
    OWN_INSTALLER,
    UBUNTU_BRANCH,
    VERIFY,
    WSL,
    gpu_capabilities,
    kind_of,
)
from gpudoctor.remedies.fixes import fix

NOUVEAU_FILE = "/etc/modprobe.d/blacklist-nouveau.conf"
# Where the key is that modules are signed with: by Debian's and Ubuntu's packages, by DKMS itself elsewhere, by akmods.
# Source: https://wiki.debian.org/SecureBoot, dkms(8), /usr/share/doc/akmods/README.secureboot of Fedora.
DEBIAN_KEY = "/var/lib/shim-signed/mok/MOK.der"
DKMS_KEY = "/var/lib/dkms/mok.pub"
AKMODS_KEY = "/etc/pki/akmods/certs/public_key.der"
MODULES = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html"
# The last branch with code for Maxwell, Pascal and Volta: last_driver in the table of compute capabilities.
LAST_PROPRIETARY = 580
# A report seldom names the distribution; most are of these.
DEBIAN = (None, "ubuntu", "debian", "linuxmint", "pop")
FEDORA = ("fedora", "rhel", "centos", "rocky", "almalinux", "ol")
INITIAL_DISK: dict[str | None, str] = {
    **dict.fromkeys(DEBIAN, "update-initramfs -u"),
    **dict.fromkeys((*FEDORA, "sles"), "dracut --force"),
    "arch": "mkinitcpio -P",
}


@fix
def load_driver(*, system: System | None, driver: Driver | None) -> Fix:
    """Return how to load the kernel module of an installed driver.

    In this order: nouveau uses the GPU; no module was built for the running kernel; Secure Boot refuses a module that
    DKMS signed with a key that is not enrolled; the module only waits to be loaded.
    """
    system, driver = system or System(), driver or Driver()
    if system.wsl:
        return Fix("reboot", summary="Restart WSL: it uses the Windows driver")
    if system.container:
        return Fix("load-module-on-host")
    if driver.nouveau_loaded:
        return Fix("keep-nouveau-out")
    if driver.module_built_for_kernel is False:
        return Fix("build-kernel-module")
    return Fix("enrol-module-key") if system.secure_boot and driver.dkms else Fix("load-module")


@fix
def keep_nouveau_out(*, system: System | None) -> Remedy:
    """Return how to keep nouveau from taking the GPU."""
    rebuild = INITIAL_DISK.get(system.distribution if system is not None else None)
    summary = "Keep nouveau from loading, so that the NVIDIA module can take the GPU"
    if rebuild is None:
        summary += f": put it on the list in {NOUVEAU_FILE}, rebuild the initial RAM disk and restart"
        return Remedy(summary=summary, needs=("root", "reboot"), reference=GUIDE)
    write = rf"printf 'blacklist nouveau\noptions nouveau modeset=0\n' | {with_sudo(f'tee {NOUVEAU_FILE}', system)}"
    commands = (write, *(with_sudo(command, system) for command in (rebuild, "reboot")), VERIFY)
    return Remedy(summary=summary, commands=commands, needs=("root", "reboot"), reference=GUIDE)


@fix
def build_kernel_module(*, system: System | None, driver: Driver | None) -> Remedy:
    """Return how to build the module for the running kernel with DKMS, if that has its source."""
    system, driver = system or System(), driver or Driver()
    kernel = f" {system.kernel}" if system.kernel else ""
    summary = f"Build the NVIDIA kernel module for the running kernel{kernel}"
    if driver.dkms is False and driver.module_built_for_kernel is False:
        summary += ": install the driver's package again, which builds or brings it"
        return Remedy(summary=summary, needs=("root", "reboot"), reference=GUIDE)
    if not driver.dkms:
        summary += "; if DKMS does not have its source, reinstall the driver's package instead"
    headers = []
    if system.distribution in DEBIAN:
        headers = ['apt-get install -y "linux-headers-$(uname -r)"']
    elif system.distribution in FEDORA:
        headers = ['dnf install -y "kernel-devel-$(uname -r)"']
    names = (*headers, "dkms autoinstall", "modprobe nvidia")
    commands = (*(with_sudo(name, system) for name in names), VERIFY)
    return Remedy(summary=summary, commands=commands, needs=("root",), reference=GUIDE)


@fix
def enrol_module_key(*, system: System | None, driver: Driver | None) -> Remedy:
    """Return how to let Secure Boot accept the key that the module is signed with."""
    key = DKMS_KEY if driver is not None and driver.dkms else AKMODS_KEY
    if system is None or system.distribution in DEBIAN:
        key = DEBIAN_KEY
    summary = (
        "Enrol the key that signed the module, because Secure Boot refuses it until then: choose a password, "
        "restart, and enrol the key in the blue screen that asks for it; or turn Secure Boot off in the firmware"
    )
    commands = ("mokutil --sb-state", with_sudo(f"mokutil --import {key}", system), with_sudo("reboot", system), VERIFY)
    reference = "https://wiki.debian.org/SecureBoot"
    return Remedy(summary=summary, commands=commands, needs=("root", "reboot"), reference=reference)


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
def reload_uvm(*, place: Place, driver: Driver | None, devices: Devices = None) -> tuple[Fix, ...]:
    """Return how to bring back the kernel module nvidia_uvm and its device nodes."""
    restart = Fix("reboot", summary="Reboot, if that does not help")
    if place.in_wsl or place.is_windows:
        return (restart,)
    if place.in_container:
        return (Fix("make-uvm-nodes-on-host"),)
    missing = driver is not None and driver.uvm_loaded is False
    # Source: https://github.com/pytorch/pytorch/issues/159207, NVIDIA/open-gpu-kernel-modules#901
    hmm = (Fix("disable-hmm"),) if len(devices or ()) > 1 else ()
    return (Fix("load-uvm" if missing else "reload-uvm-module"), restart, *hmm, Fix("save-memory-on-suspend"))


@fix
def install_legacy_driver(*, system: System | None, branch: str = "") -> Remedy:
    """Return how to install the driver of an older branch. branch: "470", "" if unknown."""
    of_ubuntu = system is not None and kind_of(system) in OWN_INSTALLER and branch.isdecimal()
    which = f"of branch {branch}, the last one for this GPU" if branch else "of an older branch, if the GPU is old"
    package = f"nvidia-driver-{branch}" if of_ubuntu else ""
    return _with_package(f"Install the driver {which}", "https://www.nvidia.com/en-us/drivers/unix/", package)


@fix
def install_open_module(*, driver: Driver | None, system: System | None, devices: Devices = None) -> Remedy:
    """Return how to replace the proprietary kernel module by the open one, of the same driver if that knows the GPU."""
    firsts = filter(None, map(first_driver, gpu_capabilities(devices, system or System())))
    branch = _branch(driver)
    fits = branch is None or all(first.parts[0] <= branch for first in firsts)
    which = "of the same driver" if fits else f"of a driver that knows this GPU, {UBUNTU_BRANCH} or newer"
    package = _ubuntu_package(branch if fits else UBUNTU_BRANCH, system)
    summary = (
        f"Install the open kernel module {which} (nvidia-open; with NVIDIA's installer: --kernel-module-type=open)"
    )
    return _with_package(summary, MODULES, f"{package}-open" if package else "")


@fix
def install_proprietary_module(*, driver: Driver | None, system: System | None) -> Remedy:
    """Return how to replace the open kernel module by the proprietary one: newer branches have none for old GPUs."""
    branch = _branch(driver)
    newer = branch is not None and branch > LAST_PROPRIETARY
    which = f"of driver {LAST_PROPRIETARY}" if newer else "of the same driver"
    summary = (
        f"Install the proprietary kernel module {which} (with NVIDIA's installer: "
        "--kernel-module-type=proprietary), of Ubuntu nvidia-driver-580 without -open; R580 is the last branch for "
        "Maxwell, Pascal and Volta"
    )
    packages = [_ubuntu_package(LAST_PROPRIETARY if newer else branch, system)]
    if system is not None and system.distribution == "debian":
        # Newer drivers are of NVIDIA's repository: the first package keeps apt at the branch.
        packages = (
            ["nvidia-driver-pinning-580", "--allow-downgrades cuda-drivers-580"] if newer else ["nvidia-kernel-dkms"]
        )
    return _with_package(summary, MODULES, *packages)


def _branch(driver: Driver | None) -> int | None:
    return driver.version.parts[0] if driver is not None and driver.version is not None else None


def _ubuntu_package(branch: int | None, system: System | None) -> str:
    """Return Ubuntu's package of the branch; "" for another distribution, or an unknown branch of Ubuntu."""
    distribution = kind_of(system) if system is not None else None
    named = distribution is None or (distribution in OWN_INSTALLER and branch)
    return f"nvidia-driver-{branch or UBUNTU_BRANCH}" if named else ""


def _with_package(summary: str, reference: str, *packages: str) -> Remedy:
    installs = [f"sudo apt-get install {package}" for package in packages if package]
    commands = (*installs, "sudo reboot", VERIFY) if installs else ()
    return Remedy(summary=summary, commands=commands, needs=("root", "reboot"), reference=reference)
