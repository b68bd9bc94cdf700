"""`gpudoctor check`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import click

from gpudoctor.commands.completion import complete_names, complete_requirements
from gpudoctor.commands.manual import ManualCommand
from gpudoctor.commands.options import environment_options, image_options, local_host, refuse_probing
from gpudoctor.commands.reports import project_root, screen, targets, write_reports
from gpudoctor.errors import FAIL_ON, GPU_POLICIES
from gpudoctor.probes.host import setting
from gpudoctor.reporters import formats, terminal
from gpudoctor.untrusted import clean

if TYPE_CHECKING:
    from gpudoctor.probes.host import ImageRequest


@click.command(cls=ManualCommand, short_help="Diagnose this machine, or a report of another one.")
@click.argument("names", nargs=-1, metavar="[ID or FAMILY]...", shell_complete=complete_names)
@click.option("--select", "selected", multiple=True, metavar="ID|FAMILY", shell_complete=complete_names,
              help="Run these checks only; repeatable.")  # fmt: skip
@click.option("--ignore", "ignored", multiple=True, metavar="ID|FAMILY", shell_complete=complete_names,
              help="Leave these checks out; repeatable.")  # fmt: skip
@click.option("--from", "files", multiple=True, metavar="FILE", type=click.Path(),
              help="Diagnose the machine of a pasted report or a snapshot (- is standard input).")  # fmt: skip
@click.option("--format", "format_names", type=click.Choice(tuple(formats.FORMATS)), multiple=True,
              help="Format of the report; repeatable. One may go to standard output.  [default: table]")  # fmt: skip
@click.option("--output", "outputs", type=click.Path(dir_okay=False), multiple=True,
              help="Write the report to this file; repeatable, in the order of the formats.")  # fmt: skip
@click.option("--require", "required", multiple=True, metavar="EXPR", shell_complete=complete_requirements,
              help="What this machine must have, such as gpu>=1, vram>=24GiB, torch.cuda; repeatable.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(FAIL_ON),
              help="Lowest severity that makes the exit status 1.  [default: error]")  # fmt: skip
@click.option("--gpu", type=click.Choice(GPU_POLICIES),
              help="Severity of a missing GPU: an error if something here needs one (auto), always an error"
              " (required), or advice (optional).  [default: auto]")  # fmt: skip
@click.option("--fast", is_flag=True, help="Do not import PyTorch and CuPy, and compute nothing on the GPU.")
@click.option("-v", "--verbose", is_flag=True, help="Also list passed and skipped checks, all evidence"
              " and the paths of facts.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Print the verdict only.")
@image_options
@environment_options
def check(
    names: tuple[str, ...],
    selected: tuple[str, ...],
    ignored: tuple[str, ...],
    files: tuple[str, ...],
    format_names: tuple[str, ...],
    outputs: tuple[str, ...],
    required: tuple[str, ...],
    fail_on: str | None,
    gpu: str | None,
    fast: bool,
    verbose: bool,
    quiet: bool,
    interpreter: str | None,
    timeout: float,
    images: ImageRequest,
) -> NoReturn:
    """Diagnose this machine, or a report of another one. The root cause is first, with evidence and fix."""
    from gpudoctor.engine import checkup
    from gpudoctor.engine.plan import configured

    wanted = targets(format_names, outputs)
    plan = configured((*names, *selected), ignored, required, fail_on, images, gpu, plugins=not files)
    root = ""
    if files:
        refuse_probing(interpreter, fast=fast)
        from gpudoctor.readers.report import unread_texts

        report = checkup.check_files(files, plan.names, plan.ignored, plan.rules)
        for line in unread_texts(report.snapshot):
            click.echo(f"gpudoctor: {clean(line)}", err=True)
    else:
        machine = replace(setting(interpreter, timeout, fast=fast, images=plan.images), profile=plan.profile)
        root = project_root(machine, os.environ)
        host = local_host(machine)
        with terminal.progress("Looking at this machine ...", sys.stderr):
            report = checkup.check_host(host, plan.names, plan.ignored, plan.rules)
    status = checkup.exit_status(report, plan.fail_on)
    run = formats.Run(
        fail_on=plan.fail_on,
        exit_status=status,
        root=root,
        screen=screen(wanted, os.environ, verbosity=verbose - quiet),
        rules=plan.rules,
    )
    write_reports(report, wanted, run, os.environ)
    sys.exit(status)
