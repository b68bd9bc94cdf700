"""What keeps the driver's kernel module from loading: another driver, Secure Boot, a new kernel, an old GPU."""

from __future__ import annotations

from gpudoctor.model import Place, Remedy, System
from gpudoctor.remedies.driver_install import GUIDE, VERIFY
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.kernel_module import DEBIAN_KEY, NOUVEAU_FILE, reboot

AKMODS_KEY = "/etc/pki/akmods/certs/public_key.der"


@fix
def install_legacy_driver(*, system: System | None, branch: str = "") -> Remedy:
    """Return how to install the driver of an older branch. branch: "470", "" if unknown."""
    of_ubuntu = system is not None and system.distribution == "ubuntu" and branch.isdecimal()
    which = f"of branch {branch}, the last one for this GPU" if branch else "of an older branch, if the GPU is old"
    return Remedy(
        summary=f"Install the driver {which}",
        commands=(f"sudo apt-get install nvidia-driver-{branch}", "sudo reboot", VERIFY) if of_ubuntu else (),
        needs=("root", "reboot"),
        reference="https://www.nvidia.com/en-us/drivers/unix/",
    )


@fix
def build_kernel_module(*, system: System | None) -> Remedy:
    """Return how to build the module for the running kernel with DKMS."""
    headers = 'sudo dnf install "kernel-devel-$(uname -r)"'
    if _is_of_debian(system):
        headers = 'sudo apt-get install "linux-headers-$(uname -r)"'
    return Remedy(
        summary="Build the kernel module for the running kernel; if DKMS does not have its source, reinstall the "
        "driver's package instead",
        commands=(headers, "sudo dkms autoinstall", "sudo modprobe nvidia", VERIFY),
        needs=("root",),
        reference=GUIDE,
    )


@fix
def keep_nouveau_out(*, system: System | None) -> Remedy:
    """Return how to keep nouveau from taking the GPU."""
    rebuild = "sudo update-initramfs -u" if _is_of_debian(system) else "sudo dracut --force"
    write = rf"printf 'blacklist nouveau\noptions nouveau modeset=0\n' | sudo tee {NOUVEAU_FILE}"
    return Remedy(
        summary="Keep nouveau from taking the GPU, and reboot",
        commands=(write, rebuild, "sudo reboot", VERIFY),
        needs=("root", "reboot"),
        reference=GUIDE,
    )


@fix
def enrol_module_key(*, system: System | None) -> Remedy:
    """Return how to let Secure Boot accept the key that the module is signed with."""
    key = DEBIAN_KEY if _is_of_debian(system) else AKMODS_KEY
    return Remedy(
        summary="With Secure Boot on, enrol the key that the module is signed with (a menu asks for it on the next "
        "start), or turn Secure Boot off in the firmware",
        commands=("mokutil --sb-state", f"sudo mokutil --import {key}", "sudo reboot", VERIFY),
        needs=("root", "reboot"),
        reference="https://wiki.debian.org/SecureBoot",
    )


@fix
def load_module_of_libraries(*, place: Place, system: System | None) -> tuple[Remedy, ...]:
    """Return how to get the kernel module and the libraries of the driver to the same version."""
    if place.in_container:
        restart = Remedy(
            summary="Restart this container on its host, which then mounts the libraries of the loaded driver; if "
            "nvidia-smi fails on the host too, reboot the host first",
            commands=("docker restart CONTAINER",),
            needs=("restart",),
        )
        return (restart,)
    restart = reboot(system=system, summary="Reboot: the module of the installed driver is then loaded")
    if place.in_wsl or place.is_windows:
        return (restart,)
    reload = Remedy(
        summary="Reload the kernel module without a reboot, if no desktop and no job uses the GPU",
        commands=(
            "sudo systemctl stop nvidia-persistenced",
            "sudo rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia",
            "sudo modprobe nvidia_uvm",
            VERIFY,
        ),
        needs=("root",),
    )
    return (restart, reload)


def _is_of_debian(system: System | None) -> bool:
    return system is None or system.distribution in (None, "ubuntu", "debian", "linuxmint", "pop")
