"""The plan as a script that a person reads, and runs: for a POSIX shell, or for PowerShell on Windows."""

from collections.abc import Iterator

from gpudoctor.fixing.plan import Plan
from gpudoctor.fixing.programs import Refused
from gpudoctor.untrusted import clean

_POSIX = (
    "#!/bin/sh",
    "# A fix planned by gpudoctor. It stops at the first error. It records nothing, so it cannot be undone.",
    "set -eu",
)
_POWERSHELL = (
    "# A fix planned by gpudoctor. It stops at the first error. It records nothing, so it cannot be undone.",
    "$ErrorActionPreference = 'Stop'",
)
_STOP = "if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }"


def script(plan: Plan, *, windows: bool) -> str:
    """Return the script. It ends with exit status 1 at the first step that gpudoctor does not run itself.

    Raises:
        Refused: pip would leave one of the two versions of a package that is installed twice.
    """
    pip = any(" -m pip " in command for step in plan.steps for command in step.remedy.commands)
    for change in plan.changes if pip else ():
        if " and " in (change.before or ""):
            raise Refused(
                f"{change.name} is installed twice ({change.before}), and the commands of a script would leave one of"
                " them: leave out --script"
            )
    lines = [*(_POWERSHELL if windows else _POSIX), *_lines(plan, windows)]
    return "\n".join(lines) + "\n"


def _lines(plan: Plan, windows: bool) -> Iterator[str]:
    for number, step in enumerate(plan.steps, 1):
        yield ""
        if step.actions and step.actions[0].tool in ("uv", "poetry", "pixi"):
            yield "# Run this script in the folder of the project."
        yield f"# {number}. {_comment(f'{step.check}: {step.remedy.summary}')}"
        for change in plan.changes_of(step) if plan.resolution is not None else ():
            before, after = change.before or "not installed", change.after or "removed"
            yield f"#    {change.name.removeprefix('conda:')}: {before} -> {after}"
        for command in step.remedy.commands:
            if step.actions:
                yield command
                if windows:
                    yield _STOP
            else:
                yield f"# by hand: {_comment(command)}"
        if not step.actions:
            yield from _stop(f"Step {number}", windows)
    if plan.edits:
        yield ""
        yield from (f"# {_comment(line)}" for edit in plan.edits for line in edit.diff)
        yield from _stop("The change of the files above", windows)
    if plan.later:
        yield ""
        yield f"# After that: gpudoctor fix --continue ({', '.join(plan.later)})"


def _stop(what: str, windows: bool) -> Iterator[str]:
    """Yield the lines that end the script at a step to be done by hand: the later steps depend on it."""
    said = f"This script does not run {what[0].lower()}{what[1:]}: do it yourself"
    yield f"[Console]::Error.WriteLine('{said}')" if windows else f"echo '{said}' >&2"
    yield "exit 1"


def _comment(text: str) -> str:
    return clean(text, limit=None)
