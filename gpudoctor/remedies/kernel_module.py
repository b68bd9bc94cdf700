"""The driver's kernel module: load, build, sign and replace it, and restart the machine."""

from collections.abc import Mapping
from typing import Any

from gpudoctor.data.distributions import distribution_of
from gpudoctor.data.drivers import first_driver
from gpudoctor.model import Devices, Driver, Fix, Place, Remedy, Symptom, System
from gpudoctor.remedies.commands import with_sudo
from gpudoctor.remedies.driver_install import GUIDE, UBUNTU_BRANCH, VERIFY, for_root, gpu_capabilities, legacy_driver
from gpudoctor.remedies.fixes import fix

NOUVEAU_FILE = "/etc/modprobe.d/blacklist-nouveau.conf"
DKMS_KEY = "/var/lib/dkms/mok.pub"
MODULES = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html"
# The last branch for Maxwell, Pascal and Volta: last_driver in the table of compute capabilities.
LAST_PROPRIETARY = 580
# A report seldom names the distribution; these are the usual ones.
USUAL = System(distribution="ubuntu")


@fix
def load_driver(*, system: System, driver: Driver) -> Fix:
    """Return how to load the kernel module of an installed driver.

    Cases, in this order: nouveau uses the GPU; no module was built for the running kernel; Secure Boot rejects a
    module that DKMS signed with a key that is not enrolled; the module is not loaded yet.
    """
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
def keep_nouveau_out(*, system: System) -> Remedy:
    """Return how to keep nouveau, and its successor nova in kernels from 6.15 on, from taking the GPU."""
    rebuild = _row(system).get("initial_disk")
    summary = "Keep nouveau and nova from loading, so that the NVIDIA module can use the GPU"
    if rebuild is None:
        summary += f": put it on the list in {NOUVEAU_FILE}, rebuild the initial RAM disk and restart"
        return Remedy(summary=summary, needs=("root", "reboot"), reference=GUIDE)
    lines = r"blacklist nouveau\noptions nouveau modeset=0\nblacklist nova_core\nblacklist nova_drm\n"
    write = f"printf '{lines}' | {with_sudo(f'tee {NOUVEAU_FILE}', system)}"
    commands = (write, *(with_sudo(command, system) for command in (rebuild, "reboot")), VERIFY)
    return Remedy(summary=summary, commands=commands, needs=("root", "reboot"), reference=GUIDE)


@fix
def build_kernel_module(*, system: System, driver: Driver) -> Remedy:
    """Return how to build the module for the running kernel, with DKMS or what the distribution has instead."""
    row = _row(system)
    if row.get("id") == "arch" and not driver.dkms:
        return Remedy(
            summary="Reboot into the installed kernel: with a new kernel, Arch Linux removes the modules of the one "
            "that still runs. If uname -r is the installed kernel already, install the package of its headers, and "
            "nvidia-dkms or nvidia-open-dkms",
            commands=("uname -r", "pacman -Q linux", with_sudo("reboot", system)),
            needs=("root", "reboot"),
            reference="https://wiki.archlinux.org/title/NVIDIA",
        )
    build = "dkms autoinstall" if driver.dkms else row.get("module_build", "dkms autoinstall")
    builder = {"dkms": "DKMS"}.get(build.split()[0], build.split()[0])
    kernel = f" {system.kernel}" if system.kernel else ""
    summary = f"Build the NVIDIA kernel module for the running kernel{kernel}"
    if driver.dkms is False and driver.module_built_for_kernel is False:
        summary += ": install the driver's package again, which builds or contains it"
        return Remedy(summary=summary, needs=("root", "reboot"), reference=GUIDE)
    if not driver.dkms:
        summary += f"; if {builder} does not have its source, reinstall the driver's package instead"
    names = (row.get("headers"), build, "modprobe nvidia")
    commands = (*(with_sudo(name, system) for name in names if name), VERIFY)
    return Remedy(summary=summary, commands=commands, needs=("root",), reference=GUIDE)


@fix
def enrol_module_key(*, system: System, driver: Driver) -> Remedy:
    """Return how to make Secure Boot accept the module's signing key."""
    row, key = _row(system), _module_key(system, driver)
    summary = (
        "Enrol the key that signed the module: Secure Boot refuses modules whose key it does not know. Choose a "
        "password for it, restart, and enrol the key in the blue screen that appears. Or turn Secure Boot off in the "
        "firmware"
    )
    # It asks for the password: a line that is pasted after it would be taken for one.
    commands = ("mokutil --sb-state", with_sudo(f"mokutil --import {key}", system))
    reference = row.get("secure_boot", "https://wiki.debian.org/SecureBoot")
    return Remedy(summary=summary, commands=commands, needs=("root", "reboot"), reference=reference)


@fix
def compare_module_key(*, system: System, driver: Driver) -> Remedy:
    """Return how to find out whether the module is signed with the key that is enrolled, and how to sign it again.

    `dkms autoinstall` leaves out what is installed, also with --force. Source: dkms 3.0.10.
    """
    row = _row(system)
    own_build = "" if driver.dkms else row.get("module_build", "")
    builds = (own_build,) if own_build else ("dkms status", "dkms install --force MODULE/VERSION")
    named = "" if own_build else ". Replace MODULE/VERSION with what dkms status prints before the first comma"
    commands = (f"mokutil --test-key {_module_key(system, driver)}", "modinfo -F signer nvidia", *builds)
    needs_no_root = ("modinfo", "dkms status")
    return Remedy(
        summary="If the key is enrolled already, compare it with the signer of the module. Build the module again, "
        f"which signs it with this key, and restart{named}",
        commands=tuple(c if c.startswith(needs_no_root) else with_sudo(c, system) for c in commands),
        needs=("root", "reboot"),
        reference=row.get("secure_boot", "https://wiki.debian.org/SecureBoot"),
    )


