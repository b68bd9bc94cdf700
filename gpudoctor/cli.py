"""The command line: parse, call, print, exit."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gpudoctor import __version__
from gpudoctor.errors import (
    EXIT_FINDINGS,
    EXIT_HEALTHY,
    EXIT_NO_VERDICT,
    EXIT_USAGE,
    GpudoctorError,
    UsageError,
)
from gpudoctor.host import Setting
from gpudoctor.reporters import terminal

if TYPE_CHECKING:
    from gpudoctor.model import Report
    from gpudoctor.probes.isolate import Supervisor
    from gpudoctor.probes.local_host import LocalHost

FORMATS = ("table", "json")
FAIL_ON = ("error", "warning", "never")


def main(supervisor: Supervisor | None = None) -> NoReturn:
    """Run the command line; a user's mistake is one line on standard error, never a traceback.

    supervisor: for the workers of `check`, started before.
    """
    debug = "--debug" in sys.argv
    try:
        sys.exit(cli.main(prog_name="gpudoctor", standalone_mode=False, obj=supervisor))
    except click.ClickException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "gpudoctor")
        _end(f"{command}: {error.format_message()}", EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt):
        _end("gpudoctor: interrupted", EXIT_NO_VERDICT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_NO_VERDICT)
    except GpudoctorError as error:
        _end(f"gpudoctor: {error}", error.exit_status)
    except Exception as error:
        if debug:
            raise
        _end(
            f"gpudoctor failed, which is its own fault: {type(error).__name__}: {error} (see --debug)", EXIT_NO_VERDICT
        )


def _end(message: str, status: int) -> NoReturn:
    print(terminal.clean(message.replace("\n", " ")), file=sys.stderr)
    sys.exit(status)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__, prog_name="gpudoctor")
@click.pass_context
def cli(context: click.Context) -> None:
    """Why is my GPU not used, and the exact command that fixes it."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _environment_options(command: Any) -> Any:
    """Add the options that say which environment is looked at, and for how long."""
    command = click.option(
        "--python",
        "interpreter",
        metavar="PATH",
        help="Diagnose the environment of this interpreter instead of my own.",
    )(command)
    command = click.option(
        "--timeout", type=click.FloatRange(min=0.1), default=30.0, show_default=True, help="Seconds for each probe."
    )(command)
    return click.option(
        "--debug", is_flag=True, expose_value=False, help="Show the traceback of a fault of gpudoctor itself."
    )(command)


@cli.command()
@click.argument("names", nargs=-1, metavar="[ID or FAMILY]...")
@click.option("--select", "selected", multiple=True, metavar="ID|FAMILY", help="Run these checks only; repeatable.")
@click.option("--ignore", "ignored", multiple=True, metavar="ID|FAMILY", help="Leave these checks out; repeatable.")
@click.option("--from", "files", multiple=True, metavar="FILE",
              help="Diagnose the machine of a pasted report or a snapshot (- is standard input).")  # fmt: skip
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False), help="Write the report to this file.")
@click.option("--fail-on", type=click.Choice(FAIL_ON), default="error", show_default=True,
              help="Lowest severity that makes the exit status 1.")  # fmt: skip
@click.option("--fast", is_flag=True, help="Import neither torch nor cupy.")
@_environment_options
def check(
    names: tuple[str, ...],
    selected: tuple[str, ...],
    ignored: tuple[str, ...],
    files: tuple[str, ...],
    format_name: str,
    output: str | None,
    fail_on: str,
    fast: bool,
    interpreter: str | None,
    timeout: float,
) -> NoReturn:
    """Diagnose this machine, or a report of another: the root cause first, with evidence and the command that fixes it.

    Exit status: 0 nothing at or above --fail-on; 1 findings at or above it; 2 the command line is wrong; 3 no verdict.
    """
    if files:
        _refuse_probing(interpreter, fast=fast)
        from gpudoctor import checkup
        from gpudoctor.readers.report import unread_texts

        report = checkup.check_files(files, (*names, *selected), ignored)
        for name in unread_texts(report.snapshot):
            click.echo(f"gpudoctor: {terminal.clean(name)}: nothing in it is known", err=True)
    else:
        host = _local_host(_setting(interpreter, timeout, fast=fast), click.get_current_context().obj)
        from gpudoctor import checkup  # while the process that asks is starting: it takes as long

        with terminal.progress("Looking at this machine ...", sys.stderr):
            report = checkup.check_host(host, (*names, *selected), ignored)
    _write(_render(report, format_name, output), output)
    sys.exit(checkup.exit_status(report, fail_on))


def _refuse_probing(interpreter: str | None, *, fast: bool) -> None:
    """Refuse options that say how this machine is probed where a report is read instead.

    Raises:
        UsageError: there is one.
    """
    option = "--python" if interpreter is not None else "--fast" if fast else None
    if option is not None:
        raise UsageError(f"{option} is for probing this machine: with --from nothing is probed")


def _local_host(setting: Setting, supervisor: Supervisor | None = None) -> LocalHost:
    from gpudoctor.probes.local_host import LocalHost  # not needed for a report

    return LocalHost(setting, supervisor)


