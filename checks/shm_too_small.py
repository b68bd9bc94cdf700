"""Shared memory for the workers of the data loader and for NCCL."""

from collections.abc import Iterator

from gpudoctor.conclusions.container_setups import each, each_once, failed_with, named
from gpudoctor.conclusions.containers import told_of_container
from gpudoctor.conclusions.error_codes import in_container
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Container, Containers, ContainerSetup, Finding, Remedy, Severity, Symptom, System, Torch
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies import start_anew

MIB = 1024 * 1024
# Docker's default. Source: https://docs.docker.com/reference/cli/docker/container/run/ (--shm-size)
DEFAULT_BYTES = 64 * MIB
STRATEGIES = "https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies"


@check(family="container", explains=("nccl-p2p-problem",))
def shm_too_small(
    system: System | None = None,
    torch: Torch | None = None,
    container: Container | None = None,
    containers: Containers | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The shared memory is too small for the data loader's workers and NCCL.

    Why: worker processes hand batches over through /dev/shm; Docker gives a container 64 MiB of it. When it is full, a
    worker dies with "Bus error", and NCCL fails to start. The same happens where a process may open too few files.
    Exception: a container without PyTorch, and data loading without workers, need none. Outside containers half of the
    main memory is shared memory, so that only a message that it is full counts.
    Reference: https://github.com/pytorch/pytorch#using-pre-built-images
    """
    yield from each_once(_of_setups(containers))
    if containers is not None and not in_container(system):
        return
    told = reported(symptoms, "shm-*")
    if told:
        yield _failure(told, system, container)
        return
    system = known(system, "system")
    skip_unless(known(system.container, "system.container"), "this is not a container")
    if not reported(symptoms, "data-loader-workers"):
        skip_unless(known(known(torch, "torch").installed, "torch.installed"), "PyTorch is not installed")
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


def _failure(told: tuple[tuple[str, Symptom], ...], system: System | None, container: Container | None) -> Finding:
    """Return what the messages tell: memory that is full, files that may not be opened, or too few of them."""
    fact, message = told[0]
    reason = " ".join(message.names.get("reason", "").split()).rstrip()
    size = _size(system, container)
    if reason == "Too many open files" or message.kind == "shm-descriptors":
        summary = "The process may open too few files for the shared memory of the data loader's workers"
        remedies: tuple[Remedy, ...] = (_more_files(), _fewer_workers())
    elif reason == "Permission denied":
        summary, remedies = (
            "The user may not write to /dev/shm, where the data loader's workers share memory",
            (_allow(),),
        )
    else:
        program = {"nccl": "NCCL", "ray": "Ray"}.get(message.library, "the workers of PyTorch's data loader")
        summary = f"The shared memory (/dev/shm{f', {size // MIB} MiB' if size else ''}) is too small for {program}"
        remedies = _where(system, container)
    return Finding(severity=Severity.ERROR, summary=summary, subject="shared memory", facts=(fact,), remedies=remedies)


def _size(system: System | None, container: Container | None) -> int | None:
    if system is not None and system.shm_total_bytes:
        return system.shm_total_bytes
    return container.shm_size_bytes if container is not None else None


def _where(system: System | None, container: Container | None) -> tuple[Remedy, ...]:
    """Return the remedies for a container, for the machine itself, or for both where that is not known."""
    engine = (container.engine if container is not None else None) or (system.container if system is not None else None)
    inside = _remedies(engine or "")
    if told_of_container(system, container):
        return inside
    if system is not None and system.container == "":
        return (_remount(), _fewer_workers())
    return (*inside[:-1], _remount(), inside[-1])


def _remedies(engine: str) -> tuple[Remedy, ...]:
    fewer = _fewer_workers()
    if engine == "kubernetes":
        volume = Remedy(
            summary="Mount a volume of memory at /dev/shm, for a pod has no --shm-size: emptyDir with medium: Memory "
            "and a sizeLimit",
            commands=("kubectl exec POD -- df -h /dev/shm",),
            needs=("restart",),
            reference="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
        )
        return (volume, fewer)
    command = "podman" if engine == "podman" else "docker"
    run = Remedy(
        summary="Start the container with more shared memory (--shm-size), or with that of the host (--ipc=host)",
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


def _fewer_workers() -> Remedy:
    return Remedy(summary="Load data in the main process, or with fewer workers: DataLoader(num_workers=0)")


def _remount() -> Remedy:
    return Remedy(
        summary="Outside a container, remove what lies in /dev/shm and nobody uses, or make it larger",
        commands=("df -h /dev/shm", "ls -lh /dev/shm", "sudo mount -o remount,size=8G /dev/shm", "df -h /dev/shm"),
        needs=("root",),
    )


def _more_files() -> Remedy:
    return Remedy(
        summary="Let the process open more files, or share tensors through files that are closed again: "
        "torch.multiprocessing.set_sharing_strategy('file_system')",
        commands=("ulimit -n 65535", "ulimit -n"),
        needs=("restart",),
        reference=STRATEGIES,
    )


def _allow() -> Remedy:
    return Remedy(
        summary="Give /dev/shm its usual permissions, or run as a user who may write there",
        commands=("sudo chmod 1777 /dev/shm", "ls -ld /dev/shm"),
        needs=("root",),
    )


def _of_setups(containers: Containers | None) -> Iterator[tuple[ContainerSetup, Finding]]:
    """Yield the containers and services with PyTorch, seen from outside, that get Docker's default or less."""
    for path, setup in each(containers):
        failed = failed_with(path, setup, "shm-*")
        has_torch = setup.torch is not None and bool(setup.torch.installed)
        if setup.kind == "image" or not (failed or (has_torch and _is_small(setup))):
            continue
        yield (
            setup,
            Finding(
                severity=Severity.ERROR if failed else Severity.WARNING,
                summary=f"The shared memory of the {named(setup)} {_size_of(setup)}"
                f"{', and was too small for what ran in it' if failed else ', and it has PyTorch'}",
                subject=named(setup),
                facts=(
                    *((failed[0][0],) if failed else (f"{path}.torch",)),
                    *((f"{path}.shm_size_bytes",) if setup.shm_size_bytes is not None else ()),
                ),
                remedies=(*_for_setup(setup), _fewer_workers()),
            ),
        )


def _is_small(setup: ContainerSetup) -> bool:
    """Return whether /dev/shm is its own, and no larger than Docker's default."""
    if setup.has_own_shm or (setup.ipc or "private").startswith(("host", "container:", "service:")):
        return False
    return setup.ipc == "none" or (setup.shm_size_bytes or DEFAULT_BYTES) <= DEFAULT_BYTES


def _size_of(setup: ContainerSetup) -> str:
    if setup.ipc == "none":
        return 'is none (ipc "none")'
    if setup.shm_size_bytes is None:
        return f"is left to Docker's default, {DEFAULT_BYTES // MIB} MiB"
    default = ", Docker's default" if setup.shm_size_bytes == DEFAULT_BYTES else ""
    return f"has {setup.shm_size_bytes // MIB} MiB{default}"


def _for_setup(setup: ContainerSetup) -> tuple[Remedy, ...]:
    return start_anew(
        setup,
        wish="Give it more shared memory, or that of the host (ipc host)",
        options="--shm-size=8g",
        service_lines='shm_size: "8gb" (or ipc: host)',
        program="df -h /dev/shm",
    )