def _module_key(system: System, driver: Driver) -> str:
    """Return the file of the key that signs the module."""
    row = _row(system)
    by_dkms = row.get("like") == "fedora" and driver.dkms
    return DKMS_KEY if by_dkms else str(row.get("module_key", DKMS_KEY))


@fix
def reload_uvm(
    *, place: Place, driver: Driver, devices: Devices = None, symptoms: tuple[Symptom, ...] | None = None
) -> tuple[Fix, ...]:
    """Return how to load the kernel module nvidia_uvm again and restore its device nodes."""
    restart = Fix("reboot", summary="Reboot, if loading the module again does not help")
    if place.in_wsl or place.is_windows:
        return Fix("reboot", summary="Restart WSL" if place.in_wsl else "Restart Windows"), Fix(
            "reinstall-driver-on-windows"
        )
    if place.in_container:
        return (Fix("make-uvm-nodes-on-host"),)
    missing = driver.uvm_loaded is False
    by_ollama = any(symptom.kind == "about-ollama" for symptom in symptoms or ())
    again = Fix("reload-uvm-module-for-ollama") if by_ollama else Fix("reload-uvm-module")
    # Source: https://github.com/pytorch/pytorch/issues/159207, NVIDIA/open-gpu-kernel-modules#901
    hmm = (Fix("disable-hmm"),) if len(devices or ()) > 1 else ()
    return (Fix("load-uvm") if missing else again, restart, *hmm, Fix("save-memory-on-suspend"))


@fix
def install_legacy_driver(*, system: System, branch: str = "") -> Remedy:
    """Return how to install the driver of an older branch. branch: "470", "" if unknown."""
    of_ubuntu = distribution_of(system).get("like") == "ubuntu" and branch.isdecimal()
    which = f"of branch {branch}, the last one for this GPU" if branch else "of an older branch, if the GPU is old"
    package = f"nvidia-driver-{branch}" if of_ubuntu else ""
    reference = "https://www.nvidia.com/en-us/drivers/unix/"
    return _with_package(f"Install the driver {which}", reference, package, system=system, legacy=branch)


@fix
def install_open_module(*, driver: Driver, system: System, devices: Devices = None) -> Remedy:
    """Return how to replace the proprietary kernel module with the open one, of the same driver if that has the GPU."""
    firsts = filter(None, map(first_driver, gpu_capabilities(devices, system)))
    branch = _branch(driver)
    fits = branch is None or all(first.parts[0] <= branch for first in firsts)
    which = "of the same driver" if fits else f"of a driver that knows this GPU, {UBUNTU_BRANCH} or newer"
    package = _ubuntu_package(branch if fits else UBUNTU_BRANCH, system)
    summary = (
        f"Install the open kernel module {which} (nvidia-open; with NVIDIA's installer: --kernel-module-type=open)"
    )
    return _with_package(summary, MODULES, f"{package}-open" if package else "")


@fix
def install_proprietary_module(*, driver: Driver, system: System) -> Remedy:
    """Return how to replace the open kernel module with the proprietary one: newer branches have none for old GPUs."""
    branch = _branch(driver)
    newer = branch is not None and branch > LAST_PROPRIETARY
    which = f"of driver {LAST_PROPRIETARY}" if newer else "of the same driver" if branch else "of driver 580 or older"
    summary = (
        f"Install the proprietary kernel module {which} (with NVIDIA's installer: "
        "--kernel-module-type=proprietary; on Ubuntu: nvidia-driver-580 without -open). R580 is the last branch for "
        "Maxwell, Pascal and Volta"
    )
    packages = [_ubuntu_package(LAST_PROPRIETARY if newer else branch, system)]
    if system.distribution == "debian":
        # Newer drivers are from NVIDIA's repository: the first package pins apt to the branch.
        packages = (
            ["nvidia-driver-pinning-580", "--allow-downgrades cuda-drivers-580"] if newer else ["nvidia-kernel-dkms"]
        )
    return _with_package(summary, MODULES, *packages, system=system, legacy=str(LAST_PROPRIETARY))


def _row(system: System) -> Mapping[str, Any]:
    return distribution_of(system if system.distribution else USUAL)


def _branch(driver: Driver) -> int | None:
    return driver.version.parts[0] if driver.version is not None else None


def _ubuntu_package(branch: int | None, system: System) -> str:
    """Return Ubuntu's package for the branch; "" for another distribution or a branch that Ubuntu lacks."""
    named = system.distribution is None or (distribution_of(system).get("like") == "ubuntu" and branch)
    return f"nvidia-driver-{branch or UBUNTU_BRANCH}" if named else ""


def _with_package(summary: str, reference: str, *packages: str, system: System = System(), legacy: str = "") -> Remedy:
    """Return the remedy with apt packages, or with the older branch `legacy` if the distribution has it."""
    installs = [f"sudo apt-get install -y {package}" for package in packages if package]
    installs = installs or [*for_root(legacy_driver(distribution_of(system), legacy), system)]
    commands = (*installs, "sudo reboot", VERIFY) if installs else ()
    return Remedy(summary=summary, commands=commands, needs=("root", "reboot"), reference=reference)
