"""Remedies for the machine itself: driver, kernel module, variables and containers."""

import pytest

from gpudoctor.model import ComputeCapability, CudaVersion, Device, Driver, DriverVersion, Fix, Remedy, System
from gpudoctor.remedies.driver_install import install_driver, update_driver
from tests.remedies.made import made_one

UBUNTU = System(os="linux", machine="x86_64", distribution="ubuntu", distribution_version="24.04")
DEBIAN = System(os="linux", distribution="debian", distribution_version="12")
FEDORA = System(os="linux", distribution="fedora")
GENTOO = System(os="linux", distribution="gentoo")
WSL = System(os="linux", distribution="ubuntu", distribution_version="24.04", wsl=2)
CONTAINER = System(os="linux", distribution="ubuntu", container="docker", user_is_root=True)
WINDOWS = System(os="windows")


def device(capability: str) -> tuple[Device, ...]:
    return (Device(nvml_index=0, compute_capability=ComputeCapability.parse(capability)),)


class TestUpdateDriver:
    def test_nvswitches_need_a_fabric_manager_of_the_same_version(self) -> None:
        driver = Driver(version=DriverVersion.parse("570.133.20"), nvswitches=4)
        remedy = update_driver(system=UBUNTU, needed=None, devices=device("9.0"), driver=driver)
        assert "the fabric manager of the NVSwitches to exactly the same version" in remedy.summary
        assert remedy.commands == ()

    def test_the_command_picks_a_branch_that_is_new_enough(self) -> None:
        driver = Driver(version=DriverVersion.parse("535.129.03"))
        remedy = update_driver(system=UBUNTU, needed=CudaVersion(13, 0), devices=device("8.9"), driver=driver)
        assert remedy.commands == (
            "sudo apt-get update",
            "sudo apt-get install -y ubuntu-drivers-common",
            "sudo ubuntu-drivers install nvidia:580-open",
            "sudo reboot",
            "nvidia-smi",
        )
        assert remedy.needs == ("root", "reboot")
        assert remedy.summary.startswith("Update the NVIDIA driver from 535.129.03 to 580 or newer for CUDA 13.0")

    def test_a_volta_gets_the_proprietary_module(self) -> None:
        remedy = update_driver(system=UBUNTU, needed=CudaVersion(13, 0), devices=device("7.0"))
        assert "sudo ubuntu-drivers install nvidia:580" in remedy.commands
        assert "R580 is the last branch that supports this GPU" in remedy.summary

    def test_the_automatic_choice_is_enough_for_cuda_12(self) -> None:
        remedy = update_driver(system=UBUNTU, needed=CudaVersion(12, 8), devices=device("8.9"))
        assert "sudo ubuntu-drivers install" in remedy.commands

    def test_an_unknown_device_leaves_the_choice_of_the_module_to_the_tool(self) -> None:
        remedy = update_driver(system=UBUNTU, needed=CudaVersion(13, 0))
        assert "sudo ubuntu-drivers install" in remedy.commands

    @pytest.mark.parametrize(
        ("capability", "needed"),
        [
            pytest.param("3.7", CudaVersion(12, 0), id="Kepler ends with R470, 12 needs 525"),
            pytest.param("6.1", DriverVersion.parse("590.48.01"), id="Pascal ends with R580"),
        ],
    )
    def test_the_last_branch_of_the_device_can_rule_it_out(
        self, capability: str, needed: CudaVersion | DriverVersion
    ) -> None:
        remedy = update_driver(system=UBUNTU, needed=needed, devices=device(capability))
        assert remedy.commands == ()
        assert remedy.summary.startswith("No driver update helps")

    def test_the_last_branch_itself_is_not_ruled_out(self) -> None:
        remedy = update_driver(system=UBUNTU, needed=DriverVersion.parse("580.65.06"), devices=device("6.1"))
        assert remedy.commands

    def test_wsl_takes_the_driver_of_windows(self) -> None:
        remedy = update_driver(system=WSL, needed=CudaVersion(12, 4))
        assert remedy.commands == ()
        assert "on Windows and not inside WSL" in remedy.summary
        assert "527.41" in remedy.summary

    def test_a_container_takes_the_driver_of_its_host(self) -> None:
        remedy = update_driver(system=CONTAINER, needed=CudaVersion(13, 0))
        assert remedy.commands == ()
        assert "on the host" in remedy.summary

    @pytest.mark.parametrize("system", [WINDOWS, GENTOO, None])
    def test_no_command_if_none_is_documented(self, system: System | None) -> None:
        remedy = update_driver(system=system or System(), needed=None)
        assert remedy.commands == ()
        assert remedy.reference is not None
        assert remedy.reference.startswith("https://")

    def test_debians_own_package_is_too_old_for_cuda_13(self) -> None:
        assert (
            "sudo apt-get install -y nvidia-driver" in update_driver(system=DEBIAN, needed=CudaVersion(12, 4)).commands
        )
        assert update_driver(system=DEBIAN, needed=CudaVersion(13, 0)).commands == ()

    def test_a_distribution_that_dropped_the_device_has_its_older_branch(self) -> None:
        assert "akmod-nvidia " in update_driver(system=FEDORA, needed=None, devices=device("8.6")).commands[0]
        assert "akmod-nvidia-580xx" in update_driver(system=FEDORA, needed=None, devices=device("6.1")).commands[0]


