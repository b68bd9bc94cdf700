"""Probes that brought no answer."""

from collections.abc import Iterator

from gpudoctor.model import Driver, Finding, ProbeReport, Python, Remedy, Severity
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies import python_command

# The probes that ask a library or the driver: what hangs or crashes there does so in every program.
CODE = {
    "torch-runtime": "import torch; print(torch.cuda.is_available())",
    "cupy-runtime": "import cupy; print(cupy.ones(2).sum())",
    "cuda-driver": "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))",
}
COMMANDS = {"nvml": "nvidia-smi"}
DIED = "killed by "  # how a death by signal is reported


@check(family="tool")
def probe_failed(
    reports: tuple[ProbeReport, ...], python: Python | None = None, driver: Driver | None = None
) -> Iterator[Finding]:
    """A probe crashed, hung or failed, so the checks that need its facts cannot answer.

    Why: a library or driver that crashes or hangs when gpudoctor asks it does the same in your programs: then this is
    an error. Any other failure leaves the other checks with their answers.
    Exception: what is not there is no failure, and a probe that was left out on purpose (--fast) is none either. An
    error that NVML answers with is a fact about the driver, for the checks of the driver.
    Reference: https://docs.nvidia.com/deploy/xid-errors/index.html
    """
    skip_unless(any(report.probe for report in reports), "no probe was run")
    seen: set[str] = set()
    for number, report in enumerate(reports):
        name = report.probe or report.section
        if report.state in ("failed", "timed-out") and name not in seen and not _is_answer(report, driver):
            seen.add(name)
            yield _finding(number, name, report, python)


def _is_answer(report: ProbeReport, driver: Driver | None) -> bool:
    """Tell whether the devices are unknown because the driver said so, rather than nothing."""
    answered = driver is not None and bool(driver.nvml_code or driver.nvml_error)
    return report.section == "devices" and report.state == "failed" and answered


def _finding(number: int, name: str, report: ProbeReport, python: Python | None) -> Finding:
    detail = report.detail.strip().partition("\n")[0].strip()
    how = "timed out" if report.state == "timed-out" else "failed"
    fatal = report.state == "timed-out" or DIED in detail
    return Finding(
        severity=Severity.ERROR if fatal and name in (*CODE, *COMMANDS) else Severity.WARNING,
        summary=f"The probe {name} {how}{f': {detail}' if detail else ''}",
        subject=name,
        facts=tuple(f"reports[{number}].{fact}" for fact in ("state", "detail")),
        remedies=(_remedy(name, fatal, python),),
    )


def _remedy(name: str, fatal: bool, python: Python | None) -> Remedy:
    if name in CODE:
        command = python_command(python, "-X", "faulthandler", "-c", _for_platform(CODE[name], python))
    elif name in COMMANDS:
        command = COMMANDS[name]
    else:
        return Remedy(
            summary="Run gpudoctor again; if the probe fails again, report it with what gpudoctor record keeps"
        )
    summary = "See the same fault without gpudoctor, and what the library says"
    if fatal:
        summary += "; if that hangs or crashes too, look for Xid errors in the kernel log, and reboot"
    return Remedy(summary=summary, commands=(command,))


def _for_platform(code: str, python: Python | None) -> str:
    windows = python is not None and (python.platform_tag or "").startswith("win")
    return code.replace("libcuda.so.1", "nvcuda.dll") if windows else code
