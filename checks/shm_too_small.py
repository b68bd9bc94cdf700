"""Shared memory in a container."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Remedy, Severity, System, Torch
from gpudoctor.registry import applies, check, known

MIB = 1024 * 1024
# Docker's default. Source: https://docs.docker.com/reference/cli/docker/container/run/ (--shm-size)
DEFAULT_BYTES = 64 * MIB


@check(family="container")
def shm_too_small(system: System, torch: Torch) -> Iterator[Finding]:
    """The container's shared memory is too small for the data loader's workers and NCCL.

    Why: worker processes hand batches over through /dev/shm; Docker gives a container 64 MiB of it. When it is full, a
    worker dies with "Bus error", and NCCL fails to start.
    Exception: a container without PyTorch, and data loading without workers, need none.
    Reference: https://github.com/pytorch/pytorch#using-pre-built-images
    """
    applies(known(system.container, "system.container"), "this is not a container")
    applies(known(torch.installed, "torch.installed"), "PyTorch is not installed")
    total = known(system.shm_total_bytes, "system.shm_total_bytes")
    if total > DEFAULT_BYTES:
        return
    yield Finding(
        severity=Severity.WARNING,
        summary=f"The shared memory of this {system.container} container has {total // MIB} MiB, "
        + (
            "which is Docker's default" if total == DEFAULT_BYTES else f"Docker's default is {DEFAULT_BYTES // MIB} MiB"
        ),
        subject="shared memory",
        facts=("system.shm_total_bytes", "system.container"),
        remedies=_remedies(system.container or ""),
    )


def _remedies(engine: str) -> tuple[Remedy, ...]:
    fewer = Remedy(summary="Load data in the main process: DataLoader(num_workers=0)")
    if engine == "kubernetes":
        volume = Remedy(
            summary="Mount a volume of memory at /dev/shm: emptyDir with medium: Memory and a sizeLimit",
            needs=("restart",),
            reference="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
        )
        return (volume, fewer)
    command = "podman" if engine == "podman" else "docker"
    run = Remedy(
        summary="Start the container with more shared memory, or with that of the host (--ipc=host)",
        commands=(f"{command} run --gpus all --shm-size=8g IMAGE", f"{command} run --gpus all --ipc=host IMAGE"),
        needs=("restart",),
        reference="https://docs.docker.com/reference/cli/docker/container/run/",
    )
    compose = Remedy(
        summary='With compose, add `shm_size: "8gb"` (or `ipc: host`) to the service, and create its container anew',
        commands=("docker compose up --detach --force-recreate",),
        needs=("restart",),
        reference="https://docs.docker.com/reference/compose-file/services/#shm_size",
    )
    return (run, compose, fewer)
