"""Memory that a process may lock, for InfiniBand and other RDMA."""

from collections.abc import Iterator

from gpudoctor.conclusions.container_setups import each, each_once, failed_with, named
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Containers, ContainerSetup, Finding, Remedy, Severity, Symptom, System
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies import start_anew

MIB = 1024 * 1024
INFINIBAND = "/dev/infiniband"
# With 64 MiB a completion queue could not be made. Source: NVIDIA/cudf-spark#7632
TOO_LOW_BYTES = 64 * MIB
TROUBLESHOOTING = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"


@check(family="container", explains=("nccl-p2p-problem",))
def memlock_limit_too_low(
    containers: Containers | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
    system: System | None = None,
) -> Iterator[Finding]:
    """A program with InfiniBand may lock too little memory for it.

    Why: RDMA registers buffers, which locks them in memory. Beyond the limit, NCCL ends with "Call to ibv_reg_mr failed
    with error Cannot allocate memory". Docker hands on the limit of its own service, often 64 KiB or 8 MiB.
    Exception: CUDA's own pinned memory does not count against the limit, so that without InfiniBand devices none is
    needed. Where only the engine's default holds, which it does not tell, that is advice.
    Reference: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    told = reported(symptoms, "memlock-exceeded")
    if told:
        yield _exceeded(told[0][0], system)
        return
    if system is not None and system.has_infiniband and _is_low(system.memlock_limit_bytes):
        yield _inside(system)
        return
    concerned = [(path, setup) for path, setup in each(containers) if _has_infiniband(path, setup)]
    skip_unless(concerned or (system and system.has_infiniband), "nothing here has to do with InfiniBand")
    yield from each_once(_limited(concerned))


def _has_infiniband(path: str, setup: ContainerSetup) -> bool:
    devices = any(device.startswith(INFINIBAND) for device in setup.device_files or ())
    return devices or bool(failed_with(path, setup, "memlock-exceeded"))


def _limited(setups: list[tuple[str, ContainerSetup]]) -> Iterator[tuple[ContainerSetup, Finding]]:
    for path, setup in setups:
        failed = failed_with(path, setup, "memlock-exceeded")
        known = setup.memlock_bytes is not None
        if known and not _is_low(setup.memlock_bytes) and not failed:
            continue
        limit = f"may lock {_size(setup.memlock_bytes)}" if known else "has the engine's default limit (memlock)"
        yield (
            setup,
            Finding(
                severity=Severity.ERROR if failed else Severity.WARNING if known else Severity.INFO,
                summary=f"The {named(setup)} uses InfiniBand and {limit}"
                f"{', beyond which its log says that it could not register memory' if failed else ''}",
                subject=named(setup),
                facts=(
                    failed[0][0] if failed else f"{path}.device_files",
                    *((f"{path}.memlock_bytes",) if known else ()),
                ),
                remedies=_for_container(setup),
            ),
        )


def _is_low(limit_bytes: int | None) -> bool:
    return bool(limit_bytes) and (limit_bytes or 0) <= TOO_LOW_BYTES


def _inside(system: System) -> Finding:
    return Finding(
        severity=Severity.INFO,  # whether a program uses them is not known
        summary=f"There are InfiniBand devices, and a process may lock only {_size(system.memlock_limit_bytes)}",
        subject="memlock",
        facts=("system.has_infiniband", "system.memlock_limit_bytes"),
        remedies=_anywhere(),
    )


def _exceeded(fact: str, system: System | None) -> Finding:
    limit = system.memlock_limit_bytes if system is not None else None
    return Finding(
        severity=Severity.ERROR,
        summary="InfiniBand could not register memory, which the process may lock only "
        f"{f'up to {_size(limit)}' if limit else 'up to its limit (memlock)'}",
        subject="memlock",
        facts=(fact, *(("system.memlock_limit_bytes",) if limit else ())),
        remedies=_anywhere(),
    )


def _anywhere() -> tuple[Remedy, ...]:
    """Return the remedies for a program of which it is not known whether a container runs it."""
    limits = Remedy(
        summary="Outside a container, raise the limit: lines `* soft memlock unlimited` and `* hard memlock "
        "unlimited` in /etc/security/limits.conf, LimitMEMLOCK=infinity for a service; then log in again",
        commands=("ulimit -l",),
        needs=("root", "restart"),
        reference=TROUBLESHOOTING,
    )
    return (*_for_container(ContainerSetup(name="", kind="container")), limits)


def _for_container(setup: ContainerSetup) -> tuple[Remedy, ...]:
    return start_anew(
        setup,
        wish="Let it lock any amount of memory",
        options=f"--device {INFINIBAND} --ulimit memlock=-1",
        service_lines="ulimits: {memlock: -1}",
        program="sh -c 'ulimit -l'",
    )


def _size(count: int | None) -> str:
    if not count:
        return "any amount"
    return f"{count // MIB} MiB" if count >= MIB else f"{count // 1024} KiB"
