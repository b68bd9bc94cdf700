"""`gpudoctor fix` and `gpudoctor install`."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gpudoctor.commands.completion import complete_names
from gpudoctor.commands.manual import ManualCommand
from gpudoctor.commands.options import FORMATS, environment_options, local_host, print_text
from gpudoctor.errors import EXIT_FINDINGS, GpudoctorError, UsageError
from gpudoctor.probes.host import ImageRequest, setting
from gpudoctor.reporters import terminal
from gpudoctor.untrusted import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpudoctor.fixing.plan import Plan, Step
    from gpudoctor.fixing.result import FixResult
    from gpudoctor.fixing.run import Fixer
    from gpudoctor.model import Report


def fix_options(command: Any) -> Any:
    """Add the options that `fix` and `install` share."""
    for option in (
        click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True),
        click.option("--fast", is_flag=True, help="Do not import PyTorch and CuPy when checking."),
        click.option("--script", is_flag=True, help="Print a script that does the same, and change nothing."),
        click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing."),
        click.option("--yes", is_flag=True, help="Apply the plan without asking."),
    ):
        command = option(command)
    return environment_options(command)


@click.command(cls=ManualCommand, short_help="Fix the root cause in the Python environment, and verify it.")
@click.argument("names", nargs=-1, metavar="[ID]...", shell_complete=complete_names)
@click.option("--undo", is_flag=True, help="Restore the environment as it was before the last fix.")
@click.option("--continue", "resume", is_flag=True, help="Continue the last fix after a step done by hand.")
@click.option(
    "--project", is_flag=True, help="Also change requirements, pyproject.toml, Dockerfile and compose file here."
)
@fix_options
def fix(names: tuple[str, ...], undo: bool, resume: bool, project: bool, **options: Any) -> NoReturn:
    """Fix the root cause, or the findings that are named, in the diagnosed Python environment, and verify it.

    The plan is shown first, as resolved by pip or uv. If a command fails, or the check is worse afterwards, the
    environment is restored. Whatever needs root, a driver or a restart is printed and never run.
    """
    from gpudoctor.fixing.plan import check_names, choose, services_without_gpu, steps_of
    from gpudoctor.fixing.requests import forget, remember, remembered

    with _errors_as(options["format_name"]):
        if undo and (names or resume):
            raise UsageError("--undo takes no ids, and cannot be combined with --continue")
        if undo and (options["dry_run"] or options["script"]):
            raise UsageError("--undo has no plan to show: leave out --dry-run and --script")
        run = _Run(options, names)
        if undo:
            run.undo()
        if resume:
            names = names or remembered(run.fixer.interpreter)
        check_names(names, (check.id for check in run.rules.checks()))
        report = run.check()
        python = (report.snapshot.python and report.snapshot.python.executable) or ""
        chosen = choose(report, names)
        steps = steps_of(chosen, python)
        if not steps:
            _refuse_unknown(report, names)
        if any(not step.actions for step in steps) and not run.is_dry:
            remember(run.fixer.interpreter, names)
        elif not run.is_dry:
            forget(run.fixer.interpreter)
        nothing = f"{', '.join(names)} is not found here" if names else "nothing is found that needs a fix"
        run.finish(steps, report, nothing, services_without_gpu(chosen, report) if project else None)


@click.command(cls=ManualCommand, short_help="Install PyTorch and CuPy builds that fit this machine and each other.")
@click.argument("names", nargs=-1, required=True, metavar="NAME[==VERSION]...")
@fix_options
def install(names: tuple[str, ...], **options: Any) -> NoReturn:
    """Install torch, torchvision, torchaudio, cupy or numpy, in versions that fit this machine and each other.

    Versions and builds are chosen by driver, GPU, Python and operating system, and the plan says why.
    """
    from gpudoctor.fixing.programs import Refused
    from gpudoctor.fixing.requested import requested_steps

    with _errors_as(options["format_name"]):
        run = _Run(options, names)
        report = run.check()
        run.refuse_if_another_is_active(report)
        try:
            steps = requested_steps(names, report.snapshot)
        except Refused as error:
            run.refuse(str(error))
        run.finish(steps, report, "everything that is named is installed")


def _refuse_unknown(report: Report, names: Sequence[str]) -> None:
    """Raise GpudoctorError if nothing is found only because it could not be determined."""
    if not names and report.verdict == "unknown":
        raise GpudoctorError("too little is known to fix anything: gpudoctor check says what is missing")
    skipped = {result.check_id for result in report.skipped}
    for name in (name for name in names if name in skipped):
        raise GpudoctorError(f"whether {name} is here cannot be determined: gpudoctor check -v {name} says why")


@contextmanager
def _errors_as(format_name: str) -> Iterator[None]:
    """Print an error as a result too if the format is JSON: its line on standard error stays."""
    from gpudoctor.fixing.plan import Plan
    from gpudoctor.fixing.result import FixResult, render_json

    try:
        yield
    except GpudoctorError as error:
        if format_name == "json":
            wrong_use = isinstance(error, UsageError)
            failed = FixResult(plan=Plan(steps=()), status="refused" if wrong_use else "not-fixed", why=str(error))
            print_text(render_json(failed))
        raise


class _Run:
    """One call of either command: its options, and what the fix is done with."""

    def __init__(self, options: dict[str, Any], named: Sequence[str]) -> None:
        from gpudoctor.engine.plan import configured
        from gpudoctor.fixing.run import Fixer, default_interpreter

        if options["script"] and options["format_name"] == "json":
            raise UsageError("--script prints a shell script: leave out --format json, whose plan has the commands too")
        self.options = options
        self.is_json, self.is_dry = options["format_name"] == "json", options["dry_run"] or options["script"]
        self.here = f" --python {shlex.quote(options['interpreter'])}" if options["interpreter"] else ""
        plan = configured(tuple(named), (), (), None, ImageRequest())
        self.rules, self.ignored = plan.rules, plan.ignored
        self.selected = () if named else plan.names  # a fix of what is named is verified by all checks
        machine = setting(options["interpreter"], options["timeout"], fast=options["fast"], images=plan.images)
        self.setting = replace(machine, profile=plan.profile)
        interpreter = default_interpreter(self.setting.interpreter, sys.executable)
        self.fixer: Fixer = Fixer(interpreter=interpreter, environ=os.environ, ask=self._ask, say=_note)

    def check(self) -> Report:
        """Return what the check finds now. An interrupted change is undone before."""
        self.fixer.refuse_interrupted() if self.is_dry else self.fixer.settle_interrupted()
        with terminal.progress("Looking at this machine ...", sys.stderr):
            return self._ask()

    def _ask(self) -> Report:
        from gpudoctor.engine.checkup import check_host

        return check_host(local_host(self.setting), self.selected, self.ignored, self.rules)

    def undo(self) -> NoReturn:
        """Restore the environment and the project's files, and say so."""
        from gpudoctor.fixing.plan import Plan
        from gpudoctor.fixing.result import FixResult, render_json

        undone = self.fixer.undo()
        with _written(undone.sentence):
            if self.is_json:
                plan = Plan(steps=(), edits=undone.left)
                print_text(render_json(FixResult(plan=plan, status="undone", why=undone.sentence)))
            else:
                _print(undone.sentence)
                for edit in undone.left:
                    _print(f"What the fix changed in {edit.path}:")
                    for line in edit.diff:
                        _print(f"     {line}")
        sys.exit(EXIT_FINDINGS if undone.left else 0)

    def finish(
        self, steps: Sequence[Step], report: Report, nothing: str, services: Sequence[str] | None = None
    ) -> NoReturn:
        """Plan, ask, apply, print the result, and exit with its status.

        services: of the compose file, that are to get the GPU; None if no file of the project is changed.
        """
        from gpudoctor.fixing.programs import Refused
        from gpudoctor.fixing.project_files import edits_of, unread_files
        from gpudoctor.fixing.result import FixResult
        from gpudoctor.fixing.run import ids

        with terminal.progress("Asking the installer what would change ...", sys.stderr):
            plan = self.fixer.plan(steps, report)
        if services is not None:
            folder = Path(self.setting.directory)
            for line in unread_files(services, folder) if plan.steps else ():
                _note(f"gpudoctor: {line}")
            edits = edits_of(plan.resolution, services, folder)
            by_tool = plan.resolution is not None and plan.resolution.diff  # it changes that file itself
            plan = replace(plan, edits=tuple(e for e in edits if not by_tool or e.path.name != "pyproject.toml"))
        found = ids(report, *(step.check for step in plan.steps))
        result = FixResult(plan=plan, status="planned", before=found, after=found)
        if plan.why:
            self._end(replace(result, status="refused", why=plan.why))
        if not plan.edits and (not plan.steps or (plan.resolution is not None and not plan.changes)):
            self._end(replace(result, status="fixed", why=nothing))
        if self.is_dry:
            self._end(result)
        if not plan.changes and not plan.edits:
            self._end(
                replace(
                    result, status="not-fixed", why="do the steps above yourself, because gpudoctor does not run them"
                )
            )
        self._ask_user(plan)
        try:
            done = self.fixer.apply(plan, report) if plan.changes else self.fixer.edit(plan, report)
        except Refused as error:
            done = replace(result, status="refused", why=str(error))
        self._end(done)

    def refuse(self, why: str) -> NoReturn:
        """Print a refusal before there is a plan, and exit."""
        from gpudoctor.fixing.plan import Plan
        from gpudoctor.fixing.result import FixResult

        self._end(FixResult(plan=Plan(steps=()), status="refused", why=why))

    def refuse_if_another_is_active(self, report: Report) -> None:
        """Refuse to install into gpudoctor's own environment while another one is activated, unless it is named."""
        python = report.snapshot.python
        if python is None or not python.active_environment or not python.prefix or self.here:
            return
        if os.path.realpath(python.active_environment) != os.path.realpath(python.prefix):
            self.refuse(
                f"{python.active_environment} is activated, and gpudoctor runs in {python.prefix}: name the interpreter"
                " of one of them with --python"
            )

    def _ask_user(self, plan: Plan) -> None:
        """Show the plan, and return if it is to be applied. Raises UsageError: nobody answers."""
        from gpudoctor.fixing.result import plan_lines

        if self.options["yes"]:
            return
        if self.is_json or sys.stdin is None or not sys.stdin.isatty():
            raise UsageError("nothing was changed: add --yes to apply the plan, or --dry-run to see it")
        for line in plan_lines(plan, self.here):
            _note(line)
        if not click.confirm("Apply this plan?", err=True):
            raise UsageError("nothing was changed")

    def _end(self, result: FixResult) -> NoReturn:
        with _written("" if result.status == "planned" else f"the fix ended: {result.status} {result.why}".rstrip()):
            self._show(result)
        sys.exit(result.exit_status)

    def _show(self, result: FixResult) -> None:
        from gpudoctor.fixing.result import ending, plan_lines, render_json
        from gpudoctor.fixing.script import script

        if self.is_json:
            print_text(render_json(result))
        elif self.options["script"] and result.status == "planned":
            print_text(script(result.plan, windows=sys.platform == "win32"))
        elif self.options["script"] and result.status == "fixed":  # nothing to do: a shell may run what is printed
            for line in ending(result, self.here):
                _print(f"# {line}")
        else:
            has_plan = result.status in ("planned", "not-fixed", "fixed")
            for line in plan_lines(result.plan, self.here) if has_plan else ():
                _print(line)
            if result.status == "refused":
                _note(f"gpudoctor: {result.why}")
            for line in ending(result, self.here) if result.status != "refused" else ():
                _print(line)


@contextmanager
def _written(otherwise: str) -> Iterator[None]:
    """If standard output cannot be written, say on standard error how the fix ended, and keep its exit status.

    otherwise: what to say; "" if nothing was changed: the error then ends the program.
    """
    try:
        yield
    except OSError as error:
        if not otherwise:
            raise
        _note(f"gpudoctor: the result cannot be written ({error.strerror}); {otherwise}")
        with suppress(OSError):  # Python flushes at its end, and would fail again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(text: str) -> None:
    print_text(f"{clean(text, limit=None)}\n")


def _note(text: str) -> None:
    with suppress(OSError):  # the terminal may be closed: what was begun is still undone
        click.echo(terminal.encodable(clean(text, limit=None), sys.stderr.encoding), err=True)
