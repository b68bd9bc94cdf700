"""Whether the loader finds the driver's libcuda."""

from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import (
    Container,
    Device,
    Driver,
    DriverVersion,
    Outcome,
    Severity,
    Symptom,
    System,
)
from gpudoctor.readers.report import read_texts
from gpudoctor.testing import run_check
from tests.own_checks import own_checks

HIDDEN = "/usr/local/nvidia lib64/libcuda.so.1"
DRIVER = Driver(libcuda_path="", libcuda_files=(HIDDEN,), libcuda_error="libcuda.so.1: No such file or directory")


def test_the_folder_is_added_and_quoted() -> None:
    finding = run_check("libcuda-not-on-linker-path", driver=DRIVER).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary == f"The loader finds no libcuda.so.1, although {HIDDEN} is there"
    assert [item.fact for item in finding.evidence][:2] == ["driver.libcuda_path", "driver.libcuda_files"]
    assert finding.remedies[0].commands[0] == (
        "echo '/usr/local/nvidia lib64' | sudo tee /etc/ld.so.conf.d/nvidia-libcuda.conf"
    )


def test_what_the_loader_says_is_shown() -> None:
    driver = Driver(libcuda_path="", libcuda_files=("/usr/lib/libcuda.so.1",), libcuda_error="file too short")
    assert "(file too short)" in run_check("libcuda-not-on-linker-path", driver=driver).findings[0].summary


@pytest.mark.parametrize(
    "driver",
    [
        pytest.param(Driver(libcuda_path="/usr/lib/libcuda.so.1", libcuda_files=()), id="found"),
        pytest.param(Driver(libcuda_path="", libcuda_files=()), id="none anywhere"),
        pytest.param(
            Driver(libcuda_path="", libcuda_files=("/usr/local/cuda/lib64/stubs/libcuda.so",)), id="only a stub"
        ),
        pytest.param(
            Driver(libcuda_path="", libcuda_files=("/usr/local/cuda-12.8/compat/libcuda.so.1",)), id="only compat"
        ),
    ],
)
def test_passes(driver: Driver) -> None:
    assert run_check("libcuda-not-on-linker-path", driver=driver).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("driver", "system", "reason"),
    [
        pytest.param(Driver(), None, "driver.libcuda_path is unknown", id="path"),
        pytest.param(Driver(libcuda_path=""), None, "driver.libcuda_files is unknown", id="files"),
        pytest.param(DRIVER, System(wsl=2), "wsl-driver-problem checks where libcuda is in WSL", id="WSL"),
    ],
)
def test_skipped(driver: Driver, system: System | None, reason: str) -> None:
    result = run_check("libcuda-not-on-linker-path", driver=driver, system=system)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


LOADER = Symptom(kind="libcuda-not-opened", text="x", names={"library": "libcuda.so.1"})
WORKS = {"driver": Driver(version=DriverVersion.parse("550.54.14")), "devices": (Device(nvml_index=0),)}


def test_a_loader_that_finds_none_next_to_a_driver_that_answers() -> None:
    (finding,) = run_check("libcuda-not-on-linker-path", symptoms=(LOADER,), **WORKS).findings
    assert finding.summary == "The loader finds no libcuda.so.1, although driver 550.54.14 works"


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({}, id="no driver is known"),
        pytest.param({**WORKS, "system": System(container="docker")}, id="a container without the library"),
    ],
)
def test_a_loader_alone_proves_nothing(facts: dict[str, Any]) -> None:
    assert run_check("libcuda-not-on-linker-path", symptoms=(LOADER,), **facts).outcome is Outcome.SKIPPED


def test_the_linker_in_wsl_gets_the_folder_of_wsl() -> None:
    message = Symptom(kind="libcuda-not-linked", text="cannot find -lcuda", library="ld")
    (finding,) = run_check("libcuda-not-on-linker-path", symptoms=(message,), system=System(wsl=2)).findings
    assert finding.severity is Severity.ERROR
    assert "/usr/lib/wsl/lib/libcuda.so.1" in " ".join(finding.remedies[0].commands)


@pytest.mark.parametrize(
    ("files", "wsl", "link"),
    [
        pytest.param(
            "/lib64/libcuda.so.550.54.14", 0, "ln -s /lib64/libcuda.so.550.54.14 /lib64/libcuda.so", id="named"
        ),
        pytest.param(
            "", 0, "ln -s /usr/lib/x86_64-linux-gnu/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so", id="not"
        ),
        pytest.param("", 2, "ln -s /usr/lib/wsl/lib/libcuda.so.1 /usr/lib/wsl/lib/libcuda.so", id="WSL"),
    ],
)
def test_the_link_goes_from_the_name_that_the_linker_wants_to_the_library(files: str, wsl: int, link: str) -> None:
    names = {"file": files} if files else {}
    message = Symptom(kind="libcuda-not-found-by-triton", text="libcuda.so cannot found!", names=names)
    (finding,) = run_check("libcuda-not-on-linker-path", symptoms=(message,), system=System(wsl=wsl)).findings
    commands = ("sudo ldconfig", "ldconfig -p | grep libcuda.so", f"sudo {link}", "sudo ldconfig")
    assert finding.remedies[0].commands == commands


def test_a_loaded_module_is_a_driver_too() -> None:
    said = Symptom(kind="libcuda-not-found", text="x")
    driver = Driver(module_loaded=True, module_version=DriverVersion.parse("460.91.03"))
    (finding,) = run_check("libcuda-not-on-linker-path", symptoms=(said,), driver=driver).findings
    assert finding.summary.endswith("although the driver's kernel module 460.91.03 is loaded")
    assert finding.certain


def test_a_container_that_asks_for_the_gpu_and_has_no_libcuda() -> None:
    sections: dict[str, Any] = {"container": Container(engine="docker", gpus_requested=True), "symptoms": (LOADER,)}
    (finding,) = run_check("libcuda-not-on-linker-path", **sections).findings
    assert finding.summary.startswith("The loader in the container finds no libcuda.so.1")
    assert run_check("driver-missing", **sections).reason == (
        "a container that asks for the GPU uses the driver of its host"
    )


def test_nvidia_smi_lists_the_gpu_but_the_loader_finds_no_libcuda() -> None:
    text = (
        "$ nvidia-smi -L\nGPU 0: NVIDIA GeForce RTX 3090\n$ python -c 'import torch'\n"
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory\n"
    )
    report = run_checks(own_checks(), read_texts([("log", text.encode())]))
    first = next(finding for finding in report.findings if finding.severity)
    assert first.check_id == "libcuda-not-on-linker-path"
