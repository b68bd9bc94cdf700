"""The driver against the CUDA version that each installed library was built with."""

from typing import Any

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    DriverVersion,
    Outcome,
    Package,
    PackageVersion,
    Python,
    Severity,
    Symptom,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

R535 = Driver(version=DriverVersion((535, 129, 3)), cuda_version=CudaVersion(12, 2))
A10 = Device(nvml_index=0, name="NVIDIA A10", compute_capability=ComputeCapability(8, 6))
DESKTOP = System(os="linux", machine="x86_64", distribution="ubuntu", wsl=0, container="", user_is_root=True)
PYTHON = Python(
    version=PackageVersion("3.12.3"), executable="/work/.venv/bin/python", platform_tag="linux_x86_64", packages=()
)


def torch_for(*cuda: int, **facts: Any) -> Torch:
    version = CudaVersion(*cuda)
    return Torch(
        installed=True, version=PackageVersion(f"2.13.0+{version.tag}"), build="cuda", cuda_version=version, **facts
    )


def cupy_for(major: int) -> Cupy:
    package = Package(name=f"cupy-cuda{major}x", version=PackageVersion("14.2.0"))
    return Cupy(distributions=(package,), version=package.version, platform="cuda", cuda_major=major)


@pytest.mark.parametrize(
    ("driver", "cuda", "outcome"),
    [
        pytest.param("535.129.03", (13, 0), Outcome.FOUND, id="newer major"),
        pytest.param("535.129.03", (12, 8), Outcome.PASSED, id="newer minor, compatible"),
        pytest.param("525.60.13", (12, 9), Outcome.PASSED, id="first driver of the major"),
        pytest.param("520.61.05", (12, 1), Outcome.FOUND, id="last driver before the major"),
        pytest.param("450.80.02", (11, 8), Outcome.PASSED, id="11.8 on the floor of 11"),
        pytest.param("418.67", (10, 2), Outcome.FOUND, id="CUDA 10 has no minor-version compatibility"),
        pytest.param("440.33.01", (10, 2), Outcome.PASSED, id="the driver of 10.2"),
        pytest.param("580.95.05", (12, 6), Outcome.PASSED, id="older build"),
    ],
)
def test_minor_version_compatibility(driver: str, cuda: tuple[int, int], outcome: Outcome) -> None:
    result = run_check("driver-too-old", driver=Driver(version=DriverVersion.parse(driver)), torch=torch_for(*cuda))
    assert result.outcome is outcome


def test_both_versions_are_named() -> None:
    finding = run_check("driver-too-old", driver=R535, torch=torch_for(13, 0)).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == "PyTorch was built with CUDA 13.0, but the driver 535.129.03 supports CUDA 12.2"


def test_two_libraries_are_one_finding() -> None:
    result = run_check("driver-too-old", driver=R535, torch=torch_for(13, 0), cupy=cupy_for(13))
    assert len(result.findings) == 1
    assert "PyTorch was built with CUDA 13.0 and CuPy is built for CUDA 13" in result.findings[0].summary
    assert len(result.findings[0].remedies) == 3


def test_cupy_of_the_drivers_major_version_passes() -> None:
    assert run_check("driver-too-old", driver=R535, cupy=cupy_for(12)).outcome is Outcome.PASSED


def test_cupy_alone_is_left_to_the_check_of_its_package() -> None:
    result = run_check("driver-too-old", driver=R535, cupy=cupy_for(13))
    assert result.outcome is Outcome.SKIPPED
    assert "cupy-wrong-cuda-package" in result.reason
    assert run_check("cupy-wrong-cuda-package", driver=R535, cupy=cupy_for(13)).outcome is Outcome.FOUND


