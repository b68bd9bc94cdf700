"""Who may compute on a device."""

import pytest

from gpudoctor.model import Place
from gpudoctor.remedies.device_sharing import end_process_on_device, restart_mps_daemon, set_compute_mode_to_default

LOOK = "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"


@pytest.mark.parametrize(
    ("place", "mode", "processes", "needs"),
    [
        (Place(), "sudo nvidia-smi -c 0", (LOOK, "sudo fuser -v /dev/nvidia*"), ("root",)),
        (Place(in_wsl=True), "nvidia-smi -c 0", (LOOK,), ()),
        (Place(is_windows=True), "nvidia-smi -c 0", (LOOK,), ()),
    ],
)
def test_sharing(place: Place, mode: str, processes: tuple[str, ...], needs: tuple[str, ...]) -> None:
    assert set_compute_mode_to_default(place=place).commands[-1] == mode
    ending = end_process_on_device(place=place)
    assert (ending.commands, ending.needs) == (processes, needs)


def test_the_daemon_is_ended_started_and_asked() -> None:
    assert restart_mps_daemon(place=Place()).commands == (
        "echo quit | nvidia-cuda-mps-control",
        "nvidia-cuda-mps-control -d",
        "echo get_server_list | nvidia-cuda-mps-control",
    )
