"""Probes that brought no answer."""

from collections.abc import Iterator

from gpudoctor.model import Driver, Finding, Fix, ProbeReport, Severity
from gpudoctor.registry import check, skip_unless

# The probes that ask a library or the driver: what hangs or crashes there does so in every program.
OF_LIBRARIES = ("torch-runtime", "cupy-runtime", "cuda-driver", "nvml")
DIED = "killed by "  # how a death by signal is reported


@check(family="tool")
def probe_failed(reports: tuple[ProbeReport, ...], driver: Driver = Driver()) -> Iterator[Finding]:
    """A probe crashed, hung or failed, so the checks that need its facts cannot answer.

    Why: a library or driver that crashes or hangs when gpudoctor asks it does the same in your programs, so this is an
    error. After any other failure the remaining checks still answer.
    Exception: a missing program or library is not a failure, and neither is a probe that was left out on purpose
    (--fast). An error from NVML is a fact about the driver and belongs to the driver checks.
    Reference: https://docs.nvidia.com/deploy/xid-errors/index.html
    """
    skip_unless(any(report.probe for report in reports), "no probe was run")
    seen: set[str] = set()
    for number, report in enumerate(reports):
        name = report.probe or report.section
        if report.state in ("failed", "timed-out") and name not in seen and not _is_answer(report, driver):
            seen.add(name)
            yield _finding(number, name, report)


def _is_answer(report: ProbeReport, driver: Driver) -> bool:
    """Return whether the devices are unknown because the driver said so, rather than nothing."""
    answered = bool(driver.nvml_code or driver.nvml_error)
    return report.section == "devices" and report.state == "failed" and answered


def _finding(number: int, name: str, report: ProbeReport) -> Finding:
    detail = report.detail.strip().partition("\n")[0].strip()
    how = "timed out" if report.state == "timed-out" else "failed"
    fatal = report.state == "timed-out" or DIED in detail
    severity = Severity.ERROR if fatal and name in OF_LIBRARIES else Severity.WARNING
    summary = f"The probe {name} {how}{f': {detail}' if detail else ''}"
    fields = ("state", "detail", *(("seconds",) if report.seconds else ()))
    facts = (f"reports[{number}].{fact}" for fact in fields)
    return Finding.of(severity, name, summary, facts, Fix("repeat-probe", probe=name, fatal=fatal))