@pytest.mark.parametrize(
    ("system", "first"),
    [
        pytest.param(DESKTOP, "Update the NVIDIA driver", id="root"),
        pytest.param(System(os="linux", container="docker", user_is_root=True), "Install PyTorch", id="container"),
        pytest.param(
            System(os="linux", machine="x86_64", container="", user_is_root=False), "Install PyTorch", id="not root"
        ),
    ],
)
def test_the_remedy_that_this_user_can_give_comes_first(system: System, first: str) -> None:
    result = run_check(
        "driver-too-old", driver=R535, torch=torch_for(13, 0), devices=(A10,), system=system, python=PYTHON
    )
    remedies = result.findings[0].remedies
    assert remedies[0].summary.startswith(first)
    install = next(remedy for remedy in remedies if remedy.summary.startswith("Install PyTorch"))
    assert "+cu12" in " ".join(install.commands)


def test_a_device_at_its_last_branch_gets_another_build() -> None:
    pascal = Device(nvml_index=0, name="NVIDIA GeForce GTX 1080", compute_capability=ComputeCapability(6, 1))
    result = run_check(
        "driver-too-old",
        driver=Driver(version=DriverVersion((580, 95, 5))),
        torch=Torch(installed=True, version=PackageVersion("2.13.0"), build="cuda", cuda_version=CudaVersion(14, 0)),
        devices=(pascal,),
        system=DESKTOP,
        python=PYTHON,
    )
    assert result.findings[0].remedies[0].summary.startswith("Install PyTorch")


@pytest.mark.parametrize(
    ("message", "summary"),
    [
        (
            "CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).",
            "PyTorch was built with a newer CUDA version, but the driver supports CUDA 11.4",
        ),
        (
            "CUDA driver version is insufficient for CUDA runtime version",
            "PyTorch was built with a newer CUDA version, but the driver is too old for that",
        ),
    ],
)
def test_a_message_alone_is_enough(message: str, summary: str) -> None:
    runtime = TorchRuntime(available=False, availability_error=message)
    finding = run_check("driver-too-old", torch_runtime=runtime).findings[0]
    assert finding.summary == summary


def test_the_driver_that_a_message_asks_for() -> None:
    runtime = TorchRuntime(availability_error="The NVIDIA driver on your system is too old (found version 11040)")
    finding = run_check("driver-too-old", torch_runtime=runtime).findings[0]
    assert "525.60.13" in finding.remedies[0].summary


def test_the_same_error_without_libcuda_means_no_driver() -> None:
    runtime = CupyRuntime(device_error="CUDA driver version is insufficient for CUDA runtime version")
    driver = Driver(version=DriverVersion((580, 95, 5)), libcuda_path="")
    result = run_check("driver-too-old", driver=driver, cupy=cupy_for(13), cupy_runtime=runtime)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"torch_runtime": TorchRuntime(available=True)}, id="PyTorch works, as with cuda-compat"),
        pytest.param(
            {"driver": Driver(version=DriverVersion((535, 129, 3)), cuda_version=CudaVersion(13, 0))},
            id="libcuda of cuda-compat offers it",
        ),
    ],
)
def test_forward_compatibility_passes(sections: dict[str, object]) -> None:
    sections = {"driver": R535, **sections}
    assert run_check("driver-too-old", torch=torch_for(13, 0), **sections).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("driver", "outcome"),
    [
        pytest.param("570.26", Outcome.FOUND, id="PTX of 12.9 on a driver for 12.8"),
        pytest.param("575.57.08", Outcome.PASSED, id="driver of the same CUDA version"),
    ],
)
def test_ptx_ends_minor_version_compatibility(driver: str, outcome: Outcome) -> None:
    device = Device(nvml_index=0, name="NVIDIA GeForce RTX 5090", compute_capability=ComputeCapability(12, 0))
    torch = torch_for(12, 9, architectures=("sm_80", "sm_90", "compute_90"))
    result = run_check(
        "driver-too-old", driver=Driver(version=DriverVersion.parse(driver)), torch=torch, devices=(device,)
    )
    assert result.outcome is outcome
    facts = {evidence.fact for finding in result.findings for evidence in finding.evidence}
    used = {"torch.architectures", "torch.cuda_version", "devices[0].compute_capability"}
    assert facts == (used if outcome is Outcome.FOUND else set())


