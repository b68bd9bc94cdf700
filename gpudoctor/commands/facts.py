"""`gpudoctor snapshot`, `gpudoctor diff` and `gpudoctor record`: facts, saved and compared."""

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from gpudoctor.commands.manual import ManualCommand
from gpudoctor.commands.options import FORMATS, environment_options, local_host, refuse_probing, write
from gpudoctor.errors import EXIT_FINDINGS, EXIT_HEALTHY, UsageError
from gpudoctor.probes.host import setting
from gpudoctor.reporters import terminal
from gpudoctor.untrusted import clean


@click.command(cls=ManualCommand, short_help="Write the facts about this machine as JSON.")
@click.option("--from", "files", multiple=True, metavar="FILE", type=click.Path(),
              help="Take the facts of a pasted report instead of this machine's (- is standard input).")  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False), help="Write the snapshot to this file.")
@click.option("--fast", is_flag=True, help="Do not import PyTorch and CuPy.")
@environment_options
def snapshot(files: tuple[str, ...], output: str | None, fast: bool, interpreter: str | None, timeout: float) -> None:
    """Write the facts about this machine as JSON, for `check --from` and `diff`.

    Names of people and hosts, home folders, UUIDs and tokens are masked, so it can be posted in public.
    """
    from gpudoctor.reporters import json_report

    if files:
        refuse_probing(interpreter, fast=fast)
        from gpudoctor.readers.report import read_files

        taken = read_files(files)
    else:
        from gpudoctor.probes.snapshot import take_snapshot

        with terminal.progress("Looking at this machine ...", sys.stderr):
            taken = take_snapshot(local_host(setting(interpreter, timeout, fast=fast)))
    write(json_report.render_snapshot(taken), output)


@click.command(cls=ManualCommand, short_help="Compare two snapshots, pasted reports, or runs.")
@click.argument("before", metavar="BEFORE", type=click.Path())
@click.argument("after", metavar="AFTER", type=click.Path())
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False), help="Write the comparison to this file.")
def diff(before: str, after: str, format_name: str, output: str | None) -> NoReturn:
    """Show what differs between two snapshots or pasted reports: new, fixed and remaining problems, changed facts.

    Momentary values (temperature, load, memory in use) are not compared. For two JSON reports of `gpudoctor run`, it
    shows what the change between them gained.
    """
    from gpudoctor.reporters import run_comparison

    def run_report(file: str) -> Any:
        try:
            return run_comparison.load(_content(file))
        except ValueError as error:
            raise UsageError(clean(f"{file}: {error}")) from None

    runs = [run_report(file) for file in (before, after)]
    if runs[0] is not None and runs[1] is not None:
        gain = run_comparison.compare(runs[0], runs[1])
        width = terminal.width(os.environ, sys.stdout)
        is_json = format_name == "json"
        write(run_comparison.render_json(gain) if is_json else run_comparison.render_table(gain, width), output)
        sys.exit(EXIT_FINDINGS if gain.differs else EXIT_HEALTHY)
    from gpudoctor.engine.checkup import check_files
    from gpudoctor.readers.report import unread_texts
    from gpudoctor.reporters import comparison
    from gpudoctor.snapshots.comparison import compare

    reports = [check_files([file]) for file in (before, after)]
    unread = [line for report in reports for line in unread_texts(report.snapshot)]
    if unread:
        raise UsageError(clean(unread[0]))
    difference = compare(*reports)
    if format_name == "json":
        text = comparison.render_json(difference)
    else:
        color = output is None and terminal.use_color(sys.stdout, os.environ)
        text = comparison.render_table(difference, color=color, width=terminal.width(os.environ, sys.stdout))
    write(text, output)
    sys.exit(EXIT_FINDINGS if difference.differs else EXIT_HEALTHY)


def _content(file: str) -> bytes:
    """Return what a regular file contains; nothing of a pipe, and of one that cannot be read, which is said later."""
    try:
        return Path(file).read_bytes() if os.path.isfile(file) else b""
    except (OSError, ValueError):
        return b""


@click.command(cls=ManualCommand, short_help="Save probe output for a bug report.")
@click.argument("folder", type=click.Path(file_okay=False))
@environment_options
def record(folder: str, interpreter: str | None, timeout: float) -> None:
    """Save probe output, masked, in FOLDER. Attach it to a bug report: it becomes a test."""
    from gpudoctor.snapshots import recording

    with terminal.progress("Recording this machine ...", sys.stderr):
        recording.record(local_host(setting(interpreter, timeout, fast=False)), Path(folder))
    click.echo(f"Recorded this machine in {clean(folder)}. Look through it before you publish it.", err=True)
