"""Shared memory of a container that is seen from outside."""

from collections.abc import Iterator

from gpudoctor.model import ContainerSetup, Finding, Fix, SeenSetup, Severity, once_per_service
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import of_kind

MIB = 1024 * 1024
# Docker's default. Source: https://docs.docker.com/reference/cli/docker/container/run/ (--shm-size)
DEFAULT_BYTES = 64 * MIB


@check(family="container")
def container_setup_shm_too_small(setups: tuple[SeenSetup, ...]) -> Iterator[Finding]:
    """The shared memory of a container or service is too small for PyTorch's data loader and NCCL.

    Why: worker processes pass batches through /dev/shm; Docker gives a container 64 MiB of it. When it is full, a
    worker dies with "Bus error", and NCCL fails to start.
    Exception: a container without PyTorch passes, unless its log says that the shared memory was full. With `ipc: host`
    the container uses the host's shared memory.
    Reference: https://github.com/pytorch/pytorch#using-pre-built-images
    """
    skip_unless(setups, "no container was checked")
    small = [seen for seen in setups if seen.setup.kind != "image" and (_failed(seen) or _is_small(seen.setup))]
    for seen in once_per_service(small):
        failed = _failed(seen)
        yield Finding.of(
            Severity.ERROR if failed else Severity.WARNING,
            seen.label,
            f"The shared memory of the {seen.label} {_size(seen.setup)}"
            f"{', and was too small for what ran in it' if failed else ', and it has PyTorch'}",
            (
                failed or seen.fact("torch"),
                seen.fact("shm_size_bytes") if seen.setup.shm_size_bytes is not None else "",
            ),
            Fix("give-container-shared-memory", setup=seen.setup),
            Fix("use-fewer-workers"),
        )


def _failed(seen: SeenSetup) -> str:
    return next((failure.fact for failure in of_kind(seen.failures, "shm-*")), "")


def _is_small(setup: ContainerSetup) -> bool:
    """Return whether PyTorch is in it, and its /dev/shm is its own and no larger than Docker's default."""
    if setup.torch is None or not setup.torch.installed:
        return False
    if setup.has_own_shm or (setup.ipc or "private").startswith(("host", "container:", "service:")):
        return False
    return setup.ipc == "none" or (setup.shm_size_bytes or DEFAULT_BYTES) <= DEFAULT_BYTES


def _size(setup: ContainerSetup) -> str:
    if setup.ipc == "none":
        return 'is switched off (ipc "none")'
    if setup.shm_size_bytes is None:
        return f"has Docker's default size, {DEFAULT_BYTES // MIB} MiB"
    default = ", Docker's default" if setup.shm_size_bytes == DEFAULT_BYTES else ""
    return f"has {setup.shm_size_bytes // MIB} MiB{default}"
