"""The driver is updated, or the libraries are built for an older one: what this user can do comes first."""

from typing import Any

import pytest

from gpudoctor.model import (
    CudaVersion,
    Cupy,
    Device,
    Driver,
    DriverState,
    DriverVersion,
    Fix,
    Package,
    PackageVersion,
    Python,
    Remedy,
    System,
    Torch,
)
from gpudoctor.model.versions import ComputeCapability
from tests.remedies.made import made

PYTHON = Python(version=PackageVersion("3.12.3"), executable="/v/bin/python", platform_tag="linux_x86_64", packages=())
UBUNTU = System(os="linux", machine="x86_64", distribution="ubuntu", distribution_version="24.04", container="")
A10 = Device(nvml_index=0, name="NVIDIA A10", compute_capability=ComputeCapability(8, 6))
R535 = Driver(version=DriverVersion((535, 129, 3)), cuda_version=CudaVersion(12, 2))
TORCH = Torch(installed=True, version=PackageVersion("2.13.0+cu130"), build="cuda", cuda_version=CudaVersion(13, 0))
CUPY = Cupy(
    distributions=(Package(name="cupy-cuda13x", version=PackageVersion("14.2.0")),), platform="cuda", cuda_major=13
)


def fit(*libraries: str, stays: bool = False, **changed: Any) -> tuple[Remedy, ...]:
    machine: dict[str, Any] = {
        "driver_state": DriverState(stays=stays, cuda_version=CudaVersion(12, 2)),
        "driver": R535,
        "devices": (A10,),
        "system": UBUNTU,
        "python": PYTHON,
        "torch": TORCH,
        "cupy": CUPY,
        **changed,
    }
    needed = machine.pop("needed", CudaVersion(13, 0))
    return made(Fix("fit-driver-and-libraries", needed=needed, libraries=libraries), **machine)


def kinds(remedies: tuple[Remedy, ...]) -> list[str]:
    commands = [" ".join(remedy.commands) or remedy.summary for remedy in remedies]
    names = {"ubuntu-drivers": "driver", "torch==": "torch", "cupy-cuda": "cupy"}
    names["for an older CUDA version"] = "build for an older CUDA"
    return [next((kind for part, kind in names.items() if part in line), "") for line in commands]


@pytest.mark.parametrize(
    ("libraries", "stays", "order"),
    [
        (("torch",), False, ["driver", "torch"]),
        (("torch",), True, ["torch", "driver"]),
        (("torch", "cupy"), True, ["torch", "cupy", "driver"]),
        (("cupy",), False, ["driver", "cupy"]),
        ((), True, ["driver", "build for an older CUDA"]),
    ],
)
def test_order(libraries: tuple[str, ...], stays: bool, order: list[str]) -> None:
    assert kinds(fit(*libraries, stays=stays)) == order


def test_a_driver_older_than_every_build_is_updated_although_it_stays() -> None:
    old = Driver(version=DriverVersion((390, 157)))
    state = DriverState(stays=True, cuda_version=CudaVersion(9, 1))
    update, build = fit("torch", driver_state=state, driver=old, python=None, needed=CudaVersion(10, 1), devices=None)
    assert any("nvidia-driver" in command or "ubuntu-drivers" in command for command in update.commands)
    assert build.commands == ()
    assert build.summary.startswith("No PyTorch build since 1.2 fits")


@pytest.mark.parametrize(
    ("driver", "build"),
    [
        (DriverVersion((396, 26)), "torch==1.7.1+cu92"),
        (DriverVersion((410, 104)), "torch==1.7.1+cu92"),
        (DriverVersion((418, 39)), "torch==1.8.1+cu101"),
    ],
)
def test_the_build_for_an_old_driver(driver: DriverVersion, build: str) -> None:
    found = fit(
        "torch",
        driver_state=DriverState(),
        driver=Driver(version=driver),
        torch=Torch(version=PackageVersion("1.3.1")),
        python=Python(version=PackageVersion("3.6.9"), platform_tag="linux_x86_64"),
        devices=(Device(nvml_index=0, compute_capability=ComputeCapability(6, 1)),),
    )
    assert any(build in command for remedy in found for command in remedy.commands)
    assert not [remedy for remedy in found if remedy.summary.startswith("No PyTorch build")]


def test_an_unknown_need_names_the_floor_of_each_major_version() -> None:
    summary = fit(needed=None)[0].summary
    assert all(version in summary for version in ("580", "525.60.13", "450.80.02"))


def test_what_a_message_names_stands_for_an_unknown_driver() -> None:
    update, install = fit("torch", driver=None)
    assert "+cu12" in " ".join(install.commands)
    assert update.commands
