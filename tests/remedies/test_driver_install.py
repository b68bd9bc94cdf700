"""Installing a driver: each distribution by what it has, and only a driver that knows the GPU."""

import pytest

from gpudoctor.model import CudaVersion, Device, Driver, DriverVersion, Fix, PciGpu, System
from tests.remedies.made import made_one

RTX_5090 = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2B85", name="")
RTX_3090 = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2204", name="")
K40 = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="1023", name="")
GTX_1080 = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="1B80", name="")


def linux(distribution: str, version: str | None = None, gpu: PciGpu | None = None) -> System:
    return System(
        os="linux",
        machine="x86_64",
        distribution=distribution,
        distribution_version=version,
        pci_gpus=(gpu,) if gpu else None,
        container="",
    )


@pytest.mark.parametrize(
    ("version", "gpu", "package"),
    [
        pytest.param("12", RTX_3090, "nvidia-driver", id="Debian's own driver knows it"),
        pytest.param("12", RTX_5090, "nvidia-open", id="R535 is too old for RTX 50"),
        pytest.param("13", RTX_5090, "nvidia-open", id="and so is R550"),
        pytest.param("14", RTX_5090, "", id="an unknown packaged version is not new enough"),
        pytest.param(None, RTX_5090, "", id="nor that of an unknown release"),
        pytest.param("12", GTX_1080, "nvidia-driver", id="Pascal, which Debian's own driver supports"),
        pytest.param("12", K40, "", id="Kepler, which it has dropped"),
        pytest.param("11", K40, "nvidia-driver", id="Kepler, which Debian 11 still supports"),
        pytest.param("14", GTX_1080, "", id="Pascal, which an unknown driver may have dropped"),
        pytest.param("12", None, "nvidia-driver", id="the GPU is unknown"),
    ],
)
def test_debian(version: str | None, gpu: PciGpu | None, package: str) -> None:
    commands = made_one(Fix("install-driver"), system=linux("debian", version, gpu)).commands
    installs = [command for command in commands if "install -y" in command]
    assert installs == ([f"sudo apt-get install -y {package}"] if package else [])
    assert any(command.endswith("debian13/x86_64/cuda-keyring_1.1-1_all.deb") for command in commands) is (
        package == "nvidia-open" and version == "13"
    )


def test_cuda_13_needs_more_than_debian_has() -> None:
    a10 = Device(nvml_index=0, name="NVIDIA A10")
    fix = Fix("update-driver", needed=CudaVersion(13, 0))
    commands = made_one(fix, system=linux("debian", "13"), devices=(a10,)).commands
    assert "sudo apt-get install -y nvidia-open" in commands


@pytest.mark.parametrize(
    ("distribution", "version", "install"),
    [
        ("ubuntu", "24.04", "sudo ubuntu-drivers install"),
        ("linuxmint", "22.1", "sudo ubuntu-drivers install"),
        ("linuxmint", None, "sudo ubuntu-drivers install"),
        ("linuxmint", "6", "sudo apt-get install -y nvidia-driver"),
        ("pop", "22.04", "sudo apt-get install -y system76-driver-nvidia"),
        ("debian", "12", "sudo apt-get install -y nvidia-driver"),
    ],
)
def test_what_is_purged_is_installed_by_what_the_distribution_has(
    distribution: str, version: str | None, install: str
) -> None:
    *purge, installed, reboot, _ = made_one(Fix("reinstall-driver"), system=linux(distribution, version)).commands
    assert (installed, reboot) == (install, "sudo reboot")
    assert any("purge" in command for command in purge)


@pytest.mark.parametrize("distribution", ["linuxmint", "pop"])
def test_the_family_of_ubuntu_installs_by_its_own_tool(distribution: str) -> None:
    commands = made_one(Fix("install-driver"), system=linux(distribution, "22.04", RTX_5090)).commands
    assert commands[0] == "sudo apt-get update"
    assert "nvidia-driver\n" not in "\n".join(commands) + "\n"


@pytest.mark.parametrize(
    ("fix", "distribution", "driver", "gpu", "installs"),
    [
        pytest.param("install-open-module", "ubuntu", (550, 54), RTX_5090, ["nvidia-driver-580-open"], id="R550"),
        pytest.param("install-open-module", "ubuntu", (570, 86), RTX_5090, ["nvidia-driver-570-open"], id="R570"),
        pytest.param("install-open-module", "pop", (580, 82), RTX_3090, ["nvidia-driver-580-open"], id="Pop!_OS"),
        pytest.param("install-proprietary-module", "ubuntu", (595, 71), GTX_1080, ["nvidia-driver-580"], id="R595"),
        pytest.param("install-proprietary-module", "ubuntu", (580, 65), GTX_1080, ["nvidia-driver-580"], id="R580"),
        pytest.param(
            "install-proprietary-module",
            "debian",
            (595, 71),
            GTX_1080,
            ["nvidia-driver-pinning-580", "--allow-downgrades cuda-drivers-580"],
            id="a newer branch of NVIDIA's repository has no code for Pascal",
        ),
        pytest.param("install-proprietary-module", "debian", (550, 163), GTX_1080, ["nvidia-kernel-dkms"], id="own"),
    ],
)
def test_the_package_installs_a_branch_that_supports_the_gpu(
    fix: str, distribution: str, driver: tuple[int, ...], gpu: PciGpu, installs: list[str]
) -> None:
    remedy = made_one(Fix(fix), driver=Driver(version=DriverVersion(driver)), system=linux(distribution, None, gpu))
    assert [command for command in remedy.commands if "install" in command] == [
        f"sudo apt-get install -y {package}" for package in installs
    ]


@pytest.mark.parametrize(
    ("present", "package"),
    [((470, 256, 2), "nvidia-driver"), ((535, 247, 1), "nvidia-open"), ((550, 163, 1), "nvidia-open")],
)
def test_a_package_of_the_same_or_an_older_branch_is_no_update(present: tuple[int, ...], package: str) -> None:
    driver = Driver(version=DriverVersion(present))
    remedy = made_one(Fix("update-driver"), driver=driver, system=linux("debian", "12", RTX_3090))
    assert f"sudo apt-get install -y {package}" in remedy.commands


@pytest.mark.parametrize(
    ("needed", "present", "gpu", "words"),
    [
        pytest.param(CudaVersion(13, 0), None, K40, ("R470 is the last", "580 is needed"), id="CUDA asks for more"),
        pytest.param(
            DriverVersion((550, 54)), None, K40, ("R470 is the last", "550.54 is needed"), id="so does a driver"
        ),
        pytest.param(None, (470, 256), K40, ("R470 is the last", "it is installed"), id="the last one is installed"),
        pytest.param(None, (390, 157), K40, (), id="an older one is"),
        pytest.param(CudaVersion(11, 4), None, K40, (), id="CUDA that the last one runs"),
    ],
)
def test_no_update_goes_beyond_the_last_branch_of_a_gpu(
    needed: DriverVersion | CudaVersion | None, present: tuple[int, ...] | None, gpu: PciGpu, words: tuple[str, ...]
) -> None:
    driver = Driver(version=DriverVersion(present) if present else None)
    remedy = made_one(Fix("update-driver", needed=needed), driver=driver, system=linux("debian", "11", gpu))
    assert [part for part in words if part not in remedy.summary] == []
    assert bool(remedy.commands) is not bool(words)
