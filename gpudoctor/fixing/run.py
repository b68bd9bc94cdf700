"""One fix from its plan to its end: apply, verify, and what the check says afterwards."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpudoctor.containers.rebuild.interrupts import Interrupts
from gpudoctor.errors import GpudoctorError, UsageError
from gpudoctor.fixing import edited_files
from gpudoctor.fixing.conda import Conda
from gpudoctor.fixing.environment import Inventory, read_inventory
from gpudoctor.fixing.installers import Installer, installer_of
from gpudoctor.fixing.pixi import PixiProject
from gpudoctor.fixing.plan import Plan, Step, make_plan, tool_of
from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.project_files import FileEdit, refuse_unwritable
from gpudoctor.fixing.projects import PoetryProject, UvProject
from gpudoctor.fixing.requests import state_file
from gpudoctor.fixing.result import FixResult, Status
from gpudoctor.fixing.store import Store
from gpudoctor.fixing.transaction import apply
from gpudoctor.model import Report, Severity
from gpudoctor.model.record import record

Ask = Callable[[], Report]
"""Runs the check: every fact is read again, by new processes."""

TOOLS = {tool.name: tool for tool in (Conda, UvProject, PoetryProject, PixiProject)}


@record
class Undone:
    """What was undone. prefix: of the environment, "" if it was not changed. left: of the edits, those still there."""

    edits: tuple[FileEdit, ...]
    left: tuple[FileEdit, ...]
    prefix: str = ""

    @property
    def sentence(self) -> str:
        """Return it as a sentence."""
        restored = [*filter(None, (self.prefix,)), *(edit.path.name for edit in self.edits if edit not in self.left)]
        said = f"{' and '.join(restored)} {'is' if len(restored) == 1 else 'are'} as before the fix" if restored else ""
        changed = [edit.path.name for edit in self.left]
        since = (
            f"{' and '.join(changed)} {'was' if len(changed) == 1 else 'were'} changed after the fix, and left alone"
        )
        return ". ".join(filter(None, (said, since if changed else "")))


@record
class Fixer:
    """What a fix needs. interpreter: of the environment. say: called with a line of progress."""

    interpreter: str
    environ: Mapping[str, str]
    ask: Ask
    say: Callable[[str], None]

    def plan(self, steps: Sequence[Step], report: Report) -> Plan:
        """Return the plan for these steps.

        Raises:
            Refused: a change of this environment was interrupted and is to be undone first.
        """
        inventory = read_inventory(self.interpreter)
        if not steps:
            return Plan(steps=())
        installer = self._installer(steps, report, inventory)
        return make_plan(steps, inventory, installer)

    def _installer(self, steps: Sequence[Step], report: Report, inventory: Inventory) -> Installer:
        tool = tool_of(steps)
        return TOOLS[tool](inventory, self.environ) if tool else installer_of(_tool(report), inventory, self.environ)

    def settle_interrupted(self) -> None:
        """Undo a change that was interrupted. Raises GpudoctorError: something still differs."""
        store = Store(read_inventory(self.interpreter).prefix)
        if store.is_interrupted():
            with store.locked(self.say):
                _check_restored(store.settle())
            self.say("An interrupted change of this environment was undone: it is as before")

    def refuse_interrupted(self) -> None:
        """Refuse to plan for an environment in which a change was interrupted. Raises Refused."""
        if Store(read_inventory(self.interpreter).prefix).is_interrupted():
            raise Refused("a change of this environment was interrupted: restore it first, with gpudoctor fix --undo")

    def apply(self, plan: Plan, before: Report) -> FixResult:
        """Apply the plan to the environment, and return the result.

        Raises:
            Refused: nothing was changed.
            GpudoctorError: the environment could not be restored as a whole; the message names what differs.
        """
        assert plan.resolution is not None, "there is something to apply"
        if sys.platform == "win32":
            raise Refused("on Windows gpudoctor changes no environment yet: gpudoctor fix --script prints what to run")
        refuse_unwritable(plan.edits)
        inventory = read_inventory(self.interpreter)
        installer = self._installer(plan.steps, before, inventory)
        store, interrupts, reports = Store(inventory.prefix), Interrupts(), list[Report]()
        useless = ""

        def is_worse() -> str:
            nonlocal useless
            reports.append(self.ask())
            new = sorted(_errors(reports[-1]) - {finding.check_id for finding in before.findings})
            if new:
                return f"the check finds something new: {', '.join(new)}"
            useless = _what_is_left(plan, reports[-1], of_changes=True)
            return useless

        with interrupts.listening(), store.locked(self.say) as lock:
            installer.lock = (lock,)
            try:
                with interrupts.allowed():
                    why, left = apply(store, installer, plan.resolution, is_worse, self.say)
            except BaseException:
                _check_restored(store.settle())
                raise
        _check_restored(left)
        after = reports[-1] if reports else None
        fixed = [step.check for step in plan.steps]
        found = FixResult(plan=plan, status="undone", why=why, before=ids(before, *fixed), after=ids(before, *fixed))
        if why or after is None:
            return replace(found, status="not-fixed") if why and why == useless else found
        try:
            self._write_edits(plan, store.identity())
        except UsageError as error:
            self.undo()
            raise Refused(f"{error}. Everything is as before") from None
        left_over = _what_is_left(plan, after)
        status: Status = "not-fixed" if left_over else "fixed"
        return replace(found, status=status, why=left_over, after=ids(after), record=str(store.record))

    def _write_edits(self, plan: Plan, of: str) -> None:
        """Change the project's files. Raises UsageError: one of them cannot be written."""
        edited_files.keep(self.interpreter, plan.edits, of)
        for edit in plan.edits:
            edit.write()

    def edit(self, plan: Plan, before: Report) -> FixResult:
        """Change the project's files only, and return what the check finds afterwards."""
        try:
            self._write_edits(plan, "")
        except UsageError as error:
            edited_files.restore(self.interpreter, plan.edits)
            raise Refused(f"{error}. Everything is as before") from None
        after, fixed = self.ask(), [step.check for step in plan.steps]
        left_over = _what_is_left(plan, after)
        return FixResult(
            plan=plan,
            status="not-fixed" if left_over else "fixed",
            why=left_over or "the project's files were changed",
            before=ids(before, *fixed),
            after=ids(after, *fixed),
            record=str(state_file(self.interpreter).parent),
        )

    def undo(self) -> Undone:
        """Restore the environment and the project's files as they were before the last change.

        Raises:
            Refused: there is nothing to undo, or it was changed since.
            GpudoctorError: something still differs.
        """
        edits = edited_files.kept(self.interpreter, "")
        if edits:  # the last change was one of files alone
            return Undone(edits=edits, left=edited_files.restore(self.interpreter, edits))
        store = Store(read_inventory(self.interpreter).prefix)
        with Interrupts().listening(), store.locked(self.say):
            if store.pending.exists():
                _check_restored(store.settle())
            else:
                edits = edited_files.kept(self.interpreter, store.identity())
                _check_restored(store.undo())
        return Undone(prefix=store.prefix, edits=edits, left=edited_files.restore(self.interpreter, edits))


