"""A watched run on the terminal: the verdict, what to change, and what was seen."""

import shlex
from collections.abc import Iterator

from gpudoctor.model import Finding
from gpudoctor.reporters import run_words as words
from gpudoctor.reporters.terminal import NARROWEST, encodable
from gpudoctor.reporters.text import wrap, wrap_painted, wrap_parts
from gpudoctor.untrusted import LONGEST_FIX, clean
from gpudoctor.watching.watched import WatchedRun

_FIXES_SHOWN = 1
_SPARKLINE = 40


def render(run: WatchedRun, *, color: bool, width: int, encoding: str | None = "utf-8") -> str:
    """Return the report in lines of `width` columns. encoding: of the stream; what it cannot show is written out."""
    width = max(width, NARROWEST)
    lines = [*_headline(run, width)]
    for finding in run.findings:
        lines += _finding(finding, color, width)
    if not run.findings:
        kind, sentence = words.verdict(run)
        lines += wrap_painted(kind, f"  {clean(sentence)}", kind, color, width)
    for note in words.notes(run):
        lines += wrap(note, width, "", "  ")
    lines += seen(run, width)
    return encodable("\n".join(lines) + "\n", encoding)


def _headline(run: WatchedRun, width: int) -> list[str]:
    profile = "" if run.profile is None else f", with the profile {clean(run.profile)}"
    name = "gpudoctor run:" if run.exit_status is not None else "gpudoctor watch:"
    what = clean(shlex.join(run.command), 60) if run.command else "all GPUs"
    return wrap(f"{name} {what} {words.ended(run)}{profile}", width, "", "  ")


def _finding(finding: Finding, color: bool, width: int) -> Iterator[str]:
    severity = str(finding.severity)
    title = "".join(
        f"  {part}" for part in (clean(finding.check_id), words.speedup(finding), words.place(finding)) if part
    )
    yield from wrap_painted(severity, title, severity, color, width)
    yield from wrap(clean(finding.summary), width, "  ")
    for remedy in finding.remedies[:_FIXES_SHOWN]:
        yield from wrap(f"fix: {clean(remedy.summary, LONGEST_FIX)}", width, "  ", "       ")
        yield from (f"    {clean(command, None)}" for command in remedy.commands)  # whole, to be copied


def seen(run: WatchedRun, width: int) -> Iterator[str]:
    """Yield what was seen: steps, GPUs, the rest of the machine, and how that changed."""
    if run.run.steps is not None:
        yield from wrap_parts(words.step_parts(run.run.steps), " · ", width)
    if run.watch.samples:
        for device in run.watch.devices:
            yield from wrap_parts(words.device_parts(run, device), " · ", width)
        if parts := list(words.machine_parts(run.watch)):
            yield from wrap_parts(parts, " · ", width)
    yield from words.process_lines(run)
    for name, unit, values in words.timelines(run):
        if line := words.sparkline(values, unit, min(_SPARKLINE, width - 30)):
            yield f"{name:<9}  {line}  up to {max(values):,.1f} {unit}"
