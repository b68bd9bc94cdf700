"""One run: ask a machine, check what it answers, and say how the run ends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpudoctor.errors import EXIT_FINDINGS, EXIT_HEALTHY, EXIT_NO_VERDICT
from gpudoctor.host import Host
from gpudoctor.model import Report, Severity
from gpudoctor.registry import Check, load_checks
from gpudoctor.runner import run_checks
from gpudoctor.selection import named, select


def check_host(host: Host, names: Iterable[str] = (), ignored: Iterable[str] = ()) -> Report:
    """Return the report on `host`.

    names: ids or families of the checks to run, all of them where there is none. ignored: those to leave out.

    Raises:
        UsageError: a name is neither an id nor a family.
    """
    began = time.monotonic()
    report = _check_some(host, tuple(names), tuple(ignored)) if names or ignored else _check_all(host)
    return replace(report, duration_s=round(time.monotonic() - began, 3))


def check_files(files: Sequence[str], names: Iterable[str] = (), ignored: Iterable[str] = ()) -> Report:
    """Return the report on the machine that the texts in `files` tell of; "-" is standard input.

    Raises:
        UsageError: a name is neither an id nor a family, or a file holds no text that can be read.
    """
    from gpudoctor.readers.report import read_files

    began = time.monotonic()
    checks = load_checks()
    chosen = select(checks, tuple(names))
    report = run_checks(chosen, read_files(files), _left_out(checks, ignored))
    return replace(report, duration_s=round(time.monotonic() - began, 3))


def _check_all(host: Host) -> Report:
    """Ask the machine first, and load the checks while it answers: both take a while."""
    from gpudoctor.probes.snapshot import begin_snapshot

    wait = begin_snapshot(host)
    checks = load_checks()
    return run_checks(checks, wait())


def _check_some(host: Host, names: tuple[str, ...], ignored: tuple[str, ...]) -> Report:
    """Load the checks first, and ask only what they need."""
    from gpudoctor.probes.snapshot import begin_snapshot

    checks = load_checks()
    chosen = select(checks, names)
    left_out = _left_out(checks, ignored)
    wait = begin_snapshot(host, _sections(check for check in chosen if check.id not in left_out))
    return run_checks(chosen, wait(), left_out)


def _left_out(checks: Sequence[Check], ignored: Iterable[str]) -> dict[str, str]:
    """Return the checks that are not run, and why."""
    return {check.id: "ignored on the command line" for name in ignored for check in named(checks, name)}


def _sections(checks: Iterable[Check]) -> set[str]:
    return {section for check in checks for section in (*check.sections, *check.optional)}


def exit_status(report: Report, fail_on: str) -> int:
    """Return the exit status of a run whose user takes findings from `fail_on` on ("error", "warning") for a failure.

    fail_on: "never" takes none for it.
    """
    if report.verdict is None:
        return EXIT_NO_VERDICT
    failed = fail_on != "never" and report.findings and report.severity >= Severity[fail_on.upper()]
    return EXIT_FINDINGS if failed else EXIT_HEALTHY
