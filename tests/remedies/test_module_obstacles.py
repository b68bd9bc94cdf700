"""What keeps the kernel module from loading, and the commands against it."""

import pytest

from gpudoctor.model import Place, System
from gpudoctor.remedies.module_obstacles import (
    build_kernel_module,
    enrol_module_key,
    install_legacy_driver,
    keep_nouveau_out,
    load_module_of_libraries,
)

UBUNTU, FEDORA = System(os="linux", distribution="ubuntu"), System(os="linux", distribution="fedora")
REBOOT = ("sudo reboot", "nvidia-smi")


@pytest.mark.parametrize(
    ("system", "branch", "commands"),
    [
        (UBUNTU, "470", ("sudo apt-get install nvidia-driver-470", *REBOOT)),
        (UBUNTU, "", ()),
        (FEDORA, "470", ()),
        (None, "470", ()),
    ],
)
def test_legacy_driver(system: System | None, branch: str, commands: tuple[str, ...]) -> None:
    assert install_legacy_driver(system=system, branch=branch).commands == commands


@pytest.mark.parametrize(
    ("system", "headers", "initramfs", "key"),
    [
        (
            None,
            'sudo apt-get install "linux-headers-$(uname -r)"',
            "sudo update-initramfs -u",
            "/var/lib/shim-signed/mok/MOK.der",
        ),
        (
            System(distribution="linuxmint"),
            'sudo apt-get install "linux-headers-$(uname -r)"',
            "sudo update-initramfs -u",
            "/var/lib/shim-signed/mok/MOK.der",
        ),
        (
            FEDORA,
            'sudo dnf install "kernel-devel-$(uname -r)"',
            "sudo dracut --force",
            "/etc/pki/akmods/certs/public_key.der",
        ),
    ],
)
def test_commands_of_the_distribution(system: System | None, headers: str, initramfs: str, key: str) -> None:
    assert build_kernel_module(system=system).commands == (
        headers,
        "sudo dkms autoinstall",
        "sudo modprobe nvidia",
        "nvidia-smi",
    )
    assert keep_nouveau_out(system=system).commands == (
        r"printf 'blacklist nouveau\noptions nouveau modeset=0\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf",
        initramfs,
        *REBOOT,
    )
    assert enrol_module_key(system=system).commands == ("mokutil --sb-state", f"sudo mokutil --import {key}", *REBOOT)


@pytest.mark.parametrize(
    ("place", "system", "commands"),
    [
        pytest.param(
            Place(),
            UBUNTU,
            [
                REBOOT,
                (
                    "sudo systemctl stop nvidia-persistenced",
                    "sudo rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia",
                    "sudo modprobe nvidia_uvm",
                    "nvidia-smi",
                ),
            ],
            id="Linux",
        ),
        pytest.param(Place(in_container=True), UBUNTU, [("docker restart CONTAINER",)], id="container"),
        pytest.param(Place(in_wsl=True), System(wsl=2), [("wsl --shutdown",)], id="WSL"),
        pytest.param(Place(is_windows=True), System(os="windows"), [("shutdown /r /t 0", "nvidia-smi")], id="Windows"),
    ],
)
def test_module_and_libraries_of_one_version(place: Place, system: System, commands: list[tuple[str, ...]]) -> None:
    assert [made.commands for made in load_module_of_libraries(place=place, system=system)] == commands
