"""The proprietary kernel module against the GPUs on the bus."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.model import Device, Driver, DriverVersion, Outcome, PciGpu, Severity, Symptom, System
from gpudoctor.testing import run_check

BLACKWELL = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2B85", name="GeForce RTX 5090")
ADA = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="2684", name="GeForce RTX 4090")
CLOSED = Driver(version=DriverVersion((580, 95, 5)), module_flavor="proprietary", nvml_code=0)


def linux(*gpus: PciGpu) -> System:
    return System(os="linux", distribution="ubuntu", wsl=0, container="", pci_gpus=gpus)


def test_blackwell_needs_the_open_module() -> None:
    result = run_check("proprietary-kernel-module-unsupported-gpu", driver=CLOSED, system=linux(BLACKWELL), devices=())
    finding = result.findings[0]
    assert finding.severity is Severity.ERROR
    assert (
        finding.summary == "The proprietary kernel module 580.95.05 is loaded, but GeForce RTX 5090 needs the open one"
    )
    assert finding.remedies[0].commands[0] == "sudo apt-get install -y nvidia-driver-580-open"


def test_the_kernel_log_is_enough() -> None:
    line = "NVRM: installed in this system requires use of the NVIDIA open kernel modules."
    driver = Driver(kernel_messages=(line,))
    finding = run_check("proprietary-kernel-module-unsupported-gpu", driver=driver).findings[0]
    assert finding.facts == ("driver.kernel_messages[0]",)


@pytest.mark.parametrize(
    ("driver", "gpu", "devices"),
    [
        pytest.param(CLOSED, ADA, (), id="older GPU"),
        pytest.param(CLOSED, BLACKWELL, (Device(nvml_index=0),), id="NVML lists it"),
        pytest.param(Driver(module_flavor="open"), BLACKWELL, (), id="open module"),
    ],
)
def test_passes(driver: Driver, gpu: PciGpu, devices: tuple[Device, ...]) -> None:
    result = run_check("proprietary-kernel-module-unsupported-gpu", driver=driver, system=linux(gpu), devices=devices)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"driver": Driver()}, "driver.module_flavor is unknown", id="flavor"),
        pytest.param({"driver": CLOSED}, "system.pci_gpus is unknown", id="bus"),
        pytest.param({"driver": CLOSED, "system": linux(BLACKWELL)}, "devices is unknown", id="devices"),
    ],
)
def test_skipped(sections: dict[str, object], reason: str) -> None:
    result = run_check("proprietary-kernel-module-unsupported-gpu", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_the_message_of_the_module_alone() -> None:
    symptoms = (Symptom(kind="nvrm-open-module-required", text="requires use of the NVIDIA open kernel modules"),)
    finding = run_check("proprietary-kernel-module-unsupported-gpu", symptoms=symptoms).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.remedies[0].commands[0] == "sudo apt-get install -y nvidia-driver-580-open"


def test_no_devices_were_found_stands_for_an_empty_list() -> None:
    symptoms = (Symptom(kind="nvidia-smi-no-devices", text="No devices were found"),)
    check = "proprietary-kernel-module-unsupported-gpu"
    assert run_check(check, driver=CLOSED, system=linux(BLACKWELL), symptoms=symptoms).outcome is Outcome.FOUND
    assert run_check(check, driver=CLOSED, system=linux(ADA), symptoms=symptoms).outcome is Outcome.PASSED


REFUSED = Symptom(kind="nvrm-open-module-required", text="requires use of the NVIDIA open kernel modules")
NONE_FOUND = Symptom(kind="nvidia-smi-no-devices", text="No devices were found")
LISTED = (Device(nvml_index=0, name="NVIDIA B200"),)


@pytest.mark.parametrize(
    ("sections", "facts"),
    [
        pytest.param(
            {"symptoms": (REFUSED,), "system": linux(ADA, BLACKWELL)},
            ("symptoms[0].text", "system.pci_gpus"),
            id="named",
        ),
        pytest.param(
            {"symptoms": (REFUSED,), "system": linux(ADA)}, ("symptoms[0].text",), id="an older one on the bus"
        ),
        pytest.param(
            {"symptoms": (REFUSED,), "devices": LISTED}, ("symptoms[0].text",), id="NVML lists what the log refuses"
        ),
        pytest.param(
            {"driver": CLOSED, "system": linux(ADA, BLACKWELL), "devices": ()},
            ("driver.module_flavor", "system.pci_gpus"),
            id="the flavor and the bus",
        ),
        pytest.param(
            {"driver": CLOSED, "system": linux(BLACKWELL), "symptoms": (NONE_FOUND,)},
            ("driver.module_flavor", "system.pci_gpus"),
            id="nvidia-smi found none",
        ),
    ],
)
def test_what_it_rests_on(sections: dict[str, Any], facts: tuple[str, ...]) -> None:
    (finding,) = run_check("proprietary-kernel-module-unsupported-gpu", **sections).findings
    assert finding.facts == facts


@pytest.mark.parametrize(
    ("gpu", "outcome"),
    [
        (replace(BLACKWELL, device_id="2342", name=""), Outcome.FOUND),
        (replace(BLACKWELL, device_id="FFFF", name="GH200 480GB"), Outcome.FOUND),
        (replace(BLACKWELL, device_id="FFFF", name="NVIDIA B200"), Outcome.FOUND),
        (replace(BLACKWELL, device_id="FFFF", name="NVIDIA H100 PCIe"), Outcome.PASSED),
        (replace(BLACKWELL, device_id="FFFF", name="of next year"), Outcome.PASSED),
    ],
)
def test_which_gpus_need_the_open_module(gpu: PciGpu, outcome: Outcome) -> None:
    result = run_check("proprietary-kernel-module-unsupported-gpu", driver=CLOSED, system=linux(gpu), devices=())
    assert result.outcome is outcome
