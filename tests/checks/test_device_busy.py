"""Devices that let no further program compute."""

import pytest

from gpudoctor.model import Device, Outcome, Severity, Symptom, System, TorchRuntime
from gpudoctor.testing import run_check

BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"
SAID = (Symptom(kind="cuda-devices-busy", text="busy or unavailable", code="cuda-46"),)
LINUX = System(os="linux", wsl=0, container="")


def device(mode: str | None, **facts: object) -> Device:
    return Device(nvml_index=0, name="Tesla V100-SXM2-16GB", compute_mode=mode, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        pytest.param("exclusive-process", "exclusive-process, which lets one program at a time", id="exclusive"),
        pytest.param("prohibited", "prohibited, which lets no program compute", id="prohibited"),
    ],
)
def test_the_compute_mode_is_named_and_set_back(mode: str, words: str) -> None:
    (finding,) = run_check("device-busy", devices=(device(mode),), symptoms=SAID, system=LINUX).findings
    assert finding.severity is Severity.ERROR
    assert words in finding.summary
    assert finding.facts == ("symptoms[0].text", "devices[0].compute_mode")
    assert "sudo nvidia-smi -c 0" in finding.remedies[0].commands


@pytest.mark.parametrize("devices", [None, (device("default"),), (device(None),)])
def test_without_a_mode_the_process_that_has_it_is_looked_for_first(devices: tuple[Device, ...] | None) -> None:
    (finding,) = run_check("device-busy", devices=devices, torch_runtime=TorchRuntime(availability_error=BUSY)).findings
    assert "error 46" in finding.summary
    assert "sudo fuser -v /dev/nvidia*" in finding.remedies[0].commands
    assert "sudo nvidia-smi -c 0" in finding.remedies[1].commands


def test_every_device_is_prohibited_and_nothing_failed_yet() -> None:
    result = run_check("device-busy", devices=(device("prohibited"), device("prohibited")))
    assert result.outcome is Outcome.FOUND


@pytest.mark.parametrize(
    "sections",
    [
        pytest.param({"devices": (device("exclusive-process"),)}, id="exclusive by choice"),
        pytest.param({"devices": (device("prohibited"), device("default"))}, id="one is kept for the desktop"),
        pytest.param({"devices": (device("default", mig_enabled=True),), "symptoms": SAID}, id="MIG"),
    ],
)
def test_passes(sections: dict[str, object]) -> None:
    assert run_check("device-busy", **sections).outcome is Outcome.PASSED


def test_windows_has_no_sudo() -> None:
    (finding,) = run_check("device-busy", symptoms=SAID, system=System(os="windows")).findings
    assert not any("sudo" in command for remedy in finding.remedies for command in remedy.commands)


def test_unknown() -> None:
    result = run_check("device-busy")
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "devices is unknown")


def test_another_message() -> None:
    other = (Symptom(kind="cuda-no-device", text="no CUDA-capable device", code="cuda-100"),)
    result = run_check("device-busy", symptoms=other)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "no message reports this problem")
