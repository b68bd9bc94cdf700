"""`pytest --gpudoctor`: stop a GPU suite on a machine that cannot run it, before its tests are collected.

Without the option, pytest imports this file and nothing else of gpudoctor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from gpudoctor.model import Finding, Report

A_GPU = "gpu>=1"
"""What a GPU suite requires at least: a machine without a GPU is healthy to `gpudoctor check`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpudoctor", "gpudoctor: check the GPU before the tests")
    group.addoption(
        "--gpudoctor",
        action="store_true",
        help="Stop before collection if the GPU of this machine cannot be used, and say why.",
    )
    group.addoption(
        "--gpudoctor-require",
        action="append",
        default=[],
        metavar="EXPR",
        help=f"What the suite needs in addition to {A_GPU}, such as vram>=24GiB or bf16; repeatable."
        " Implies --gpudoctor.",
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    required = config.getoption("gpudoctor_require")
    if hasattr(config, "workerinput") or not (required or config.getoption("gpudoctor")):
        return  # a worker of pytest-xdist: its controller has checked
    from gpudoctor import api
    from gpudoctor.engine.checkup import exit_status
    from gpudoctor.errors import GpudoctorError, UsageError

    try:
        report = api.check(require=(A_GPU, *required))
    except UsageError as error:
        raise pytest.UsageError(f"gpudoctor: {error}") from None
    except GpudoctorError as error:
        pytest.exit(f"gpudoctor: {error}", returncode=error.exit_status)
    status = exit_status(report, "error")
    if status:
        _stop(config, reason_of(report), status)


def _stop(config: pytest.Config, reason: str, status: int) -> NoReturn:
    """End the session. Its terminal shows the reason of an exit twice, so only the first line is given as one."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(reason)
        reason = reason.partition("\n")[0]
    pytest.exit(reason, returncode=status)


def reason_of(report: Report) -> str:
    """Return why the run cannot start, in a few lines: the root cause and the commands that fix it."""
    from gpudoctor.model import Severity
    from gpudoctor.untrusted import clean

    errors = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    if not errors:
        steps = report.triage.next_steps if report.triage is not None else ()
        lines = [line for step in steps for line in (f"next: {step.why}", f"  {clean(step.command, limit=None)}")]
        return "\n".join(["gpudoctor: verdict unknown: nothing proves that the GPU works", *lines])
    cause = next((found for found in report.findings if found.check_id == errors[0].caused_by), None)
    shown = [errors[0]] if cause is None else [cause, errors[0]]
    others = sum(finding not in shown for finding in errors)
    more = f"\n(and {others} more: gpudoctor check)" if others else ""
    return "\n".join(["gpudoctor: this machine cannot run the suite", *map(_lines, shown)]) + more


def _lines(finding: Finding) -> str:
    from gpudoctor.untrusted import clean

    lines = [f"{finding.check_id}: {clean(finding.summary)}"]
    for remedy in finding.remedies[:1]:
        lines += [f"fix: {clean(remedy.summary)}", *(f"  {clean(command, limit=None)}" for command in remedy.commands)]
    return "\n".join(lines)
