import pytest

from gpudoctor.model import Device, DeviceProcess, Outcome, Severity, System
from gpudoctor.testing import run_check

LINUX = System(os="linux", wsl=0, container="")
OFF = Device(nvml_index=0, name="NVIDIA A100", persistence_enabled=False)
ON = Device(nvml_index=1, name="NVIDIA A100", persistence_enabled=True)


def test_off_is_advice() -> None:
    (finding,) = run_check("persistence-mode-off", devices=(OFF, ON), system=LINUX).findings
    assert finding.severity is Severity.INFO
    assert finding.summary == "Persistence mode is off on GPU 0 (NVIDIA A100)"
    assert finding.remedies[0].commands[0] == "sudo nvidia-smi -pm 1"


def test_several_devices_are_one_finding() -> None:
    devices = tuple(Device(nvml_index=n, persistence_enabled=False) for n in (0, 1, 2, 5))
    (finding,) = run_check("persistence-mode-off", devices=devices, system=LINUX).findings
    assert finding.summary == "Persistence mode is off on GPUs 0-2, 5"
    assert len(finding.evidence) == 4


def test_on_passes() -> None:
    assert run_check("persistence-mode-off", devices=(ON,), system=LINUX).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("process", "outcome"),
    [("/usr/lib/xorg/Xorg", Outcome.PASSED), ("gnome-shell", Outcome.PASSED), ("python", Outcome.FOUND)],
)
def test_a_display_server_keeps_the_device_open(process: str, outcome: Outcome) -> None:
    device = Device(nvml_index=0, persistence_enabled=False, processes=(DeviceProcess(pid=1, name=process),))
    assert run_check("persistence-mode-off", devices=(device,), system=LINUX).outcome is outcome


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        (System(os="windows"), "windows has no persistence mode"),
        (System(os="linux", wsl=2), "WSL has no persistence mode"),
        (System(os="linux", container="docker"), "the host of a container sets the persistence mode"),
        (System(), "system.os is unknown"),
    ],
)
def test_elsewhere_the_question_does_not_arise(system: System, reason: str) -> None:
    result = run_check("persistence-mode-off", devices=(OFF,), system=system)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_an_unknown_mode_is_no_pass() -> None:
    result = run_check("persistence-mode-off", devices=(ON, Device(nvml_index=1)), system=LINUX)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "devices[1].persistence_enabled is unknown")


DISPLAY_SERVERS = "/usr/lib/xorg/Xorg Xwayland gnome-shell kwin_wayland sway Hyprland weston mutter-x11-frames"


@pytest.mark.parametrize("name", DISPLAY_SERVERS.split())
def test_a_display_server_keeps_the_driver_initialised(name: str) -> None:
    device = Device(nvml_index=0, persistence_enabled=False, processes=(DeviceProcess(pid=1, name=name),))
    assert run_check("persistence-mode-off", devices=(device,), system=LINUX).outcome is Outcome.PASSED
