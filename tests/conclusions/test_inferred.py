"""What follows from the facts of a report."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.conclusions.inferred import with_inferred
from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Cupy,
    Device,
    Driver,
    DriverVersion,
    Package,
    PackageVersion,
    PciGpu,
    Python,
    Snapshot,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)


def concluded(sections: dict[str, Any]) -> tuple[dict[str, Any]]:
    """Return the sections of a pasted report with what follows from them."""
    return (vars(with_inferred(Snapshot(contradictions=(), **sections))),)


RTX_3090 = PciGpu(address="", vendor="nvidia", device_id="", name="NVIDIA GeForce RTX 3090")


@pytest.mark.parametrize(
    ("version", "build", "cuda"),
    [
        ("2.1.0+cu118", "cuda", CudaVersion(11, 8)),
        ("1.4.0+cu92", "cuda", CudaVersion(9, 2)),
        ("2.1.0+cpu", "cpu", None),
        ("2.1.0+rocm5.6", "rocm", None),
        ("2.1.0", None, None),
        ("2.0.0a0+git9ded087", None, None),
    ],
)
def test_the_local_part_of_the_version(version: str, build: str | None, cuda: CudaVersion | None) -> None:
    torch = concluded({"torch": Torch(version=PackageVersion(version))})[0]["torch"]
    assert (torch.installed, torch.build, torch.cuda_version) == (True, build, cuda)


def test_the_longer_form_of_one_version() -> None:
    packages = (Package(name="torch", version=PackageVersion("2.1.0+cu118")),)
    facts = {"torch": Torch(version=PackageVersion("2.1.0")), "python": Python(packages=packages)}
    assert concluded(facts)[0]["torch"].build == "cuda"


def test_another_version_is_not_taken() -> None:
    facts = {
        "torch": Torch(version=PackageVersion("2.2.0")),
        "torch_runtime": TorchRuntime(version=PackageVersion("2.1.0+cpu")),
    }
    assert concluded(facts)[0]["torch"].build is None


@pytest.mark.parametrize(
    ("names", "build"),
    [
        pytest.param(("torch", "triton", "nvidia-cudnn-cu12"), "cuda", id="what PyPI's build requires"),
        pytest.param(("torch", "triton"), None, id="no CUDA library"),
        pytest.param(("torch", "triton", "nvidia-cudnn-cu12", "tensorflow"), None, id="they may be TensorFlow's"),
    ],
)
def test_the_cuda_wheels_of_a_list_show_the_build(names: tuple[str, ...], build: str | None) -> None:
    packages = tuple(Package(name=name, version=PackageVersion("2.8.0")) for name in names)
    facts = {"torch": Torch(version=PackageVersion("2.8.0")), "python": Python(packages=packages)}
    assert concluded(facts)[0]["torch"].build == build


def test_machine_code_shows_the_build() -> None:
    assert concluded({"torch_runtime": TorchRuntime(architectures=("sm_70", "sm_80"))})[0]["torch"].build == "cuda"


def test_torch_that_is_not_installed_stays_so() -> None:
    assert concluded({"torch": Torch(installed=False)})[0]["torch"] == Torch(installed=False)


def test_a_known_driver_is_installed() -> None:
    assert concluded({"driver": Driver(version=DriverVersion((535, 54, 3)))})[0]["driver"].installed is True
    assert concluded({"driver": Driver(nvml_error="x")})[0]["driver"].installed is None


def test_a_distribution_is_linux() -> None:
    assert concluded({"system": System(distribution="ubuntu")})[0]["system"].os == "linux"
    assert concluded({"system": System(machine="x86_64")})[0]["system"].os is None


def test_one_cupy() -> None:
    one = Cupy(distributions=(Package(name="cupy-cuda11x", version=PackageVersion("12")),))
    assert concluded({"cupy": one})[0]["cupy"].cuda_major == 11


def test_a_device_has_the_capability_of_its_name() -> None:
    (device,) = concluded({"devices": (Device(nvml_index=0, name="Tesla T4"),)})[0]["devices"]
    assert device.compute_capability == ComputeCapability(7, 5)


def test_a_gpu_that_is_named_is_a_device() -> None:
    (facts,) = concluded({"system": System(pci_gpus=(RTX_3090,))})
    assert [device.name for device in facts["devices"]] == ["NVIDIA GeForce RTX 3090"]
    assert facts["devices"][0].compute_capability == ComputeCapability(8, 6)
    assert [report.source for report in facts["reports"] if report.section == "devices"] == [
        "concluded from the report"
    ]


@pytest.mark.parametrize(
    "others",
    [
        {"driver": Driver(nvml_error="Driver/library version mismatch")},
        {"driver": Driver(installed=False)},
        {"driver": Driver(nouveau_loaded=True)},
        {"torch_runtime": TorchRuntime(available=False)},
        {"symptoms": (Symptom(kind="x", text="Found no NVIDIA driver on your system"),)},
        {"devices": (Device(nvml_index=0, name="NVIDIA A10"),)},
    ],
)
def test_a_gpu_that_does_not_answer_is_none(others: dict[str, object]) -> None:
    facts = concluded({"system": System(pci_gpus=(RTX_3090,)), **others})[0]
    assert [device.name for device in facts["devices"] or ()] in ([], ["NVIDIA A10"])


def test_amd_is_no_device() -> None:
    amd = PciGpu(address="", vendor="amd", device_id="", name="AMD Radeon RX 6650 XT")
    assert concluded({"system": System(pci_gpus=(amd,))})[0]["devices"] is None


def test_on_a_live_machine_nothing_is_inferred() -> None:
    live = Snapshot(driver=Driver(version=DriverVersion((535, 54, 3))))
    assert with_inferred(live) is live


def test_inferring_twice_changes_nothing() -> None:
    once = with_inferred(Snapshot(contradictions=(), torch=Torch(version=PackageVersion("2.1.0+cu118"))))
    assert with_inferred(once) == once


@pytest.mark.parametrize(
    ("system", "os", "wsl"),
    [
        pytest.param(System(distribution="ubuntu"), "linux", None, id="distribution"),
        pytest.param(System(wsl=2), "linux", 2, id="WSL"),
        pytest.param(System(glibc="2.35"), "linux", None, id="glibc"),
        pytest.param(System(container="docker"), "linux", None, id="container"),
        pytest.param(System(os="windows", glibc="2.35"), "windows", None, id="a system that is shown stays"),
        pytest.param(System(os="linux", kernel="6.8.0-generic"), "linux", 0, id="kernel of Linux"),
        pytest.param(System(os="linux", kernel="5.15.1-Microsoft"), "linux", None, id="kernel of WSL 1 or 2"),
        pytest.param(System(os="linux", kernel="5.15.1-Microsoft", wsl=2), "linux", 2, id="WSL is shown"),
        pytest.param(System(os="linux"), "linux", None, id="no kernel"),
        pytest.param(System(os="darwin", kernel="23.1.0"), "darwin", None, id="kernel of another system"),
        pytest.param(System(kernel="6.8.0-generic"), None, None, id="a kernel alone"),
    ],
)
def test_the_operating_system(system: System, os: str | None, wsl: int | None) -> None:
    found = concluded({"system": system})[0]["system"]
    assert (found.os, found.wsl) == (os, wsl)


def test_what_was_inferred_is_named_in_the_reports() -> None:
    driver = Driver(version=DriverVersion((535, 54, 3)))
    facts = concluded({"driver": driver, "torch_runtime": TorchRuntime(version=PackageVersion("2.1.0+cu118"))})[0]
    assert facts["driver"] == replace(driver, installed=True)
    assert [(report.section, report.facts) for report in facts["reports"]] == [
        ("torch", ()),  # all of it
        ("driver", ("installed",)),
    ]


@pytest.mark.parametrize(("bound", "named"), [("", True), ("nvidia", True), ("nouveau", False), ("vfio-pci", False)])
def test_the_driver_that_a_named_gpu_is_bound_to(bound: str, named: bool) -> None:
    gpus = (replace(RTX_3090, bound_driver=bound), RTX_3090)
    devices = concluded({"system": System(pci_gpus=gpus)})[0]["devices"] or ()
    assert [device.nvml_index for device in devices] == ([0, 1] if named else [])
