"""What is advised works: every combination of PyTorch release, driver branch and devices, checked from the table up."""

import re

import pytest

from gpudoctor.data.capabilities import runs_on
from gpudoctor.data.drivers import driver_can_run
from gpudoctor.data.tables import load_table
from gpudoctor.data.torch_builds import torch_builds, torch_releases
from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Cupy,
    Device,
    Driver,
    DriverVersion,
    Package,
    PackageVersion,
    Python,
    Remedy,
    System,
    Torch,
)
from gpudoctor.remedies.cupy_install import install_cupy
from gpudoctor.remedies.driver_install import update_driver
from gpudoctor.remedies.torch_install import install_torch

DRIVERS = [DriverVersion.parse(row["branch"]) for row in load_table("drivers")["branches"]]
DRIVERS += [DriverVersion.parse("390.157"), DriverVersion.parse("640.10")]
DEVICES = [
    ("3.5",), ("3.7",), ("5.2",), ("6.1",), ("7.0",), ("7.5",), ("8.0",), ("8.6",), ("8.7",), ("8.9",), ("9.0",),
    ("10.0",), ("10.3",), ("11.0",), ("12.0",), ("12.1",), ("13.0",), ("7.0", "8.9"), ("6.1", "12.0"),
]  # fmt: skip
PLATFORMS = {
    "linux_x86_64": System(os="linux", machine="x86_64"),
    "linux_aarch64": System(os="linux", machine="aarch64"),
    "windows_amd64": System(os="windows", machine="AMD64"),
}
PYTHON = Python(version=PackageVersion("3.11.9"), executable="/v/bin/python", installer="pip")
# Oldest and newest, and both sides of each change of what the builds hold.
RELEASES = ("1.8", "1.13", "2.0", "2.6", "2.7", "2.10", "2.11", "2.14", "2.15")
COMBINATIONS = [
    *(("linux_x86_64", release) for release in RELEASES),
    *((platform, release) for platform in ("linux_aarch64", "windows_amd64") for release in RELEASES[::2]),
]


def devices_of(capabilities: tuple[str, ...]) -> tuple[Device, ...]:
    parsed = (ComputeCapability.parse(capability) for capability in capabilities)
    return tuple(Device(nvml_index=index, compute_capability=capability) for index, capability in enumerate(parsed))


def assert_works(remedy: Remedy, driver: DriverVersion, capabilities: tuple[str, ...], platform: str) -> None:
    found = re.search(r"torch==(\d+\.\d+)(\.\d+)\+(cu\d+)", " ".join(remedy.commands))
    assert found is not None, remedy
    (build,) = [build for build in torch_builds(found[1]) if build.variant == found[3]]
    assert build.available is True
    assert f"/whl/{build.variant}" in remedy.commands[0] or "torch_stable.html" in remedy.commands[0]
    assert "3.11" in build.pythons[platform]
    assert driver_can_run(driver, build.cuda, "windows" if platform == "windows_amd64" else "linux") is True
    for capability in capabilities:
        parsed = ComputeCapability.parse(capability)
        assert runs_on(build.platform_architectures[platform], parsed, build.cuda), (remedy, capability)


@pytest.mark.parametrize(("platform", "release"), COMBINATIONS)
def test_the_build_advised_runs_or_nothing_is_advised_and_the_reason_said(platform: str, release: str) -> None:
    newest = {row.release: row.versions[-1] for row in torch_releases()}
    advised = 0
    for driver in DRIVERS:
        for capabilities in DEVICES:
            remedy = install_torch(
                python=PYTHON,
                system=PLATFORMS[platform],
                driver=Driver(version=driver),
                devices=devices_of(capabilities),
                pytorch=Torch(version=PackageVersion(f"{newest[release]}+cpu")),
            )
            if remedy.commands and "Jetson" not in remedy.summary:
                advised += 1
                assert_works(remedy, driver, capabilities, platform)
            else:
                assert remedy.summary
                assert remedy.reference
    assert advised > len(DRIVERS)


def test_nothing_is_withheld_that_would_work() -> None:
    for driver in DRIVERS:
        for capabilities in DEVICES:
            remedy = install_torch(
                python=PYTHON,
                system=PLATFORMS["linux_x86_64"],
                driver=Driver(version=driver),
                devices=devices_of(capabilities),
            )
            works = any(
                build.available
                and "3.11" in build.pythons["linux_x86_64"]
                and driver_can_run(driver, build.cuda)
                and all(runs_on(build.architectures, ComputeCapability.parse(c), build.cuda) for c in capabilities)
                for build in torch_builds()
            )
            assert (bool(remedy.commands) and "Jetson" not in remedy.summary) == works, (
                driver,
                capabilities,
                remedy.summary,
            )


def test_a_driver_update_is_advised_only_to_a_branch_that_supports_the_device() -> None:
    for capabilities in DEVICES:
        for build in torch_builds():
            remedy = update_driver(
                system=PLATFORMS["linux_x86_64"], needed=build.cuda, devices=devices_of(capabilities)
            )
            if capabilities == ("7.0",) and build.cuda.major == 13:
                assert not remedy.summary.startswith("No driver update helps")  # R580 runs CUDA 13.0
            if capabilities == ("3.7",) and build.cuda.major >= 12:
                assert remedy.summary.startswith("No driver update helps")
                assert remedy.commands == ()


def test_the_cupy_advised_is_one_and_fits_the_driver() -> None:
    installed = (Package(name="cupy-cuda11x", version=PackageVersion("13.6.0")),)
    for driver in DRIVERS:
        for capabilities in DEVICES:
            remedy = install_cupy(
                python=PYTHON,
                system=PLATFORMS["linux_x86_64"],
                driver=Driver(version=driver),
                devices=devices_of(capabilities),
                cupy=Cupy(distributions=installed),
            )
            names = set(re.findall(r"install (?:--upgrade )?'?(cupy-cuda\d+x)", " ".join(remedy.commands)))
            if not remedy.commands:
                assert remedy.reference
                continue
            (name,) = names
            major = int(name[len("cupy-cuda") : -1])
            first = {11: CudaVersion(11, 2), 12: CudaVersion(12, 0), 13: CudaVersion(13, 0)}[major]
            assert driver_can_run(driver, first) is True, (driver, remedy)
            if major == 13:
                assert all(ComputeCapability.parse(c) >= ComputeCapability(7, 5) for c in capabilities)
