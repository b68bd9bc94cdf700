"""The kernel module: what stands in its way decides the commands."""

import pytest

from gpudoctor.model import Device, Driver, DriverVersion, Fix, Place, System
from tests.remedies.made import made, made_one

REBOOT = ("sudo reboot", "nvidia-smi")


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
        pytest.param(linux("ubuntu"), Driver(module_built_for_kernel=False, dkms=False), [], id="not built, no DKMS"),
        pytest.param(
            linux("debian", secure_boot=True),
            Driver(dkms=True),
            [
                "mokutil --sb-state",
                "sudo mokutil --import /var/lib/dkms/mok.pub",
            ],
            id="Secure Boot, Debian",
        ),
        pytest.param(
            linux("fedora", secure_boot=True),
            Driver(dkms=True),
            ["mokutil --sb-state", "sudo mokutil --import /var/lib/dkms/mok.pub"],
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
    assert list(made_one(Fix("load-driver"), system=system, driver=driver).commands) == commands


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
    first, *others = made_one(
        Fix("load-driver"), system=linux(distribution), driver=Driver(nouveau_loaded=True)
    ).commands
    assert first == (
        r"printf 'blacklist nouveau\noptions nouveau modeset=0\nblacklist nova_core\nblacklist nova_drm\n' | "
        "sudo tee /etc/modprobe.d/blacklist-nouveau.conf"
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
    assert made_one(Fix("reboot", summary="Reboot"), system=system).commands == commands


R570 = Driver(version=DriverVersion.parse("570.86"))


@pytest.mark.parametrize(
    ("distribution", "driver", "package", "proprietary"),
    [
        ("ubuntu", R570, "nvidia-driver-570-open", "nvidia-driver-570"),
        ("ubuntu", None, None, None),
        ("debian", R570, None, "nvidia-kernel-dkms"),
        ("fedora", R570, None, "akmod-nvidia-580xx xorg-x11-drv-nvidia-580xx-cuda"),
    ],
)
def test_the_other_module(
    distribution: str, driver: Driver | None, package: str | None, proprietary: str | None
) -> None:
    system = linux(distribution)
    for name, wanted in (("install-open-module", package), ("install-proprietary-module", proprietary)):
        install = "dnf install -y" if distribution == "fedora" else "apt-get install -y"
        commands = () if wanted is None else (f"sudo {install} {wanted}", *REBOOT)
        assert made_one(Fix(name), driver=driver, system=system).commands == commands


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
        pytest.param(Place(in_wsl=True), Driver(), [("wsl --shutdown",), ("nvidia-smi",)], id="WSL"),
    ],
)
def test_reloading_uvm(place: Place, driver: Driver, commands: list[tuple[str, ...]]) -> None:
    remedies = made(Fix("reload-uvm"), place=place, driver=driver, system=linux("ubuntu"))
    assert [remedy.commands for remedy in remedies] == commands


@pytest.mark.parametrize(("count", "named"), [(1, False), (2, True)])
def test_several_gpus_without_heterogeneous_memory(count: int, named: bool) -> None:
    devices = tuple(Device(nvml_index=number) for number in range(count))
    remedies = made(Fix("reload-uvm"), place=Place(), driver=Driver(), system=linux("ubuntu"), devices=devices)
    assert any("uvm_disable_hmm=1" in command for remedy in remedies for command in remedy.commands) is named


UBUNTU, FEDORA = System(os="linux", distribution="ubuntu"), System(os="linux", distribution="fedora")


@pytest.mark.parametrize(
    ("system", "branch", "commands"),
    [
        (UBUNTU, "470", ("sudo apt-get install -y nvidia-driver-470", *REBOOT)),
        (UBUNTU, "", ()),
        (FEDORA, "470", ("sudo dnf install -y akmod-nvidia-470xx xorg-x11-drv-nvidia-470xx-cuda", *REBOOT)),
        (System(distribution="gentoo"), "470", ()),
        (None, "470", ()),
    ],
)
def test_legacy_driver(system: System | None, branch: str, commands: tuple[str, ...]) -> None:
    assert made_one(Fix("install-legacy-driver", branch=branch), system=system).commands == commands


@pytest.mark.parametrize(
    ("system", "headers", "initramfs", "key"),
    [
        (
            None,
            'sudo apt-get install -y "linux-headers-$(uname -r)"',
            "sudo update-initramfs -u",
            "/var/lib/shim-signed/mok/MOK.der",
        ),
        (
            System(distribution="linuxmint"),
            'sudo apt-get install -y "linux-headers-$(uname -r)"',
            "sudo update-initramfs -u",
            "/var/lib/shim-signed/mok/MOK.der",
        ),
        (
            FEDORA,
            'sudo dnf install -y "kernel-devel-$(uname -r)"',
            "sudo dracut --force",
            "/etc/pki/akmods/certs/public_key.der",
        ),
    ],
)
def test_commands_of_the_distribution(system: System | None, headers: str, initramfs: str, key: str) -> None:
    assert made_one(Fix("build-kernel-module"), system=system).commands == (
        headers,
        "sudo akmods --force" if system is FEDORA else "sudo dkms autoinstall",
        "sudo modprobe nvidia",
        "nvidia-smi",
    )
    assert made_one(Fix("keep-nouveau-out"), system=system).commands == (
        (
            r"printf 'blacklist nouveau\noptions nouveau modeset=0\nblacklist nova_core\nblacklist nova_drm\n' | "
            "sudo tee /etc/modprobe.d/blacklist-nouveau.conf"
        ),
        initramfs,
        *REBOOT,
    )
    assert made_one(Fix("enrol-module-key"), system=system).commands == (
        "mokutil --sb-state",
        f"sudo mokutil --import {key}",
    )


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
    assert [one.commands for one in made(Fix("load-module-of-libraries"), place=place, system=system)] == commands


def test_fedora_builds_with_akmods_unless_dkms_has_the_module() -> None:
    assert "if akmods does not have its source" in made_one(Fix("build-kernel-module"), system=FEDORA).summary
    with_dkms = made_one(Fix("build-kernel-module"), system=FEDORA, driver=Driver(dkms=True))
    assert "sudo dkms autoinstall" in with_dkms.commands


def test_the_page_on_secure_boot_is_that_of_the_distribution() -> None:
    assert "rpmfusion.org" in (made_one(Fix("enrol-module-key"), system=FEDORA).reference or "")
    assert "wiki.debian.org" in (
        made_one(Fix("enrol-module-key"), system=System(distribution="debian")).reference or ""
    )


def test_an_enrolled_key_is_compared_with_the_signer() -> None:
    commands = made_one(Fix("compare-module-key"), system=FEDORA).commands
    assert commands == (
        "sudo mokutil --test-key /etc/pki/akmods/certs/public_key.der",
        "modinfo -F signer nvidia",
        "sudo akmods --force",
    )


def test_arch_boots_the_installed_kernel() -> None:
    remedy = made_one(Fix("build-kernel-module"), system=System(os="linux", distribution="arch"), driver=Driver())
    assert remedy.commands == ("uname -r", "pacman -Q linux", "sudo reboot")


def test_dkms_signs_an_installed_module_only_if_it_is_installed_again() -> None:
    remedy = made_one(Fix("compare-module-key"), system=System(distribution="ubuntu"), driver=Driver(dkms=True))
    assert remedy.commands[-2:] == ("dkms status", "sudo dkms install --force MODULE/VERSION")
    assert "Replace MODULE/VERSION" in remedy.summary
