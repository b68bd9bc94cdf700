"""Whether the machine has an NVIDIA GPU at all."""

import pytest

from gpudoctor.model import (
    CudaVersion,
    Cupy,
    Device,
    Driver,
    Fix,
    Outcome,
    Package,
    PackageVersion,
    PciGpu,
    Project,
    Requirement,
    Severity,
    Symptom,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

INTEL = PciGpu(address="0000:00:02.0", vendor="intel", device_id="A7A0")
NVIDIA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="GeForce RTX 4090")
CUDA = Torch(installed=True, version=PackageVersion("2.13.0+cu130"), build="cuda", cuda_version=CudaVersion(13, 0))
CPU = Torch(installed=True, version=PackageVersion("2.13.0+cpu"), build="cpu")
NO_CUPY = Cupy(distributions=())
CUPY = Cupy(distributions=(Package(name="cupy-cuda13x", version=PackageVersion("14.2.0")),), platform="cuda")


def linux(*gpus: PciGpu) -> System:
    return System(os="linux", kernel="6.8.0-45-generic", wsl=0, container="", pci_gpus=gpus)


@pytest.mark.parametrize(
    ("torch", "cupy", "severity"),
    [
        pytest.param(CUDA, NO_CUPY, Severity.ERROR, id="CUDA build of PyTorch"),
        pytest.param(CPU, CUPY, Severity.ERROR, id="CuPy"),
        pytest.param(CPU, NO_CUPY, Severity.WARNING, id="CPU build"),
        pytest.param(Torch(installed=False), NO_CUPY, Severity.WARNING, id="nothing installed"),
    ],
)
def test_severity_follows_what_needs_a_gpu(torch: Torch, cupy: Cupy, severity: Severity) -> None:
    result = run_check("no-nvidia-gpu", system=linux(INTEL), torch=torch, cupy=cupy)
    assert result.outcome is Outcome.FOUND
    (finding,) = result.findings
    assert (finding.severity, finding.no_usable_gpu) == (severity, True)
    assert "only Intel GPUs" in finding.summary


def test_nothing_that_needs_a_gpu_is_a_warning_that_can_be_switched_off() -> None:
    (finding,) = run_check("no-nvidia-gpu", system=linux(), torch=CPU, cupy=NO_CUPY).findings
    assert finding.severity is Severity.WARNING
    assert finding.fixes == (Fix("gpu-is-optional"),)
    assert finding.remedies[0].commands == ("gpudoctor check --gpu optional",)


@pytest.mark.parametrize(
    ("sections", "fact"),
    [
        pytest.param({"toolkit": Toolkit(nvcc_version=CudaVersion(13, 0))}, "toolkit.nvcc_version", id="toolkit"),
        pytest.param(
            {"project": Project(requirements=(Requirement(name="onnxruntime-gpu", source="requirements.txt"),))},
            "project.requirements",
            id="a package of the project",
        ),
    ],
)
def test_an_environment_that_is_meant_for_a_gpu_makes_it_an_error(sections: dict[str, object], fact: str) -> None:
    (finding,) = run_check("no-nvidia-gpu", system=linux(), torch=CPU, cupy=NO_CUPY, **sections).findings
    assert finding.severity is Severity.ERROR
    assert fact in finding.facts
    assert finding.fixes == (Fix("move-to-nvidia-gpu"), Fix("gpu-is-optional"))


def test_of_a_pasted_report_nothing_is_required() -> None:
    sections = {"system": linux(), "torch": CUDA, "cupy": NO_CUPY, "contradictions": ()}
    (finding,) = run_check("no-nvidia-gpu", **sections).findings
    assert finding.severity is Severity.WARNING


def test_pytorch_looked_for_a_driver() -> None:
    runtime = TorchRuntime(availability_error="Found no NVIDIA driver on your system.")
    result = run_check("no-nvidia-gpu", system=System(pci_gpus=(INTEL,)), torch_runtime=runtime)
    assert result.findings[0].severity is Severity.WARNING
    assert "Run on a machine with an NVIDIA GPU" in result.findings[0].remedies[0].summary
    assert "If the program may run on the CPU, keep the CUDA build" in result.findings[0].remedies[1].summary


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"system": linux(INTEL, NVIDIA)}, id="on the bus"),
        pytest.param({"system": linux(), "devices": (Device(nvml_index=0),)}, id="NVML lists one"),
        pytest.param({"system": linux(), "driver": Driver(cuda_init_code=0, cuda_device_count=1)}, id="CUDA works"),
    ],
)
def test_a_gpu_is_there(sections: dict[str, object]) -> None:
    assert run_check("no-nvidia-gpu", torch=CUDA, **sections).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        pytest.param(System(os="darwin"), "macOS has no NVIDIA GPUs", id="macOS"),
        pytest.param(System(os="linux", wsl=2, pci_gpus=()), "WSL shows no PCI bus", id="WSL"),
        pytest.param(
            System(os="linux", kernel="5.15.148-tegra", pci_gpus=()),
            "the GPU of a Jetson is not on the PCI bus",
            id="Jetson",
        ),
        pytest.param(System(os="linux"), "system.pci_gpus is unknown", id="bus unknown"),
    ],
)
def test_skipped(system: System, reason: str) -> None:
    result = run_check("no-nvidia-gpu", system=system, torch=CUDA)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