class TestInstallDriver:
    def test_root_needs_no_sudo(self) -> None:
        root = System(os="linux", distribution="fedora", user_is_root=True)
        assert install_driver(system=root, devices=device("8.6")).commands == (
            "dnf install -y akmod-nvidia xorg-x11-drv-nvidia-cuda",
            "reboot",
            "nvidia-smi",
        )

    @pytest.mark.parametrize("distribution", ["fedora", "arch"])
    def test_the_newest_branch_is_for_a_gpu_that_is_known(self, distribution: str) -> None:
        system = System(os="linux", distribution=distribution)
        assert install_driver(system=system, devices=device("8.6")).commands
        assert install_driver(system=system).commands == ()
        assert install_driver(system=system).reference is not None

    def test_a_repository_that_a_stock_system_lacks_is_named(self) -> None:
        assert "RPM Fusion" in install_driver(system=FEDORA, devices=device("8.6")).summary
        assert "non-free" in install_driver(system=DEBIAN).summary

    def test_ubuntu_chooses_by_itself(self) -> None:
        remedy = install_driver(system=UBUNTU, devices=device("6.1"))
        assert "sudo ubuntu-drivers install" in remedy.commands
        assert remedy.needs == ("root", "reboot")


class TestLoadDriver:
    def test_a_module_that_only_waits(self) -> None:
        remedy = made_one(
            Fix("load-driver"), system=UBUNTU, driver=Driver(module_loaded=False, module_built_for_kernel=True)
        )
        assert remedy.commands == ("sudo modprobe nvidia", "nvidia-smi")
        assert remedy.needs == ("root",)

    def test_nouveau_goes_first(self) -> None:
        remedy = made_one(
            Fix("load-driver"), system=UBUNTU, driver=Driver(nouveau_loaded=True, module_built_for_kernel=True)
        )
        lines = r"printf 'blacklist nouveau\noptions nouveau modeset=0\nblacklist nova_core\nblacklist nova_drm\n'"
        assert remedy.commands == (
            f"{lines} | sudo tee /etc/modprobe.d/blacklist-nouveau.conf",
            "sudo update-initramfs -u",
            "sudo reboot",
            "nvidia-smi",
        )
        assert remedy.needs == ("root", "reboot")

    def test_nouveau_on_an_unknown_distribution(self) -> None:
        remedy = made_one(Fix("load-driver"), system=GENTOO, driver=Driver(nouveau_loaded=True))
        assert remedy.commands == ()
        assert "/etc/modprobe.d/blacklist-nouveau.conf" in remedy.summary

    def test_no_module_for_the_running_kernel_is_built_by_dkms(self) -> None:
        system = System(os="linux", distribution="ubuntu", kernel="6.8.0-45-generic")
        remedy = made_one(Fix("load-driver"), system=system, driver=Driver(module_built_for_kernel=False, dkms=True))
        assert remedy.commands == (
            'sudo apt-get install -y "linux-headers-$(uname -r)"',
            "sudo dkms autoinstall",
            "sudo modprobe nvidia",
            "nvidia-smi",
        )
        assert "6.8.0-45-generic" in remedy.summary

    def test_no_module_and_no_dkms_needs_the_package_again(self) -> None:
        remedy = made_one(Fix("load-driver"), system=UBUNTU, driver=Driver(module_built_for_kernel=False, dkms=False))
        assert remedy.commands == ()
        assert "package again" in remedy.summary

    def test_secure_boot_needs_the_key_of_dkms(self) -> None:
        system = System(os="linux", distribution="ubuntu", secure_boot=True)
        remedy = made_one(Fix("load-driver"), system=system, driver=Driver(module_built_for_kernel=True, dkms=True))
        assert remedy.commands[1] == "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der"
        assert remedy.needs == ("root", "reboot")

    def test_secure_boot_and_a_module_that_the_distribution_signed(self) -> None:
        system = System(os="linux", distribution="ubuntu", secure_boot=True)
        remedy = made_one(Fix("load-driver"), system=system, driver=Driver(module_built_for_kernel=True, dkms=False))
        assert remedy.commands[0] == "sudo modprobe nvidia"

    def test_wsl_and_container(self) -> None:
        assert made_one(Fix("load-driver"), system=WSL, driver=None).commands == ("wsl --shutdown",)
        assert "on the host" in made_one(Fix("load-driver"), system=CONTAINER, driver=None).summary