def _what_is_left(plan: Plan, after: Report, *, of_changes: bool = False) -> str:
    """Return what is still found, and which of its remedies was not tried; "" if nothing is.

    of_changes: of the steps that gpudoctor runs, and only if none of them fixed anything: the change was useless.
    """
    counted = [step for step in plan.steps if step.actions or not of_changes]
    still = [step.check for step in counted if step.check in ids(after, step.check)]
    if not still or (of_changes and len(still) < len(counted)):
        return ""
    tried = {step.remedy.commands for step in plan.steps}
    others = (r for f in after.findings if f.check_id in still for r in f.remedies if r.commands not in tried)
    other = next((remedy for remedy in others if remedy.commands), None)
    next_one = f". Another way: {other.summary}: {'; '.join(other.commands)}" if other is not None else ""
    return f"{', '.join(still)} is still found{next_one}"


def ids(report: Report, *more: str) -> tuple[str, ...]:
    """Return the ids of what was found: warnings, errors, and advice of the checks that are named in addition."""
    return tuple(
        dict.fromkeys(f.check_id for f in report.findings if f.severity is not Severity.INFO or f.check_id in more)
    )


def _tool(report: Report) -> str | None:
    """Return what installs wheels in the environment."""
    return report.snapshot.python.installer if report.snapshot.python is not None else None


def _errors(report: Report) -> set[str]:
    return {finding.check_id for finding in report.findings if finding.severity is Severity.ERROR}


def _check_restored(left: Sequence[str]) -> None:
    if left:
        shown = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        raise GpudoctorError(f"the environment was restored, but differs from before in: {shown}")


def default_interpreter(named: str | None, running: str) -> str:
    """Return the interpreter whose environment is changed, with its whole path, links not resolved."""
    return os.path.abspath(named or running)
