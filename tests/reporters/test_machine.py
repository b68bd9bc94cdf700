"""The machine in a few lines: whole answers, from a machine of which nothing is known to one with many devices."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    DriverVersion,
    Package,
    PackageVersion,
    Python,
    Snapshot,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.reporters.machine import device_lines, gpu_parts, machine_parts
from tests.reporters.reports import DESKTOP, H200, RTX_4090

PYTHON = Python(version=PackageVersion("3.12.3"), environment="venv", installer="pip")


@pytest.mark.parametrize(
    ("snapshot", "parts"),
    [
        (Snapshot(), ["system unknown", "Python unknown", "driver unknown", "torch unknown", "CuPy unknown"]),
        (
            DESKTOP,
            ["Ubuntu 24.04.1 LTS", "Python 3.12.3 (venv, pip)", "driver 550.54.14", "torch 2.13.0+cpu", "CuPy none"],
        ),
        (
            Snapshot(
                system=System(os="linux", distribution="debian", distribution_version="12", wsl=2, container="docker"),
                python=Python(version=PackageVersion("3.12.3"), environment="conda", installer="conda"),
                driver=Driver(installed=False),
                torch=Torch(installed=False),
                torch_runtime=TorchRuntime(version=PackageVersion("2.13.0")),
                cupy_runtime=CupyRuntime(version=PackageVersion("13.6.0")),
            ),
            [
                "Debian 12",
                "WSL 2",
                "docker container",
                "Python 3.12.3 (conda)",
                "driver none",
                "torch none",
                "CuPy 13.6.0",
            ],
        ),
        (
            Snapshot(
                system=System(os="windows"),
                python=Python(version=PackageVersion("3.12.3")),
                driver=Driver(library_version=DriverVersion((550, 90, 7)), module_loaded=False),
                torch=Torch(version=PackageVersion("2.13.0+cpu")),
                torch_runtime=TorchRuntime(version=PackageVersion("2.12.0")),
                cupy=Cupy(
                    distributions=tuple(Package(name=f"cupy-{n}", version=PackageVersion("1")) for n in range(5))
                ),
            ),
            [
                "Windows",
                "Python 3.12.3",
                "driver 550.90.07, not loaded",
                "torch 2.12.0",
                "cupy-0 1, cupy-1 1, cupy-2 1, cupy-3 1",
            ],
        ),
        (
            Snapshot(
                system=System(os="darwin"),
                python=replace(PYTHON, prefix="~/train", active_environment="~/train"),
                driver=Driver(library_version=DriverVersion((550, 90, 7))),
            ),
            [
                "macOS",
                "Python 3.12.3 (venv, pip, activated: ~/train)",
                "driver 550.90.07",
                "torch unknown",
                "CuPy unknown",
            ],
        ),
    ],
)
def test_what_is_installed(snapshot: Snapshot, parts: list[str]) -> None:
    assert machine_parts(snapshot) == parts


def test_the_gpus_of_a_machine() -> None:
    nameless = Device(nvml_index=2)
    assert gpu_parts(Snapshot()) == []
    assert gpu_parts(Snapshot(devices=(RTX_4090, H200, nameless, replace(H200, nvml_index=3)))) == [
        "NVIDIA GeForce RTX 4090 (24.0 GiB)",
        "2 x NVIDIA H200 (141.0 GiB)",
        "unknown GPU",
    ]
    kinds = tuple(Device(nvml_index=n, name=f"GPU {n}") for n in range(5))
    assert gpu_parts(Snapshot(devices=kinds)) == ["GPU 0", "GPU 1", "GPU 2", "GPU 3"]


def test_one_device_is_a_line_and_several_are_a_table_if_it_fits() -> None:
    one = ["GPU 0: NVIDIA GeForce RTX 4090, compute capability 8.9, memory 1.5 of 24.0 GiB, 3 % busy, 41 °C"]
    assert device_lines(Snapshot(devices=(RTX_4090,)), 100) == one
    both = Snapshot(devices=(RTX_4090, H200))
    table = [
        "GPU    name                     compute       memory           busy",
        "                                capability",
        "0      NVIDIA GeForce RTX 4090  8.9           1.5 of 24.0 GiB  3 %     41 °C",
        "1      NVIDIA H200              unknown       141.0 GiB",
    ]
    lines = ["GPU 0: NVIDIA GeForce RTX 4090, compute capability 8.9,", "  memory 1.5 of 24.0 GiB, 3 % busy, 41 °C"]
    lines += ["GPU 1: NVIDIA H200, compute capability unknown, memory 141.0 GiB"]
    assert [line.rstrip() for line in device_lines(both, 76)] == table
    assert device_lines(both, 72) == lines
    assert device_lines(Snapshot(), 100) == []


def test_a_table_that_is_wider_than_the_screen_is_lines() -> None:
    workstation = replace(RTX_4090, name="NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition")
    both = Snapshot(devices=(workstation, replace(workstation, nvml_index=1)))
    widest = max(map(len, device_lines(both, 200)))
    assert len(device_lines(both, widest)) == 4  # two lines of headers
    assert device_lines(both, widest - 1)[0].startswith("GPU 0: NVIDIA RTX PRO 6000")


def test_a_device_that_failed_says_why_in_a_line() -> None:
    lost = Device(nvml_index=1, name="NVIDIA H200", error="GPU is lost")
    assert device_lines(Snapshot(devices=(H200, lost)), 100) == [
        "GPU 1: NVIDIA H200, compute capability unknown, memory 141.0 GiB",
        "GPU 1: NVIDIA H200: GPU is lost",
    ]


def test_devices_beyond_the_sixteenth_are_counted() -> None:
    def listed(count: int) -> list[str]:
        return device_lines(Snapshot(devices=tuple(replace(H200, nvml_index=n) for n in range(count))), 100)

    assert (len(listed(16)), len(listed(18))) == (18, 19)
    assert listed(18)[-1] == "and 2 more devices"


@pytest.mark.parametrize(
    ("system", "label"),
    [
        (System(distribution="rhel", distribution_version="9.4"), "RHEL 9.4"),
        (System(distribution="fedora", distribution_version="34"), "Fedora 34"),
        (System(distribution="centos", distribution_version="7"), "CentOS 7"),
        (System(distribution="opensuse-leap", distribution_version="15.6"), "openSUSE Leap 15.6"),
        (System(distribution="ubuntu", distribution_name="Ubuntu 24.04.1 LTS"), "Ubuntu 24.04.1 LTS"),
        (System(), ""),
    ],
)
def test_the_name_of_a_distribution(system: System, label: str) -> None:
    assert system.distribution_label == label
