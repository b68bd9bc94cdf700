"""`gpudoctor run`."""

import functools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from gpudoctor.commands.manual import ManualCommand
from gpudoctor.commands.options import debug_option, write
from gpudoctor.errors import GpudoctorError
from gpudoctor.model.profile import FILE_NAME
from gpudoctor.privacy import mask_arguments
from gpudoctor.reporters import terminal
from gpudoctor.untrusted import clean

if TYPE_CHECKING:
    from gpudoctor.watching.metrics import MetricsServer
    from gpudoctor.watching.watched import WatchedRun

FORMATS = ("table", "json", "html")


def metrics_options(command: Any) -> Any:
    """Add the options of the metrics; `command` gets them as `metrics`: host and port, None for no metrics."""

    @functools.wraps(command)
    def with_metrics(metrics_host: str, metrics_port: int | None, **values: Any) -> Any:
        return command(metrics=(metrics_host, metrics_port), **values)

    wrapped: Any = with_metrics
    port = click.IntRange(0, 65535)
    for option in (
        click.option(
            "--metrics-port", type=port, metavar="N", help="Serve OpenMetrics at this port; 0 chooses a free one."
        ),
        click.option(
            "--metrics-host",
            metavar="ADDRESS",
            default="127.0.0.1",
            show_default=True,
            help="Address for --metrics-port.",
        ),
    ):
        wrapped = option(wrapped)
    return wrapped


def metrics_server(metrics: tuple[str, int | None]) -> "MetricsServer | None":
    """Return the server of the metrics, which listens; None if nobody asked for them."""
    host, port = metrics
    if port is None:
        return None
    from gpudoctor.watching.metrics import MetricsServer

    server = MetricsServer(host, port)
    click.echo(f"Metrics: {server.address}", err=True)
    return server


def serve_metrics(server: "MetricsServer | None", current: Callable[[], "WatchedRun"]) -> None:
    """Let the server, if there is one, answer with what `current` returns."""
    if server is not None:
        from gpudoctor.reporters import run_metrics

        server.serve(lambda: run_metrics.render(current()))


@click.command(
    cls=ManualCommand,
    short_help="Run a program with the env profile, and report what limited the GPU.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND ...")
@click.option("--profile", metavar="FILE", help=f"Add the variables of this env profile.  [default: {FILE_NAME} here]")
@click.option("--every", metavar="SECONDS", type=click.FloatRange(min=0.05, max=3600), default=1.0, show_default=True,
              help="Seconds between two samples.")  # fmt: skip
@click.option("--no-hook", is_flag=True, help="Do not measure inside Python programs: watch from outside only.")
@metrics_options
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False),
              help="Write the report to this file instead of standard error.")  # fmt: skip
@debug_option
def run(
    command: tuple[str, ...],
    profile: str | None,
    every: float,
    no_hook: bool,
    metrics: tuple[str, int | None],
    format_name: str,
    output: str | None,
) -> NoReturn:
    """Run a program with the env profile, watch the GPU, and report what limited it.

    The program keeps its own input and output. The profile's variables override the environment's. In a Python program
    that uses PyTorch, the steps are measured too, and the report names lines of the program.
    """
    from gpudoctor.engine.run_findings import findings_of
    from gpudoctor.watching.inside import Inside, processes_of
    from gpudoctor.watching.program import Program
    from gpudoctor.watching.samples import Watch
    from gpudoctor.watching.watched import WatchedRun, run_of
    from gpudoctor.watching.watcher import Watcher

    if profile is None and os.path.isfile(FILE_NAME):
        profile = FILE_NAME
    variables = {} if profile is None else _variables(profile)
    if output is not None:
        from gpudoctor.files import check_writable

        check_writable(Path(output))
    server = metrics_server(metrics)
    inside = None if no_hook else Inside({**os.environ, **variables})
    try:
        program = Program(command, {**variables, **(inside.variables if inside else {})})
        begun = time.monotonic()
        watcher = Watcher(program.pid, every)

        def watched(watch: Watch, status: int | None) -> WatchedRun:
            seen = inside.read() if inside else []
            facts = run_of(watch, seen, inside="--no-hook" if no_hook else "", exit_status=status)
            findings, crashed = findings_of(facts)
            return WatchedRun(
                command=mask_arguments(command),
                exit_status=status,
                elapsed_seconds=time.monotonic() - begun,
                every_seconds=every,
                profile=profile,
                watch=watch,
                run=facts,
                processes=tuple(processes_of(seen)),
                findings=findings,
                crashed=crashed,
            )

        serve_metrics(server, lambda: watched(watcher.now(), None))
        status = program.wait()
        report = watched(watcher.end(), status)
    finally:
        if server:
            server.end()
        if inside:
            inside.remove()
    _report(report, format_name, output)
    sys.exit(status)


def _variables(file: str) -> dict[str, str]:
    from gpudoctor.parsers.profile_variables import all_variables
    from gpudoctor.profiles.env_file import read_profile
    from gpudoctor.trust import refuse_if_writable_by_others

    if os.path.exists(file):
        refuse_if_writable_by_others(file)  # its variables become the program's
    return all_variables(read_profile(Path(file)))


def _report(watched: "WatchedRun", format_name: str, output: str | None) -> None:
    """Write the report. A failure is printed, and does not change the program's exit status."""
    text = render_run(watched, format_name, output, sys.stderr)
    try:
        if output is None:
            sys.stderr.write(text)
            sys.stderr.flush()
        else:
            write(text, output)
    except GpudoctorError as error:
        click.echo(clean(f"gpudoctor: {error}"), err=True)
    except OSError:  # nobody reads standard error any longer
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def render_run(watched: "WatchedRun", format_name: str, output: str | None, stream: TextIO) -> str:
    """Return the report in a format. stream: where it goes if it goes to no file."""
    from gpudoctor.reporters import run_html, run_json, run_table

    if format_name == "json":
        return run_json.render(watched)
    if format_name == "html":
        return run_html.render(watched)
    color = output is None and terminal.use_color(stream, os.environ)
    encoding = "utf-8" if output is not None else stream.encoding
    return run_table.render(watched, color=color, width=terminal.width(os.environ, stream), encoding=encoding)
