"""The open kernel module against the GPUs on the bus."""

import pytest

from gpudoctor.model import Device, Driver, DriverVersion, Outcome, PciGpu, Severity, Symptom, System
from gpudoctor.testing import run_check

PASCAL = PciGpu(address="0000:02:00.0", vendor="nvidia", device_id="1B82", name="GeForce GTX 1070 Ti")
ADA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="GeForce RTX 4090")
OPEN = Driver(version=DriverVersion((580, 95, 5)), module_flavor="open", nvml_code=0)
LISTED_ADA = Device(nvml_index=0, name="NVIDIA GeForce RTX 4090", pci_address="00000000:01:00.0")
LISTED_PASCAL = Device(nvml_index=1, name="NVIDIA GeForce GTX 1070 Ti", pci_address="00000000:02:00.0")


def linux(*gpus: PciGpu) -> System:
    return System(os="linux", distribution="ubuntu", wsl=0, container="", pci_gpus=gpus)


def test_no_device_is_left() -> None:
    result = run_check("open-kernel-module-unsupported-gpu", driver=OPEN, system=linux(PASCAL), devices=())
    finding = result.findings[0]
    assert finding.severity is Severity.ERROR
    assert "580.95.05" in finding.summary
    assert "7.5 and newer, but not GeForce GTX 1070 Ti" in finding.summary
    assert finding.remedies[0].commands[0] == "sudo apt-get install -y nvidia-driver-580"


def test_next_to_a_gpu_that_works_it_is_a_warning() -> None:
    system, devices = linux(ADA, PASCAL), (LISTED_ADA,)
    result = run_check("open-kernel-module-unsupported-gpu", driver=OPEN, system=system, devices=devices)
    assert [finding.severity for finding in result.findings] == [Severity.WARNING]


def test_the_kernel_log_is_enough() -> None:
    lines = ("NVRM: The NVIDIA GPU 0000:02:00.0", "NVRM: nvidia.ko because it does not include the required GPU")
    finding = run_check("open-kernel-module-unsupported-gpu", driver=Driver(kernel_messages=lines)).findings[0]
    assert finding.facts == ("driver.kernel_messages[1]",)


@pytest.mark.parametrize(
    ("driver", "gpus", "devices"),
    [
        pytest.param(OPEN, (ADA,), (LISTED_ADA,), id="new enough"),
        pytest.param(OPEN, (ADA, PASCAL), (LISTED_ADA, LISTED_PASCAL), id="NVML lists it"),
        pytest.param(Driver(module_flavor="proprietary"), (PASCAL,), (), id="proprietary module"),
    ],
)
def test_passes(driver: Driver, gpus: tuple[PciGpu, ...], devices: tuple[Device, ...]) -> None:
    result = run_check("open-kernel-module-unsupported-gpu", driver=driver, system=linux(*gpus), devices=devices)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"driver": Driver()}, "driver.module_flavor is unknown", id="flavor"),
        pytest.param({"driver": OPEN}, "system.pci_gpus is unknown", id="bus"),
        pytest.param(
            {"driver": Driver(module_flavor="open"), "system": linux(PASCAL)}, "devices is unknown", id="devices"
        ),
    ],
)
def test_skipped(sections: dict[str, object], reason: str) -> None:
    result = run_check("open-kernel-module-unsupported-gpu", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_the_message_of_the_module_alone() -> None:
    symptoms = (Symptom(kind="nvrm-open-module-unsupported", text="does not include the required GPU"),)
    finding = run_check("open-kernel-module-unsupported-gpu", symptoms=symptoms).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.remedies[0].commands[0] == "sudo apt-get install -y nvidia-driver-580"


def test_no_devices_were_found_stands_for_an_empty_list() -> None:
    symptoms = (Symptom(kind="nvidia-smi-no-devices", text="No devices were found"),)
    result = run_check("open-kernel-module-unsupported-gpu", driver=OPEN, system=linux(PASCAL), symptoms=symptoms)
    assert result.outcome is Outcome.FOUND


def test_what_nvml_lists_is_enough() -> None:
    driver, devices = Driver(module_flavor="open"), (LISTED_ADA,)
    result = run_check("open-kernel-module-unsupported-gpu", driver=driver, system=linux(PASCAL), devices=devices)
    assert [finding.severity for finding in result.findings] == [Severity.WARNING]
    works = Driver(module_flavor="open", nvml_code=0)  # and the list itself is not there
    assert run_check("open-kernel-module-unsupported-gpu", driver=works, system=linux(PASCAL)).outcome is Outcome.PASSED
