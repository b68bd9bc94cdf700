"""Limits of the memory that programs share and lock: /dev/shm, open files, memlock."""

from __future__ import annotations

from gpudoctor.model import Container, ContainerSetup, Remedy, System
from gpudoctor.remedies.container_start import give_container_locked_memory
from gpudoctor.remedies.fixes import fix

STRATEGIES = "https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies"
TROUBLESHOOTING = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"


@fix
def enlarge_shared_memory(
    in_container: bool | None, *, container: Container | None, system: System | None
) -> tuple[Remedy, ...]:
    """Return how a program gets a larger /dev/shm. in_container: None if that is unknown, for which both are given."""
    if in_container is False:
        return (_remount(), use_fewer_workers())
    engine = (container.engine if container is not None else None) or (system.container if system is not None else None)
    outside = () if in_container else (_remount(),)
    return (*_of_container(engine or ""), *outside, use_fewer_workers())


def _of_container(engine: str) -> tuple[Remedy, ...]:
    if engine == "kubernetes":
        volume = Remedy(
            summary="Mount a volume of memory at /dev/shm, because a pod has no --shm-size: emptyDir with medium: "
            "Memory and a sizeLimit",
            commands=("kubectl exec POD -- df -h /dev/shm",),
            needs=("restart",),
            reference="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
        )
        return (volume,)
    command = "podman" if engine == "podman" else "docker"
    run = Remedy(
        summary="Start the container with more shared memory (--shm-size), or with that of the host (--ipc=host)",
        commands=(f"{command} run --gpus all --shm-size=8g IMAGE", f"{command} run --gpus all --ipc=host IMAGE"),
        needs=("restart",),
        reference="https://docs.docker.com/reference/cli/docker/container/run/",
    )
    compose = Remedy(
        summary='With compose, add `shm_size: "8gb"` (or `ipc: host`) to the service, and recreate its container',
        commands=("docker compose up --detach --force-recreate",),
        needs=("restart",),
        reference="https://docs.docker.com/reference/compose-file/services/#shm_size",
    )
    return (run, compose)


@fix
def use_fewer_workers() -> Remedy:
    """Return how data is loaded with less shared memory."""
    return Remedy(summary="Load data in the main process, or with fewer workers: DataLoader(num_workers=0)")


def _remount() -> Remedy:
    return Remedy(
        summary="Outside a container, remove the files in /dev/shm that nobody uses, or make it larger",
        commands=("df -h /dev/shm", "ls -lh /dev/shm", "sudo mount -o remount,size=8G /dev/shm", "df -h /dev/shm"),
        needs=("root",),
    )


@fix
def open_more_files() -> Remedy:
    """Return how the workers of a data loader share more tensors than the process may open files."""
    return Remedy(
        summary="Let the process open more files, or share tensors through files that are closed again: "
        "torch.multiprocessing.set_sharing_strategy('file_system')",
        commands=("ulimit -n 65535", "ulimit -n"),
        needs=("restart",),
        reference=STRATEGIES,
    )


@fix
def allow_shared_memory() -> Remedy:
    """Return how a user may write to /dev/shm."""
    return Remedy(
        summary="Give /dev/shm its usual permissions, or run as a user who may write there",
        commands=("sudo chmod 1777 /dev/shm", "ls -ld /dev/shm"),
        needs=("root",),
    )


@fix
def raise_memlock_limit() -> tuple[Remedy, ...]:
    """Return how a program may lock more memory, in a container or outside."""
    limits = Remedy(
        summary="Outside a container, raise the limit: lines `* soft memlock unlimited` and `* hard memlock "
        "unlimited` in /etc/security/limits.conf, LimitMEMLOCK=infinity for a service; then log in again",
        commands=("ulimit -l",),
        needs=("root", "restart"),
        reference=TROUBLESHOOTING,
    )
    return (*give_container_locked_memory(ContainerSetup(name="", kind="container")), limits)
