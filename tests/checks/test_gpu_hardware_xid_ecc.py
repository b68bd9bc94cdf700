from typing import Any

import pytest

from gpudoctor.model import CheckResult, Device, Driver, Fix, Outcome, Severity, Symptom, System, TorchRuntime, Xid
from gpudoctor.testing import run_check

LINUX = System(os="linux", wsl=0, container="")
CLEAN = {"ecc_uncorrected_volatile": 0, "remapped_rows_failed": False, "remapped_rows_pending": False}


def device(**facts: Any) -> Device:
    return Device(**{"nvml_index": 0, "name": "A100", "pci_address": "00000000:41:00.0", **CLEAN, **facts})


def check(*devices: Device, xids: tuple[Xid, ...] | None = (), system: System = LINUX) -> CheckResult:
    return run_check("gpu-hardware-xid-ecc", driver=Driver(xids=xids), devices=devices, system=system)


def xid(number: int, address: str = "PCI:0000:41:00", text: str = "") -> Xid:
    return Xid(number=number, pci_address=address, text=text)


@pytest.mark.parametrize(
    ("number", "severity"),
    [
        pytest.param(48, Severity.ERROR, id="double bit error"),
        pytest.param(64, Severity.ERROR, id="remapping failed"),
        pytest.param(74, Severity.ERROR, id="NVLink"),
        pytest.param(79, Severity.ERROR, id="off the bus"),
        pytest.param(95, Severity.ERROR, id="uncontained memory error"),
        pytest.param(119, Severity.ERROR, id="GSP timeout: reset"),
        pytest.param(171, Severity.ERROR, id="uncorrectable DRAM error"),
        pytest.param(63, Severity.WARNING, id="row remapped"),
        pytest.param(92, Severity.WARNING, id="many corrected errors"),
        pytest.param(94, Severity.WARNING, id="contained memory error"),
        pytest.param(54, Severity.WARNING, id="power not connected"),
        pytest.param(13, Severity.INFO, id="exception of a program"),
        pytest.param(31, Severity.INFO, id="page fault of a program"),
        pytest.param(43, Severity.INFO, id="channel of a program"),
        pytest.param(45, Severity.INFO, id="clean-up"),
        pytest.param(4242, Severity.INFO, id="unknown number"),
        pytest.param(106, None, id="test message"),
    ],
)
def test_severity_of_an_xid(number: int, severity: Severity | None) -> None:
    findings = check(device(), xids=(xid(number),)).findings
    assert [finding.severity for finding in findings] == ([] if severity is None else [severity])


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", Severity.ERROR),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", Severity.INFO),
    ],
)
def test_a_changed_recovery_action_counts_by_what_it_became(text: str, severity: Severity) -> None:
    (finding,) = check(device(), xids=(xid(154, text=text),)).findings
    assert finding.severity is severity


@pytest.mark.parametrize(
    ("facts", "severity"),
    [
        ({"ecc_uncorrected_volatile": 2}, Severity.ERROR),
        ({"remapped_rows_failed": True}, Severity.ERROR),
        ({"remapped_rows_pending": True}, Severity.WARNING),
        ({"retired_pages_pending": True}, Severity.WARNING),
        ({"error": "GPU is lost"}, Severity.ERROR),
        ({"error": "GPU requires restart"}, Severity.ERROR),
    ],
)
def test_what_nvml_says(facts: dict[str, Any], severity: Severity) -> None:
    (finding,) = check(device(**facts)).findings
    assert (finding.severity, finding.facts) == (severity, (f"devices[0].{next(iter(facts))}",))


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({}, id="clean"),
        pytest.param({"error": "Unknown Error"}, id="unreachable for another reason"),
    ],
)
def test_what_passes(facts: dict[str, Any]) -> None:
    assert check(device(**facts)).outcome is Outcome.PASSED


def test_all_symptoms_of_a_device_are_one_finding() -> None:
    broken = device(nvml_index=3, ecc_uncorrected_volatile=1, remapped_rows_pending=True)
    healthy = device(pci_address="00000000:81:00.0")
    (finding,) = check(healthy, broken, xids=(xid(48), xid(63), xid(48))).findings
    assert finding.summary == (
        "GPU 3 (A100) shows 1 uncorrected memory error since the driver was loaded, a row remapping that waits for a "
        "reset, Xid 48 (Double Bit ECC Error), Xid 63 (GPU memory remapping event)"
    )
    assert [row["number"] for row in finding.details["xids"]] == [48, 63, 48]
    assert finding.details["xids"][0]["action"] == "WORKFLOW_XID_48"


