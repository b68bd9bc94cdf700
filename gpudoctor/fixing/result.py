"""How a fix ended, for a person and as JSON."""

import json
from collections.abc import Iterator
from typing import Any, Literal

from gpudoctor.errors import EXIT_FINDINGS, EXIT_HEALTHY, EXIT_USAGE
from gpudoctor.fixing.plan import Plan, Step
from gpudoctor.fixing.project_files import FileEdit
from gpudoctor.fixing.sizes import in_words
from gpudoctor.model.record import record

SCHEMA = "gpudoctor/fix/1"
Status = Literal["planned", "fixed", "not-fixed", "undone", "refused"]
_EXIT = {"planned": EXIT_HEALTHY, "fixed": EXIT_HEALTHY, "not-fixed": EXIT_FINDINGS, "undone": EXIT_FINDINGS}


@record
class FixResult:
    """The result of a fix. before, after: ids of the findings. record: the folder that undo reads."""

    plan: Plan
    status: Status
    why: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    record: str | None = None

    @property
    def exit_status(self) -> int:
        """Return the exit status of the command."""
        return _EXIT.get(self.status, EXIT_USAGE)


def render_json(result: FixResult) -> str:
    """Return the result as JSON."""
    content = {
        "schema": SCHEMA,
        "plan": [
            *(_step(result.plan, step) for step in result.plan.steps),
            *(_edit(edit) for edit in result.plan.edits),
        ],
        "status": result.status,
        "why": result.why,
        "before": result.before,
        "after": result.after,
        "record": result.record,
    }
    return json.dumps(content, indent=1) + "\n"


def _step(plan: Plan, step: Step) -> dict[str, Any]:
    diff = {"diff": plan.resolution.diff} if plan.resolution is not None and plan.resolution.diff else {}
    return {
        "check": step.check,
        "summary": step.remedy.summary,
        "commands": step.remedy.commands,
        "kind": step.kind,
        "changes": [
            {"name": c.name.removeprefix("conda:"), "from": c.before, "to": c.after, "download_bytes": c.size_bytes}
            for c in plan.changes_of(step)
        ],
        **diff,
    }


def _edit(edit: FileEdit) -> dict[str, Any]:
    summary = f"Change {edit.path.name}"
    return {"check": "", "summary": summary, "commands": [], "kind": "project", "changes": [], "diff": edit.diff}


def plan_lines(plan: Plan, here: str = "") -> Iterator[str]:
    """Yield the plan for a person. here: the option that names the environment, as this call was given it."""
    for number, step in enumerate(plan.steps, 1):
        yield f"{number}. {f'{step.check}: ' if step.check else ''}{step.remedy.summary}"
        if not step.actions:
            end = ":" if step.remedy.commands else "."
            yield f"   gpudoctor does not run this, because it {_NOT_RUN[step.kind]}{end}"
        yield from (f"     {command}" for command in step.remedy.commands)
        changes = [*plan.changes_of(step)] if plan.resolution is not None else []
        names = [change.name.removeprefix("conda:") for change in changes]
        width = max(map(len, names), default=0)
        for name, change in zip(names, changes, strict=True):
            before, after = change.before or "not installed", change.after or "removed"
            text = f"{before} (reinstalled)" if before == after else f"{before} -> {after}"
            size = f" ({in_words(change.size_bytes)} to download)" if change.size_bytes is not None else ""
            yield f"       {name:{width}}  {text}{size}"
    if plan.resolution is not None and plan.resolution.diff:
        yield f"Change {plan.resolution.diff[0].removeprefix('--- a/')} and the lock file:"
        yield from (f"     {line}" for line in plan.resolution.diff)
    for edit in plan.edits:
        yield f"Change {edit.path.name}:"
        yield from (f"     {line}" for line in edit.diff)
    if plan.later:
        yield f"After that: gpudoctor fix --continue{here} ({', '.join(plan.later)})"
    elif any(step.kind == "system" for step in plan.steps):
        yield f"After that: gpudoctor fix --continue{here}"


_NOT_RUN = {"system": "needs root, a restart, or your decision", "project": "changes the project's lock file"}


def ending(result: FixResult, here: str = "") -> Iterator[str]:
    """Yield how it ended, for a person. here: the option that names the environment, as this call was given it."""
    undo = f"To undo it: gpudoctor fix --undo{here}"
    if result.status == "planned":
        yield "Nothing was changed."
    elif result.status == "fixed" and result.record is None:
        yield f"Nothing to do: {result.why}."
    elif result.status == "undone":
        yield f"Undone, because {result.why}. The environment is as before."
    elif result.status == "fixed":
        yield f"Fixed and verified. {undo}"
    else:
        restored = " The environment is as before." if result.plan.changes else ""
        yield f"Not fixed: {result.why}." + (f" {undo}" if result.record else restored)
    planned = {step.check for step in result.plan.steps}
    others = [name for name in result.after if name not in planned] if result.record is not None else []
    if others:
        yield f"Still found: {', '.join(others)}. To go on: gpudoctor fix{here}"
