"""Memory that a container, seen from outside, may lock, for InfiniBand and other RDMA."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, SeenSetup, Severity, once_per_service
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import of_kind

MIB = 1024 * 1024
# With 64 MiB a completion queue could not be made. Source: NVIDIA/cudf-spark#7632
TOO_LOW_BYTES = 64 * MIB


@check(family="container")
def container_setup_memlock_too_low(setups: tuple[SeenSetup, ...]) -> Iterator[Finding]:
    """The memory lock limit of a container or service is too low for InfiniBand.

    Why: RDMA registers buffers, which locks them in memory. Docker passes on the limit of its own service, often 64 KiB
    or 8 MiB. Beyond it, NCCL ends with "Call to ibv_reg_mr failed with error Cannot allocate memory".
    Exception: a container without InfiniBand devices needs no such limit. If only the engine's default applies, which
    cannot be read, this is advice.
    Reference: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    concerned = [seen for seen in setups if _failed(seen) or _has_infiniband(seen)]
    skip_unless(concerned, "no checked container uses InfiniBand")
    for seen in once_per_service(seen for seen in concerned if _failed(seen) or not _is_enough(seen)):
        failed, limit = _failed(seen), seen.setup.memlock_bytes
        known = limit is not None
        may = f"may lock only {_size(limit)}" if limit is not None else "has the engine's default limit (memlock)"
        severity = Severity.ERROR if failed else Severity.WARNING if known else Severity.INFO
        summary = (
            f"The {seen.label} uses InfiniBand and {may}"
            f"{', and its log says that memory could not be registered' if failed else ''}"
        )
        facts = (failed or seen.fact("device_files"), seen.fact("memlock_bytes") if known else "")
        yield Finding.of(severity, seen.label, summary, facts, Fix("give-container-locked-memory", setup=seen.setup))


def _failed(seen: SeenSetup) -> str:
    return next((failure.fact for failure in of_kind(seen.failures, "memlock-exceeded")), "")


def _has_infiniband(seen: SeenSetup) -> bool:
    return any(device.startswith("/dev/infiniband") for device in seen.setup.device_files or ())


def _is_enough(seen: SeenSetup) -> bool:
    limit = seen.setup.memlock_bytes
    return limit is not None and (limit == 0 or limit > TOO_LOW_BYTES)


def _size(limit_bytes: int) -> str:
    if limit_bytes == 0:
        return "any amount"
    return f"{limit_bytes // MIB} MiB" if limit_bytes >= MIB else f"{limit_bytes // 1024} KiB"
