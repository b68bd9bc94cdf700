"""Whether this user may open the driver's device nodes."""

import pytest

from gpudoctor.model import DeviceFile, Driver, Outcome, Severity, Symptom, System
from gpudoctor.testing import run_check

LINUX = System(os="linux", wsl=0, container="")


def node(name: str, error: str = "") -> DeviceFile:
    return DeviceFile(path=f"/dev/{name}", mode="660", accessible=not error, error=error)


DENIED = "Permission denied"
CGROUP = "Operation not permitted"


@pytest.mark.parametrize(
    ("nodes", "command"),
    [
        pytest.param(
            (node("nvidiactl", DENIED), node("nvidia0", DENIED)),
            'sudo usermod -aG "$(stat -c %G /dev/nvidiactl)" "$(id -un)"',
            id="mode 660",
        ),
        pytest.param((node("nvidiactl"), node("nvidia-uvm", DENIED), node("nvidia0")), None, id="uvm alone"),
        pytest.param((node("nvidiactl"), node("nvidia0", CGROUP)), "srun --gres=gpu:1 nvidia-smi", id="cgroup"),
    ],
)
def test_found(nodes: tuple[DeviceFile, ...], command: str | None) -> None:
    finding = run_check("device-permissions-missing", driver=Driver(device_files=nodes), system=LINUX).findings[0]
    assert finding.severity is Severity.ERROR
    assert "(mode 660)" in finding.summary
    assert command is None or finding.remedies[0].commands[0] == command


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param((node("nvidiactl"), node("nvidia-uvm"), node("nvidia0")), id="all open"),
        pytest.param((node("nvidiactl"), node("nvidia0"), node("nvidia1", CGROUP)), id="a batch system grants one"),
        pytest.param((node("nvidia0"), node("nvidia-caps/nvidia-cap1", DENIED)), id="nodes that CUDA does not open"),
        pytest.param((), id="no nodes"),
    ],
)
def test_passes(nodes: tuple[DeviceFile, ...]) -> None:
    result = run_check("device-permissions-missing", driver=Driver(device_files=nodes), system=LINUX)
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"driver": Driver()}, "driver.device_files is unknown", id="unknown"),
        pytest.param(
            {"driver": Driver(device_files=(node("nvidia0", CGROUP),)), "system": System(container="docker")},
            "a container gets its device nodes from the host",
            id="container",
        ),
    ],
)
def test_skipped(sections: dict[str, object], reason: str) -> None:
    result = run_check("device-permissions-missing", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def test_nvml_says_so() -> None:
    symptoms = (Symptom(kind="nvml-no-permission", text="NVML: Insufficient Permissions"),)
    finding = run_check("device-permissions-missing", symptoms=symptoms).findings[0]
    assert finding.facts == ("symptoms[0].text",)
    assert "usermod -aG" in finding.remedies[0].commands[0]
