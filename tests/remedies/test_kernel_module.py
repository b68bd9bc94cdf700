"""The kernel module: what stands in its way decides the commands."""

import pytest

from gpudoctor.model import Driver, DriverVersion, Place, System
from gpudoctor.remedies.kernel_module import (
    install_open_module,
    install_proprietary_module,
    load_driver,
    reboot,
    reload_uvm,
)


def linux(distribution: str | None = None, *, secure_boot: bool | None = None) -> System:
    return System(os="linux", distribution=distribution, secure_boot=secure_boot)


@pytest.mark.parametrize(
    ("system", "driver", "commands"),
    [
        pytest.param(linux(), Driver(), ["sudo modprobe nvidia", "nvidia-smi"], id="it only waits"),
        pytest.param(System(wsl=2), Driver(nouveau_loaded=True), ["wsl --shutdown"], id="WSL"),
        pytest.param(linux("void"), Driver(nouveau_loaded=True), [], id="nouveau, unknown distribution"),
        pytest.param(
            linux("ubuntu"),
            Driver(module_built_for_kernel=False, dkms=True),
            [
                'sudo apt-get install -y "linux-headers-$(uname -r)"',
                "sudo dkms autoinstall",
                "sudo modprobe nvidia",
                "nvidia-smi",
            ],
            id="not built, Ubuntu",
        ),
        pytest.param(
            linux("rocky"),
            Driver(module_built_for_kernel=False, dkms=True),
            [
                'sudo dnf install -y "kernel-devel-$(uname -r)"',
                "sudo dkms autoinstall",
                "sudo modprobe nvidia",
                "nvidia-smi",
            ],
            id="not built, Rocky Linux",
        ),
        pytest.param(linux("ubuntu"), Driver(module_built_for_kernel=False), [], id="not built, no DKMS"),
        pytest.param(
            linux("debian", secure_boot=True),
            Driver(dkms=True),
            ["sudo mokutil --import /var/lib/shim-signed/mok/MOK.der", "sudo reboot", "nvidia-smi"],
            id="Secure Boot, Debian",
        ),
        pytest.param(
            linux("fedora", secure_boot=True),
            Driver(dkms=True),
            ["sudo mokutil --import /var/lib/dkms/mok.pub", "sudo reboot", "nvidia-smi"],
            id="Secure Boot, Fedora",
        ),
        pytest.param(
            linux("fedora", secure_boot=True),
            Driver(),
            ["sudo modprobe nvidia", "nvidia-smi"],
            id="Secure Boot, no DKMS",
        ),
    ],
)
def test_loading_the_module(system: System, driver: Driver, commands: list[str]) -> None:
    assert list(load_driver(system=system, driver=driver).commands) == commands


@pytest.mark.parametrize(
    ("distribution", "rebuild"),
    [
        ("ubuntu", "update-initramfs -u"),
        ("debian", "update-initramfs -u"),
        ("arch", "mkinitcpio -P"),
        ("fedora", "dracut --force"),
        ("sles", "dracut --force"),
    ],
)
def test_nouveau_is_kept_from_loading(distribution: str, rebuild: str) -> None:
    first, *others = load_driver(system=linux(distribution), driver=Driver(nouveau_loaded=True)).commands
    assert first == (
        r"printf 'blacklist nouveau\noptions nouveau modeset=0\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf"
    )
    assert others == [f"sudo {rebuild}", "sudo reboot", "nvidia-smi"]


@pytest.mark.parametrize(
    ("system", "commands"),
    [
        (linux(), ("sudo reboot", "nvidia-smi")),
        (System(wsl=2), ("wsl --shutdown",)),
        (System(os="windows"), ("shutdown /r /t 0", "nvidia-smi")),
        (System(os="linux", container="docker"), ()),
    ],
)
def test_a_restart(system: System, commands: tuple[str, ...]) -> None:
    assert reboot(system=system, summary="Reboot").commands == commands


R570 = Driver(version=DriverVersion.parse("570.86"))


@pytest.mark.parametrize(
    ("distribution", "driver", "package", "proprietary"),
    [
        ("ubuntu", R570, "nvidia-driver-570-open", "nvidia-driver-570"),
        ("ubuntu", None, None, None),
        ("debian", R570, None, "nvidia-kernel-dkms"),
        ("fedora", R570, None, None),
    ],
)
def test_the_other_module(
    distribution: str, driver: Driver | None, package: str | None, proprietary: str | None
) -> None:
    system = linux(distribution)
    for made, wanted in (
        (install_open_module(driver=driver, system=system), package),
        (install_proprietary_module(driver=driver, system=system), proprietary),
    ):
        assert made.commands == (
            () if wanted is None else (f"sudo apt-get install {wanted}", "sudo reboot", "nvidia-smi")
        )


OPTION = "options nvidia NVreg_PreserveVideoMemoryAllocations=1"
SUSPEND = (
    f"echo '{OPTION}' | sudo tee /etc/modprobe.d/nvidia-power-management.conf",
    "sudo systemctl enable nvidia-suspend.service nvidia-hibernate.service nvidia-resume.service",
)


@pytest.mark.parametrize(
    ("place", "driver", "commands"),
    [
        pytest.param(
            Place(),
            Driver(uvm_loaded=False),
            [
                ("sudo modprobe nvidia_uvm", "sudo nvidia-modprobe -u -c=0", "gpudoctor check"),
                ("sudo reboot", "nvidia-smi"),
                SUSPEND,
            ],
            id="not loaded",
        ),
        pytest.param(
            Place(),
            Driver(uvm_loaded=True),
            [
                (
                    "sudo rmmod nvidia_uvm",
                    "sudo modprobe nvidia_uvm",
                    "sudo nvidia-modprobe -u -c=0",
                    "gpudoctor check",
                ),
                ("sudo reboot", "nvidia-smi"),
                SUSPEND,
            ],
            id="loaded",
        ),
        pytest.param(
            Place(in_container=True),
            Driver(),
            [("sudo nvidia-modprobe -u -c=0", "docker restart CONTAINER")],
            id="container",
        ),
        pytest.param(Place(in_wsl=True), Driver(), [("sudo reboot", "nvidia-smi")], id="WSL"),
    ],
)
def test_reloading_uvm(place: Place, driver: Driver, commands: list[tuple[str, ...]]) -> None:
    made = reload_uvm(place=place, driver=driver, system=linux("ubuntu"))
    assert [remedy.commands for remedy in made] == commands
