"""CPU limits of containers and batch systems that stop a program."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, measured, share_text
from gpudoctor.registry import check, known

LEAST_SHARE = 0.1


@check(family="run")
def cpu_limited_by_cgroup(run: Run) -> Iterator[Finding]:
    """The CPU limit of the container or job stopped the program again and again.

    Why: if a program has used its share of the CPU for a period (usually 100 ms), the system stops all its threads
    until the next one. Data loading and kernel launches stop too, so the GPU waits.
    Exception: a program that is stopped in less than a tenth of the periods passes.
    Reference: https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu
    """
    share = known(run.throttled_periods, "run.throttled_periods")
    if share >= LEAST_SHARE:
        limit = f" of {run.allowed_cpus:g} CPUs" if run.allowed_cpus else ""
        summary = f"The CPU limit{limit} stopped the program in {share_text(share)} of all periods"
        facts = ("run.throttled_periods", "run.allowed_cpus", "run.cpu_cores")
        yield Finding.warning("CPU limit", summary, facts, Fix("raise-cpu-limit"), details=measured(share))
