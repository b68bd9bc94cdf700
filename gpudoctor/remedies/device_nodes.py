"""Opening the device nodes of the driver."""

from __future__ import annotations

from gpudoctor.model import Remedy
from gpudoctor.remedies.fixes import fix


@fix
def join_device_group() -> Remedy:
    """Return how a user gets to open the device nodes of a group."""
    return Remedy(
        summary="Join the group that owns the device nodes, then log in again",
        commands=('sudo usermod -aG "$(stat -c %G /dev/nvidiactl)" "$(id -un)"', "ls -l /dev/nvidiactl && id -Gn"),
        needs=("root", "restart"),
    )


@fix
def ask_batch_system() -> Remedy:
    """Return how to get a GPU from the batch system that refuses it."""
    return Remedy(
        summary="A cgroup refuses the device: ask the batch system for a GPU",
        commands=("srun --gres=gpu:1 nvidia-smi",),
        reference="https://slurm.schedmd.com/gres.html",
    )