def _setting(interpreter: str | None, timeout: float, *, fast: bool) -> Setting:
    try:
        directory = os.getcwd()
    except OSError:
        raise UsageError("the working directory does not exist any more: change to one that does") from None
    return Setting(
        environ=dict(os.environ),
        directory=directory,
        home=os.path.expanduser("~"),
        host_name=os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", ""),
        interpreter=None if interpreter is None else _executable(interpreter),
        fast=fast,
        timeout_seconds=timeout,
    )


def _executable(interpreter: str) -> str:
    """Return the path of the interpreter named, links not resolved: a link is what makes a virtual environment.

    Raises:
        UsageError: there is no such program.
    """
    import shutil

    found = shutil.which(interpreter)
    if found is None:
        raise UsageError(f"--python: {interpreter} is no program that can be run")
    return os.path.abspath(found)


def _render(report: Report, format_name: str, output: str | None) -> str:
    from gpudoctor.reporters import json_report, table

    if format_name == "json":
        return json_report.render(report)
    color = output is None and terminal.use_color(sys.stdout, os.environ)
    return table.render(report, color=color, width=terminal.width(os.environ, sys.stdout))


def _write(text: str, output: str | None) -> None:
    if output is None:
        _print(text)
    else:
        from pathlib import Path

        from gpudoctor.files import write_whole

        write_whole(Path(output), text)


def _print(text: str) -> None:
    """Write `text` to standard output, in what its encoding can say."""
    sys.stdout.write(terminal.encodable(text, sys.stdout.encoding))
    sys.stdout.flush()


@cli.command("list")
@click.argument("names", nargs=-1, metavar="[ID or FAMILY]...")
def list_checks(names: tuple[str, ...]) -> None:
    """List the checks: id, family and the problem that each one finds."""
    from gpudoctor.registry import load_checks
    from gpudoctor.reporters import catalog
    from gpudoctor.selection import select

    _print(catalog.render_list(select(load_checks(), names), width=terminal.width(os.environ, sys.stdout)))


@cli.command()
@click.argument("name", metavar="ID")
def explain(name: str) -> None:
    """Explain one check: what it finds, why it matters, what passes on purpose, the source."""
    from gpudoctor.registry import load_checks
    from gpudoctor.reporters import catalog
    from gpudoctor.selection import named

    page = next((check for check in named(load_checks(), name) if check.id == name), None)
    if page is None:
        raise UsageError(f"explain: {name!r} is a family: gpudoctor list {name} shows its checks")
    _print(catalog.render_page(page, width=terminal.width(os.environ, sys.stdout)))


@cli.command()
@click.option("--from", "files", multiple=True, metavar="FILE",
              help="Take the facts of a pasted report instead of this machine's (- is standard input).")  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False), help="Write the snapshot to this file.")
@click.option("--fast", is_flag=True, help="Import neither torch nor cupy.")
@_environment_options
def snapshot(files: tuple[str, ...], output: str | None, fast: bool, interpreter: str | None, timeout: float) -> None:
    """Write the facts about this machine as JSON, for `check --from` and `diff`.

    Names of people and hosts, home folders, UUIDs and tokens are masked: it can be posted in public.
    """
    from gpudoctor.reporters import snapshot_json

    if files:
        _refuse_probing(interpreter, fast=fast)
        from gpudoctor.readers.report import read_files

        taken = read_files(files)
    else:
        from gpudoctor.probes.snapshot import take_snapshot

        with terminal.progress("Looking at this machine ...", sys.stderr):
            taken = take_snapshot(_local_host(_setting(interpreter, timeout, fast=fast)))
    _write(snapshot_json.render(taken), output)


@cli.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False), help="Write the comparison to this file.")
def diff(before: str, after: str, format_name: str, output: str | None) -> NoReturn:
    """Say what differs between two snapshots or pasted reports, and which findings come and go.

    Readings of the moment (temperature, load, memory in use) are left out. Exit status: 0 nothing differs; 1 something
    does; 2 a file cannot be read.
    """
    from gpudoctor.checkup import check_files
    from gpudoctor.comparison import compare
    from gpudoctor.reporters import comparison

    difference = compare(check_files([before]), check_files([after]))
    if format_name == "json":
        text = comparison.render_json(difference)
    else:
        color = output is None and terminal.use_color(sys.stdout, os.environ)
        text = comparison.render_table(difference, color=color, width=terminal.width(os.environ, sys.stdout))
    _write(text, output)
    sys.exit(EXIT_FINDINGS if difference.differs else EXIT_HEALTHY)


@cli.command()
@click.argument("folder", type=click.Path(file_okay=False))
@_environment_options
def record(folder: str, interpreter: str | None, timeout: float) -> None:
    """Keep what the probes read, masked, in FOLDER: attach it to a report of a bug, and it becomes a test."""
    from pathlib import Path

    from gpudoctor import recording

    with terminal.progress("Recording this machine ...", sys.stderr):
        recording.record(_local_host(_setting(interpreter, timeout, fast=False)), Path(folder))
    click.echo(f"Recorded this machine in {folder}. Look through it before you publish it.", err=True)