@pytest.mark.parametrize(
    ("system", "commands", "needs"),
    [
        pytest.param(UBUNTU, ("sudo reboot", "nvidia-smi"), ("root", "reboot"), id="Linux"),
        pytest.param(WSL, ("wsl --shutdown",), ("restart",), id="WSL"),
        pytest.param(WINDOWS, ("shutdown /r /t 0", "nvidia-smi"), ("reboot",), id="Windows"),
        pytest.param(CONTAINER, (), ("root", "reboot"), id="container"),
    ],
)
def test_reboot(system: System, commands: tuple[str, ...], needs: tuple[str, ...]) -> None:
    remedy = made_one(Fix("reboot", summary="Restart the machine"), system=system)
    assert (remedy.commands, remedy.needs) == (commands, needs)
    assert remedy.summary.startswith("Restart the machine")


class TestContainers:
    def test_the_toolkit_of_nvidias_guide_for_apt(self) -> None:
        remedy = made_one(Fix("install-container-toolkit"), system=UBUNTU)
        assert remedy.commands[-5:] == (
            "sudo apt-get update",
            "sudo apt-get install -y nvidia-container-toolkit",
            "sudo nvidia-ctk runtime configure --runtime=docker",
            "sudo systemctl restart docker",
            "docker run --rm --gpus all ubuntu nvidia-smi",
        )
        assert remedy.needs == ("root", "restart")

    def test_for_dnf(self) -> None:
        assert (
            "sudo dnf install -y nvidia-container-toolkit"
            in made_one(Fix("install-container-toolkit"), system=FEDORA).commands
        )

    @pytest.mark.parametrize("system", [GENTOO, CONTAINER])
    def test_no_command_if_none_is_documented(self, system: System | None) -> None:
        remedy = made_one(Fix("install-container-toolkit"), system=system)
        assert remedy.commands == ()
        assert remedy.reference

    def test_on_an_unknown_distribution_the_toolkit_is_installed_before_it_is_configured(self) -> None:
        remedy = made_one(Fix("install-container-toolkit"), system=None)
        install = remedy.commands.index("sudo apt-get install -y nvidia-container-toolkit")
        assert install < remedy.commands.index("sudo nvidia-ctk runtime configure --runtime=docker")
        assert "other distributions" in remedy.summary

    def test_docker_desktop_brings_its_own(self) -> None:
        assert made_one(Fix("install-container-toolkit"), system=WINDOWS).commands[0] == "wsl --update"
        assert made_one(Fix("install-container-toolkit"), system=System(os="darwin")).commands == ()

    @pytest.mark.parametrize(
        ("engine", "command"),
        [
            pytest.param("", "docker run --rm --gpus all ubuntu nvidia-smi", id="outside"),
            pytest.param("podman", "podman run --rm --device nvidia.com/gpu=all ubuntu nvidia-smi", id="podman"),
        ],
    )
    def test_start_with_gpu(self, engine: str, command: str) -> None:
        remedy = made_one(Fix("start-container-with-gpu"), system=System(container=engine))
        assert remedy.commands == (command,)

    def test_kubernetes_takes_no_command(self) -> None:
        remedy = made_one(Fix("start-container-with-gpu"), system=System(container="kubernetes"))
        assert remedy.commands == ()
        assert "nvidia.com/gpu" in remedy.summary

    def test_other_options(self) -> None:
        options = "--gpus all --env NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        remedy: Remedy = made_one(Fix("start-container-with-gpu", options=options), system=None)
        assert remedy.commands == (f"docker run --rm {options} ubuntu nvidia-smi",)