@pytest.mark.parametrize("driver", [Driver(module_loaded=True), Driver(nvml_code=18)])
def test_a_kernel_module_that_answers_has_found_a_gpu(driver: Driver) -> None:
    system = System(os="linux", kernel="6.8.0", container="", wsl=0, pci_gpus=())
    assert run_check("no-nvidia-gpu", system=system, driver=driver).outcome is Outcome.PASSED


TOLD = Symptom(kind="no-nvidia-gpu-reported", text="don't have an NVIDIA GPU")
L4 = Device(nvml_index=0, name="NVIDIA L4")
OTHER = Symptom(kind="other-gpu-named", text="Intel UHD Graphics 620")
MISSED = Symptom(kind="torch-no-driver", text="Found no NVIDIA driver on your system")


def test_the_report_says_so() -> None:
    finding = run_check("no-nvidia-gpu", symptoms=(MISSED, TOLD)).findings[0]
    assert finding.severity is Severity.WARNING
    assert "don't have an NVIDIA GPU" in finding.summary
    assert "CPU" in str(finding.remedies)


def test_another_gpu_is_named_if_a_driver_is_missed() -> None:
    finding = run_check("no-nvidia-gpu", symptoms=(MISSED, OTHER)).findings[0]
    assert 'only GPU in the report is "Intel UHD Graphics 620"' in finding.summary


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"symptoms": (OTHER,)}, id="nothing is missed"),
        pytest.param({"symptoms": (MISSED,)}, id="nothing is named"),
        pytest.param({"symptoms": (MISSED, OTHER), "driver": Driver(module_loaded=True)}, id="a driver is loaded"),
        pytest.param(
            {"symptoms": (MISSED, TOLD), "devices": (Device(nvml_index=0, name="NVIDIA L4"),)}, id="one is there"
        ),
    ],
)
def test_words_that_prove_nothing(sections: dict[str, object]) -> None:
    assert not run_check("no-nvidia-gpu", **sections).findings


NO_GPU = Symptom(kind="nvrm-no-gpu", text="NVRM: No NVIDIA GPU found")
RADEON = Symptom(kind="other-gpu-named", text="using AMD on", names={"gpu": "AMD"})


def test_the_kernel_module_finds_none() -> None:
    (finding,) = run_check("no-nvidia-gpu", symptoms=(NO_GPU,)).findings
    assert finding.severity is Severity.WARNING
    assert "No NVIDIA GPU found" in finding.summary
    assert "lspci -nnk | grep -iA3 nvidia" in finding.remedies[0].commands


@pytest.mark.parametrize("kind", ["nvrm-legacy-gpu", "nvrm-probe-not-called", "nvrm-open-module-unsupported"])
def test_the_kernel_module_finds_one_that_it_cannot_take(kind: str) -> None:
    result = run_check("no-nvidia-gpu", symptoms=(NO_GPU, Symptom(kind=kind, text="NVRM")))
    assert result.findings == ()


def test_an_old_driver_next_to_another_gpu_is_no_driver_at_all() -> None:
    old = Symptom(kind="cuda-insufficient-driver", text="driver version is insufficient", code="cuda-35")
    (finding,) = run_check("no-nvidia-gpu", symptoms=(old, RADEON)).findings
    assert finding.summary.endswith('the only GPU in the report is "AMD"')


@pytest.mark.parametrize(
    ("torch", "available", "outcome"),
    [
        pytest.param(CUDA, False, Outcome.FOUND, id="a CUDA build finds nothing"),
        pytest.param(CPU, False, Outcome.SKIPPED, id="a CPU build looks for nothing"),
        pytest.param(CUDA, True, Outcome.PASSED, id="CUDA works"),
    ],
)
def test_another_gpu_counts_if_one_is_missed(torch: Torch, available: bool, outcome: Outcome) -> None:
    runtime = TorchRuntime(available=available)
    result = run_check("no-nvidia-gpu", symptoms=(RADEON,), torch=torch, torch_runtime=runtime)
    assert result.outcome is outcome


@pytest.mark.parametrize("kind", ["nvrm-no-gpu", "kernel-module-not-inserted"])
def test_what_the_kernel_module_says_is_a_warning_with_a_look_at_the_bus(kind: str) -> None:
    said = Symptom(kind=kind, text="No such device", names={"reason": "No such device"})
    (found,) = run_check("no-nvidia-gpu", symptoms=(said,)).findings
    assert (found.severity, found.fixes[0]) == (Severity.WARNING, Fix("look-for-gpu-on-bus"))
