"""The NVIDIA driver inside WSL."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    CudaVersion,
    Cupy,
    Device,
    DeviceFile,
    Driver,
    Fix,
    Outcome,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.testing import run_check

WSL = System(
    os="linux", distribution="ubuntu", kernel="5.15.153.1-microsoft-standard-WSL2", wsl=2, container="", pci_gpus=()
)
DXG = DeviceFile(path="/dev/dxg", mode="666", accessible=True)
IN_ORDER = Driver(
    device_files=(DXG,),
    libcuda_path="/usr/lib/wsl/lib/libcuda.so.1",
    libcuda_files=("/usr/lib/wsl/lib/libcuda.so.1", "/usr/lib/wsl/drivers/nv_dispi.inf/libcuda.so.1.1"),
    nvml_code=0,
)
CUDA = Torch(installed=True, build="cuda", cuda_version=CudaVersion(13, 0))


@pytest.mark.parametrize(
    ("system", "driver", "summary", "command"),
    [
        pytest.param(replace(WSL, wsl=1), Driver(), "WSL 1 has", "wsl --set-version DISTRIBUTION 2", id="WSL 1"),
        pytest.param(
            replace(WSL, kernel="5.4.72-microsoft-standard-WSL2"),
            Driver(),
            "The WSL kernel is 5.4.72, but CUDA needs 5.10.43.3 or newer",
            "wsl --update",
            id="old kernel",
        ),
        pytest.param(WSL, Driver(device_files=()), "no device /dev/dxg", "wsl --update", id="no GPU shared"),
        pytest.param(
            WSL,
            Driver(device_files=(DXG,), libcuda_path="/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
            "A Linux NVIDIA driver is installed inside WSL",
            "wsl.exe --shutdown",
            id="Linux driver inside",
        ),
        pytest.param(
            WSL,
            replace(IN_ORDER, nvml_code=9, libcuda_files=("/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01",)),
            "hides the Windows driver: /usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01",
            "wsl.exe --shutdown",
            id="Linux driver beside",
        ),
        pytest.param(
            WSL,
            replace(IN_ORDER, nvml_code=None, libcuda_path=""),
            "The loader of WSL does not find /usr/lib/wsl/lib/libcuda.so.1",
            "sudo ldconfig",
            id="not on the path",
        ),
        pytest.param(
            WSL,
            Driver(device_files=(DXG,), libcuda_path="", libcuda_files=()),
            "Windows gives WSL no libcuda",
            "wsl --update",
            id="no driver in Windows",
        ),
        pytest.param(
            WSL,
            replace(IN_ORDER, nvml_code=999, nvml_error="Unknown Error"),
            "NVML fails inside WSL: Unknown Error",
            "wsl --update",
            id="NVML fails",
        ),
    ],
)
def test_found(system: System, driver: Driver, summary: str, command: str) -> None:
    finding = run_check("wsl-driver-problem", system=system, driver=driver, torch=CUDA).findings[0]
    assert finding.severity is Severity.ERROR
    assert summary in finding.summary
    assert command in finding.remedies[0].commands


def test_the_toolkit_of_containers_stays_installed() -> None:
    driver = Driver(libcuda_path="/usr/lib/x86_64-linux-gnu/libcuda.so.1")
    finding = run_check("wsl-driver-problem", system=WSL, driver=driver).findings[0]
    purge = finding.remedies[0].commands[0]
    assert purge.endswith("| xargs -r sudo apt-get purge -y")
    assert "container" not in purge
    assert "^libnvidia-.*" not in purge


def test_the_text_of_nvml_names_wsl_by_itself() -> None:
    driver = Driver(nvml_error="GPU access blocked by the operating system")
    finding = run_check("wsl-driver-problem", driver=driver).findings[0]
    assert "blocked by the operating system" in finding.summary
    assert "Remove the Linux NVIDIA driver inside WSL" in finding.remedies[0].summary


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"driver": IN_ORDER, "devices": (Device(nvml_index=0),)}, id="in order"),
        pytest.param(
            {"driver": Driver(cuda_init_code=0, libcuda_path="/usr/lib/x86_64-linux-gnu/libcuda.so.1")},
            id="CUDA works through a link",
        ),
    ],
)
def test_passes(sections: dict[str, object]) -> None:
    assert run_check("wsl-driver-problem", system=WSL, torch=CUDA, **sections).outcome is Outcome.PASSED


def test_it_is_advice_if_nothing_asks_for_cuda() -> None:
    torch = Torch(installed=True, build="cpu")
    result = run_check(
        "wsl-driver-problem",
        system=WSL,
        driver=Driver(device_files=()),
        torch=torch,
        cupy=Cupy(distributions=()),
    )
    assert [finding.severity for finding in result.findings] == [Severity.INFO]


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"system": replace(WSL, wsl=0)}, "this is not WSL", id="not WSL"),
        pytest.param({"system": System()}, "system.wsl is unknown", id="unknown"),
        pytest.param({"system": WSL, "driver": Driver()}, "driver.libcuda_path is unknown", id="driver"),
        pytest.param(
            {"system": replace(WSL, container="docker"), "driver": Driver(device_files=())},
            "a container uses the driver of its host",
            id="container",
        ),
    ],
)
def test_skipped(sections: dict[str, object], reason: str) -> None:
    result = run_check("wsl-driver-problem", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


MISSED = Symptom(kind="torch-no-driver", text="Found no NVIDIA driver on your system")


def told(kind: str, **names: str) -> Symptom:
    return Symptom(kind=kind, text="as printed", names=names)


@pytest.mark.parametrize(
    ("symptoms", "summary", "command"),
    [
        pytest.param((MISSED, told("windows-build", build="19042")), "build 19042", "wsl --update", id="old build"),
        pytest.param(
            (MISSED, told("windows-10-release", release="20H2")), "Windows 10 20H2", "wsl --update", id="20H2"
        ),
        pytest.param(
            (MISSED, told("linux-driver-installed", package="nvidia-utils-510")),
            "nvidia-utils-510",
            "purge",
            id="inside",
        ),
        pytest.param((MISSED, told("windows-tcc-mode", mode="TCC")), "TCC mode", "nvidia-smi -dm 0", id="TCC"),
        pytest.param((MISSED,), "finds no NVIDIA driver", "wsl --update", id="nothing more is told"),
    ],
)
def test_what_a_report_shows(symptoms: tuple[Symptom, ...], summary: str, command: str) -> None:
    finding = run_check("wsl-driver-problem", system=System(wsl=2), symptoms=symptoms).findings[0]
    assert finding.severity is Severity.ERROR
    assert summary in finding.summary
    assert any(command in line for line in finding.remedies[0].commands)
    assert "wsl --update" in str(finding.remedies)


def test_a_windows_without_a_driver() -> None:
    shown = Symptom(kind="windows-basic-display", text="Microsoft Basic Display Adapter")
    (finding,) = run_check("wsl-driver-problem", system=System(wsl=2), symptoms=(MISSED, shown)).findings
    assert finding.summary.endswith("it shows Microsoft Basic Display Adapter")
    assert finding.fixes == (Fix("install-driver-on-windows"),)
    (finding,) = run_check("driver-missing", system=System(os="windows"), symptoms=(shown,)).findings
    assert (finding.certain, finding.fixes) == (False, (Fix("install-driver-on-windows"),))


def test_wsl_without_an_nvidia_gpu_has_another_cause() -> None:
    said = Symptom(kind="no-nvidia-gpu-reported", text="without a dedicated GPU")
    seen = Symptom(kind="container-wsl-no-adapters", text="WSL environment detected but no adapters were found")
    sections = {"system": System(wsl=2), "symptoms": (said, seen)}
    assert run_check("wsl-driver-problem", **sections).outcome is Outcome.SKIPPED
    assert run_check("no-nvidia-gpu", **sections).findings[0].severity is Severity.WARNING


@pytest.mark.parametrize(
    ("system", "symptoms", "outcome"),
    [
        pytest.param(System(wsl=2), (MISSED,), Outcome.FOUND, id="WSL, and a program fails"),
        pytest.param(System(wsl=2), (), Outcome.FOUND, id="WSL, and nothing fails yet"),
        pytest.param(System(), (told("wsl-1"), MISSED), Outcome.SKIPPED, id="WSL is not known"),
        pytest.param(System(wsl=0), (MISSED,), Outcome.SKIPPED, id="no WSL"),
    ],
)
def test_an_old_windows(system: System, symptoms: tuple[Symptom, ...], outcome: Outcome) -> None:
    old = told("windows-build", build="19042")
    assert run_check("wsl-driver-problem", system=system, symptoms=(old, *symptoms)).outcome is outcome


@pytest.mark.parametrize(("system", "said"), [(System(wsl=1), ()), (System(wsl=2), (told("wsl-1"),))])
def test_the_first_wsl(system: System, said: tuple[Symptom, ...]) -> None:
    (finding,) = run_check("wsl-driver-problem", system=system, symptoms=said).findings
    assert (finding.facts, finding.fixes[0]) == (("system.wsl",), Fix("convert-to-wsl-2"))


@pytest.mark.parametrize("build", ["19044", "22631"])
def test_a_windows_that_has_gpus_in_wsl(build: str) -> None:
    symptoms = (MISSED, told("windows-build", build=build))
    finding = run_check("wsl-driver-problem", system=System(wsl=2), symptoms=symptoms).findings[0]
    assert build not in finding.summary


def test_windows_blocks_although_its_own_nvidia_smi_works() -> None:
    symptoms = (told("nvml-blocked-by-os"),)
    devices = (Device(nvml_index=0, name="NVIDIA L4", memory_total_bytes=2**34),)
    result = run_check("wsl-driver-problem", driver=Driver(nvml_code=0), devices=devices, symptoms=symptoms)
    assert "blocked by the operating system" in result.findings[0].summary


def test_a_copied_libcuda_is_no_problem_if_the_driver_answers() -> None:
    symptoms = (told("wsl-libcuda-no-link"),)
    devices = (Device(nvml_index=0, name="NVIDIA L4", memory_total_bytes=2**34),)
    assert run_check("wsl-driver-problem", system=System(wsl=2), symptoms=symptoms).outcome is Outcome.FOUND
    result = run_check("wsl-driver-problem", system=System(wsl=2), symptoms=symptoms, devices=devices)
    assert result.outcome is Outcome.PASSED


WORKING = {"driver": Driver(nvml_code=0), "devices": (Device(nvml_index=0, memory_total_bytes=1),)}


def test_an_old_kernel_under_an_nvidia_smi_that_works() -> None:
    system = System(os="linux", wsl=2, kernel="5.10.16.3-microsoft-standard-WSL2")
    runtime = TorchRuntime(available=False)
    (finding,) = run_check(
        "wsl-driver-problem", system=system, torch=CUDA, torch_runtime=runtime, symptoms=(), **WORKING
    ).findings
    assert "5.10.16.3" in finding.summary


@pytest.mark.parametrize("mode", ["TCC", "Data Center"])
def test_pytorch_works_whatever_the_mode_of_another_gpu(mode: str) -> None:
    result = run_check(
        "wsl-driver-problem",
        system=System(os="linux", wsl=2),
        torch=CUDA,
        torch_runtime=TorchRuntime(available=True),
        symptoms=(told("windows-tcc-mode", mode=mode), told("nvidia-smi-failure-reported")),
    )
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("torch", "outcome"),
    [
        pytest.param(CUDA, Outcome.FOUND, id="CUDA build"),
        pytest.param(Torch(installed=True, build="cpu"), Outcome.SKIPPED, id="CPU build"),
    ],
)
def test_a_cuda_build_that_sees_nothing(torch: Torch, outcome: Outcome) -> None:
    result = run_check(
        "wsl-driver-problem",
        system=System(os="linux", wsl=2),
        torch=torch,
        torch_runtime=TorchRuntime(available=False),
        symptoms=(),
    )
    assert result.outcome is outcome


@pytest.mark.parametrize(
    ("driver", "facts"),
    [
        (Driver(libcuda_path=""), ("driver.libcuda_path",)),
        (Driver(libcuda_path="", libcuda_files=()), ("driver.libcuda_files",)),
        (Driver(libcuda_path="", libcuda_files=("/opt/libcuda.so.1",)), ("driver.libcuda_files",)),
        (
            Driver(libcuda_path="", libcuda_files=("/usr/lib/wsl/lib/libcuda.so.1",)),
            ("driver.libcuda_path", "driver.libcuda_files"),
        ),
        (Driver(nvml_code=9), ("driver.nvml_code",)),
        (Driver(nvml_code=9, nvml_error="Driver Not Loaded"), ("driver.nvml_error",)),
    ],
)
def test_what_a_driver_problem_rests_on(driver: Driver, facts: tuple[str, ...]) -> None:
    (finding,) = run_check("wsl-driver-problem", system=System(os="linux", wsl=2), driver=driver).findings
    assert finding.facts == facts