@pytest.mark.parametrize("address", ["PCI:0000:41:00", "0000:41:00", "0000:41:00.0", "pci:00000000:41:00"])
def test_the_kernel_log_writes_addresses_in_its_own_way(address: str) -> None:
    (finding,) = check(device(), xids=(xid(79, address),)).findings
    assert finding.subject == "GPU 0 (A100)"


def test_an_xid_of_a_device_that_is_gone_stands_alone() -> None:
    (finding,) = check(device(), xids=(xid(79, "PCI:0001:41:00"),)).findings
    assert finding.subject == "PCI:0001:41:00"


def test_a_device_that_answers_is_reset_and_one_that_is_lost_is_rebooted() -> None:
    (finding,) = check(device(ecc_uncorrected_volatile=1)).findings
    assert finding.fixes == (Fix("reset-gpu", nvml_index=0, lost=False),)
    for lost in (check(device(), xids=(xid(79),)), check(device(error="GPU is lost"))):
        assert lost.findings[0].fixes == (Fix("reset-gpu", nvml_index=0, lost=True),)


def test_a_device_without_spare_rows_is_replaced() -> None:
    (finding,) = check(device(remapped_rows_failed=True)).findings
    assert finding.fixes[0] == Fix("replace-device")


def test_an_error_that_a_library_reports_counts_without_a_kernel_log() -> None:
    runtime = TorchRuntime(availability_error="CUDA error: uncorrectable ECC error encountered")
    (finding,) = run_check("gpu-hardware-xid-ecc", torch_runtime=runtime).findings
    assert finding.severity is Severity.ERROR
    assert finding.evidence[0].fact == "torch_runtime.availability_error"


def test_nvml_may_lose_the_only_device() -> None:
    driver = Driver(nvml_error="Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.")
    (finding,) = run_check("gpu-hardware-xid-ecc", driver=driver).findings
    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"driver": Driver(), "devices": (Device(nvml_index=0),)}, id="no log and no counters"),
    ],
)
def test_unknown_is_no_pass(sections: dict[str, Any]) -> None:
    result = run_check("gpu-hardware-xid-ecc", **sections)
    assert result.outcome is Outcome.SKIPPED
    assert result.reason == "Xid errors and memory errors of the GPUs are unknown"


def test_counters_answer_if_the_kernel_log_is_not_readable() -> None:
    assert check(device(), xids=None).outcome is Outcome.PASSED


LOST = Device(nvml_index=1, error="GPU is lost")


def test_an_xid_belongs_to_the_lost_device_if_to_no_other() -> None:
    (finding,) = check(device(), LOST, xids=(xid(79, "0000:c1:00.0"),)).findings
    assert finding.subject == "GPU 1"
    assert 'the error "GPU is lost", Xid 79' in finding.summary


def test_between_two_lost_devices_an_xid_is_not_guessed() -> None:
    other = Device(nvml_index=2, error="GPU is lost")
    subjects = [finding.subject for finding in check(LOST, other, xids=(xid(79, "0000:c1:00.0"),)).findings]
    assert subjects == ["GPU 1", "GPU 2", "0000:c1:00.0"]


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        pytest.param("gpu-fallen-off-bus", True, id="off the bus"),
        pytest.param("gpu-is-lost", True, id="lost"),
        pytest.param("gpu-handle-unknown-error", True, id="no handle"),
        pytest.param("gpu-pcie-bus-error", True, id="bus error"),
        pytest.param("gpu-requires-reset", False, id="reset required"),
        pytest.param("gpu-ecc-uncorrectable", False, id="memory error"),
        pytest.param("gpu-nvlink-uncorrectable", False, id="NVLink error"),
        pytest.param("gpu-not-initialised", False, id="not initialised"),
    ],
)
def test_a_message_is_about_the_only_device(kind: str, lost: bool) -> None:
    told = (Symptom(kind=kind, text="what was printed"),)
    only = Device(nvml_index=0, name="A100")
    (finding,) = run_check("gpu-hardware-xid-ecc", devices=(only,), symptoms=told, system=LINUX).findings
    assert (finding.severity, finding.subject) == (Severity.ERROR, "GPU 0 (A100)")
    assert finding.fixes == (Fix("reset-gpu", nvml_index=0, lost=lost),)


