"""Memory that a process may lock, for InfiniBand and other RDMA."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Severity, System
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind

MIB = 1024 * 1024
# With 64 MiB a completion queue could not be made. Source: NVIDIA/cudf-spark#7632
TOO_LOW_BYTES = 64 * MIB


@check(family="container", explains=("nccl-p2p-problem",))
def memlock_limit_too_low(symptoms: Symptoms = None, system: System = System()) -> Iterator[Finding]:
    """The memory lock limit of a program is too low for InfiniBand.

    Why: RDMA registers buffers, which locks them in memory. Beyond the limit, NCCL ends with "Call to ibv_reg_mr failed
    with error Cannot allocate memory". Docker passes on the limit of its own service, often 64 KiB or 8 MiB.
    Exception: without InfiniBand devices the check passes, because CUDA's pinned memory does not count. If no program
    reports a failure, this is advice. container-setup-memlock-too-low checks containers from outside.
    Reference: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    limit = system.memlock_limit_bytes
    for exceeded in of_kind(symptoms, "memlock-exceeded")[:1]:
        summary = (
            "InfiniBand could not register memory: the process may lock only "
            f"{f'up to {_size(limit)}' if limit else 'up to its limit (memlock)'}"
        )
        facts = (exceeded.fact, "system.memlock_limit_bytes" if limit else "")
        yield Finding.error("memlock", summary, facts, Fix("give-container-locked-memory"), Fix("raise-memlock-limit"))
        return
    skip_unless(system.has_infiniband, "nothing here uses InfiniBand")
    if limit and limit <= TOO_LOW_BYTES:
        yield Finding(
            severity=Severity.INFO,  # whether a program uses the devices is unknown
            summary=f"This machine has InfiniBand devices, but a process may lock only {_size(limit)}",
            subject="memlock",
            facts=("system.has_infiniband", "system.memlock_limit_bytes"),
            fixes=(Fix("give-container-locked-memory"), Fix("raise-memlock-limit")),
        )


def _size(count: int) -> str:
    return f"{count // MIB} MiB" if count >= MIB else f"{count // 1024} KiB"