def test_the_toolkit_is_advice() -> None:
    toolkit = Toolkit(nvcc_version=CudaVersion(13, 0))
    result = run_check("driver-too-old", driver=R535, torch=torch_for(12, 8), toolkit=toolkit)
    assert [finding.severity for finding in result.findings] == [Severity.INFO]
    assert "nvcc of CUDA 13.0" in result.findings[0].summary


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param(
            {"driver": R535, "torch": Torch(installed=True, build="cpu")},
            "no library with a known CUDA version is installed",
            id="CPU build",
        ),
        pytest.param({"driver": Driver(), "torch": torch_for(13, 0)}, "driver.version is unknown", id="version"),
        pytest.param({"torch": torch_for(13, 0)}, "driver.version is unknown", id="driver"),
        pytest.param(
            {"driver": Driver(installed=False), "torch": torch_for(13, 0)}, "no driver is installed", id="none"
        ),
    ],
)
def test_skipped(sections: dict[str, object], reason: str) -> None:
    result = run_check("driver-too-old", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_a_pasted_version_stands_for_the_default_build() -> None:
    sections = {
        "driver": Driver(version=DriverVersion((450, 51, 5))),
        "torch": Torch(version=PackageVersion("2.1.0")),
        "torch_runtime": TorchRuntime(available=False),
    }
    assert "CUDA 12.1" in run_check("driver-too-old", **sections).findings[0].summary


def test_a_program_whose_versions_are_not_reported() -> None:
    symptoms = (Symptom(kind="cuda-insufficient-driver", text="CUDA driver version is insufficient", code="cuda-35"),)
    finding = run_check("driver-too-old", symptoms=symptoms).findings[0]
    assert finding.facts == ("symptoms[0].text",)
    assert "CUDA 12 525.60.13" in finding.remedies[0].summary


def test_in_a_container_the_same_error_may_mean_no_driver() -> None:
    refused = Symptom(kind="cuda-insufficient-driver", text="CUDA driver version is insufficient", code="cuda-35")
    inside = Symptom(kind="place-docker", text="in the container")
    alone, in_container = (
        run_check("driver-too-old", symptoms=said).findings[0] for said in ((refused,), (refused, inside))
    )
    assert (alone.certain, in_container.certain) == (True, False)
    assert "or the container has none" in in_container.summary
    commands = [command for remedy in in_container.remedies for command in remedy.commands]
    assert "docker run --rm --gpus all ubuntu nvidia-smi" in commands


def test_a_program_that_names_the_driver_it_needs() -> None:
    symptoms = (Symptom(kind="nvenc-driver-too-old", text="", code="cuda-35", names={"driver": "530.41.03"}),)
    remedy = run_check("driver-too-old", symptoms=symptoms).findings[0].remedies[0]
    assert "to 530.41.03 or newer" in remedy.summary


@pytest.mark.parametrize(
    ("release", "driver", "outcome"),
    [
        ("1.4.0", (410, 78), Outcome.FOUND),
        ("1.4.0", (418, 39), Outcome.PASSED),
        ("1.2.0", (410, 78), Outcome.PASSED),
        ("1.6.0", (418, 67), Outcome.FOUND),
    ],
)
def test_an_old_release_of_the_default_index(release: str, driver: tuple[int, ...], outcome: Outcome) -> None:
    result = run_check(
        "driver-too-old",
        driver=Driver(version=DriverVersion(driver)),
        torch=Torch(version=PackageVersion(release)),
        torch_runtime=TorchRuntime(available=False),
    )
    assert result.outcome is outcome


def test_a_driver_older_than_every_build_in_the_table() -> None:
    finding = run_check(
        "driver-too-old",
        driver=Driver(version=DriverVersion((410, 48))),
        torch=Torch(version=PackageVersion("1.3.1"), build="cuda", cuda_version=CudaVersion(10, 1)),
    ).findings[0]
    assert "418.39" in finding.remedies[0].summary
    assert "cu92" in str(finding.remedies)
