"""Who may compute on a device: its compute mode, the processes that have it, and the Multi-Process Service (MPS)."""

from __future__ import annotations

from collections.abc import Sequence

from gpudoctor.model import Place, Remedy, System
from gpudoctor.remedies.fixes import fix

MODES = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-modes"
MPS_GUIDE = "https://docs.nvidia.com/deploy/mps/index.html"
PIPE_FOLDER = "CUDA_MPS_PIPE_DIRECTORY"


@fix
def set_compute_mode_to_default(*, place: Place) -> Remedy:
    """Return how to let several programs share a device."""
    sudo = "" if place.in_wsl or place.is_windows else "sudo "
    return Remedy(
        summary=f"Set the compute mode to default, so that several programs share the device{_on_host(place)}; a batch "
        "system that made it exclusive gives each job a GPU of its own: ask it for one, and start one process per GPU",
        commands=("nvidia-smi --query-gpu=index,name,compute_mode --format=csv", f"{sudo}nvidia-smi -c 0"),
        needs=("root",),
        reference=MODES,
    )


@fix
def end_process_on_device(*, place: Place) -> Remedy:
    """Return how to find and end the process that has the device."""
    windows = place.in_wsl or place.is_windows
    look = "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"
    return Remedy(
        summary=f"See which process has the device, also one that hangs or is left over, and end it{_on_host(place)}; "
        "then try again, and reboot if it stays busy",
        commands=(look,) if windows else (look, "sudo fuser -v /dev/nvidia*"),
        needs=() if windows else ("root",),
    )


@fix
def end_programs_on_gpu(*, place: Place, system: System | None, nvml_index: int, pids: Sequence[int] = ()) -> Remedy:
    """Return how to see which programs use a GPU, and what they are.

    pids: those that NVML lists. In a container they are numbers of the host.
    """
    query = f"nvidia-smi -i {nvml_index} --query-compute-apps=pid,process_name,used_memory --format=csv"
    inside = place.in_container or place.in_wsl
    on_linux = system is not None and system.os == "linux"
    look = (f"ps -o user,pid,etime,args -p {','.join(map(str, pids))}",) if pids and on_linux and not inside else ()
    where = ", on the host and in its other containers" if inside else ""
    return Remedy(
        summary=f"See which programs these are{where}, and end those that nobody needs", commands=(*look, query)
    )


@fix
def restart_mps_daemon(*, place: Place) -> Remedy:
    """Return how to restart the control daemon of the Multi-Process Service."""
    inside = "; in a container mount that folder of the host and share its IPC" if place.in_container else ""
    return Remedy(
        summary=f"Restart the daemon, as the user who runs the programs and with the same {PIPE_FOLDER}{inside}",
        commands=(
            "echo quit | nvidia-cuda-mps-control",
            "nvidia-cuda-mps-control -d",
            "echo get_server_list | nvidia-cuda-mps-control",
        ),
        needs=("restart",),
        reference=MPS_GUIDE,
    )


def _on_host(place: Place) -> str:
    return ", on the container's host" if place.in_container else ""