def test_a_message_alone_shows_how_to_find_the_device() -> None:
    told = (Symptom(kind="gpu-ecc-uncorrectable", text="uncorrectable ECC error encountered"),)
    (finding,) = run_check("gpu-hardware-xid-ecc", symptoms=told).findings
    assert finding.facts == ("symptoms[0].text",)
    assert finding.fixes == (Fix("reset-gpu", nvml_index=None, lost=False),)


def test_an_xid_says_more_than_a_message() -> None:
    told = (Symptom(kind="gpu-fallen-off-bus", text="GPU has fallen off the bus"),)
    driver = Driver(xids=(xid(79),))
    (finding,) = run_check("gpu-hardware-xid-ecc", driver=driver, symptoms=told).findings
    assert finding.facts == ("driver.xids[0]",)


def test_a_gpu_whose_name_is_reported_is_no_fault() -> None:
    told = (Symptom(kind="gpu-named-ampere", text="RTX 4090"),)
    assert run_check("gpu-hardware-xid-ecc", driver=Driver(xids=()), symptoms=told).outcome is Outcome.PASSED


NO_DEVICES = (Symptom(kind="nvidia-smi-no-devices", text="No devices were found"),)


@pytest.mark.parametrize("devices", [None, ()])
def test_a_driver_that_shows_no_device_could_not_initialise_it(devices: tuple[Device, ...] | None) -> None:
    (finding,) = run_check("gpu-hardware-xid-ecc", devices=devices, symptoms=NO_DEVICES).findings
    assert (finding.severity, finding.facts) == (Severity.WARNING, ("symptoms[0].text",))
    assert [fix.name for fix in finding.fixes] == ["find-why-gpu-does-not-start", "start-cold"]


@pytest.mark.parametrize(
    ("devices", "system"),
    [
        pytest.param((Device(nvml_index=0),), LINUX, id="a device is shown elsewhere"),
        pytest.param(None, System(os="linux", container="docker"), id="a container, which may have been given none"),
    ],
)
def test_no_devices_for_another_reason(devices: tuple[Device, ...] | None, system: System) -> None:
    driver = Driver(xids=())
    result = run_check("gpu-hardware-xid-ecc", driver=driver, devices=devices, symptoms=NO_DEVICES, system=system)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        pytest.param("pid=12, name=a, Ch 00000001 caused by previous Xid 149", Severity.ERROR, id="NVLink"),
        pytest.param("pid=12, name=a, Ch 00000001 caused by previous Xid 31", Severity.INFO, id="a program"),
        pytest.param("pid=12, name=a, Ch 00000001", Severity.INFO, id="no cause named"),
    ],
)
def test_a_channel_that_ended_counts_by_the_error_that_it_names(text: str, severity: Severity) -> None:
    driver = Driver(xids=(Xid(number=45, pci_address="0000:01:00.0", text=text),))
    (finding,) = run_check("gpu-hardware-xid-ecc", driver=driver).findings
    assert finding.severity is severity


@pytest.mark.parametrize(
    ("kind", "text", "summary"),
    [
        ("gpu-pcie-bus-error", "nvidia 0000:01:00.0: AER: ...", "The GPU shows a PCIe error that was not corrected"),
        ("gpu-is-lost", "GPU is lost", 'The GPU shows the error "GPU is lost"'),
    ],
)
def test_a_fault_is_a_sentence(kind: str, text: str, summary: str) -> None:
    """The line of the kernel log is the evidence, not the sentence."""
    (finding,) = run_check("gpu-hardware-xid-ecc", symptoms=(Symptom(kind=kind, text=text),)).findings
    assert finding.summary == summary


def test_a_corrected_pcie_error_is_advice_only() -> None:
    kind, names = "gpu-pcie-error-corrected", {"address": "0000:01:00.0"}
    symptom = Symptom(kind=kind, text="severity=Corrected", names=names, fact="symptoms[0].text")
    (finding,) = run_check("gpu-hardware-xid-ecc", symptoms=(symptom,)).findings
    assert (finding.severity, finding.subject) == (Severity.INFO, "GPU at 0000:01:00.0")
    assert "0000:01:00.0" in finding.summary


def test_a_gpu_without_a_name_has_its_address() -> None:
    (finding,) = check(xids=(xid(79, "0000:c1:00.0"),)).findings
    assert finding.summary.startswith("The GPU at 0000:c1:00.0 shows Xid 79")
