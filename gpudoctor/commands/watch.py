"""`gpudoctor watch`."""

import os
import shlex
import signal
import sys
import time
from contextlib import suppress

import click

from gpudoctor.commands.manual import ManualCommand
from gpudoctor.commands.options import debug_option, write
from gpudoctor.commands.run import FORMATS, metrics_options, metrics_server, render_run, serve_metrics
from gpudoctor.errors import UsageError
from gpudoctor.privacy import mask_arguments
from gpudoctor.untrusted import clean

_CLEAR = "\x1b[H\x1b[2J"


@click.command(
    cls=ManualCommand,
    short_help="Show live what limits the GPU for a program that already runs.",
    context_settings={"allow_extra_args": True},
)
@click.option("--pid", metavar="N", type=click.IntRange(min=1), help="The program's process; its children count too.")
@click.option("--every", metavar="SECONDS", type=click.FloatRange(min=0.05, max=3600), default=1.0, show_default=True,
              help="Seconds between two samples.")  # fmt: skip
@click.option(
    "--seconds", metavar="SECONDS", type=click.FloatRange(min=0.1), help="Stop after this long.  [default: Ctrl-C]"
)
@metrics_options
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False), help="Write the report to this file at the end.")
@debug_option
def watch(
    pid: int | None,
    every: float,
    seconds: float | None,
    metrics: tuple[str, int | None],
    format_name: str,
    output: str | None,
) -> None:
    """Show live what limits the GPU, until the program ends or Ctrl-C.

    The program is watched from outside, through the driver's values and its processes. Without --pid, only the GPUs are
    watched. In a terminal, the display is updated with each sample. At the end it prints the report of `gpudoctor run`.
    """
    from gpudoctor.engine.run_findings import findings_of
    from gpudoctor.watching.watched import WatchedRun, run_of
    from gpudoctor.watching.watcher import Watcher

    extra = click.get_current_context().args
    if extra:
        started = clean(shlex.join(extra))
        raise UsageError(
            f"watch does not start a program: use gpudoctor run -- {started}, or --pid N if it already runs"
        )
    if pid is not None and not _is_running(pid):
        raise UsageError(f"--pid: no process {pid}")
    server = metrics_server(metrics)
    command = _command(pid)
    no_steps = "without --pid, only the GPUs are" if pid is None else "the program was already running"
    begun = time.monotonic()
    watcher = Watcher(pid, every)

    def current(*, last: bool = False) -> WatchedRun:
        seen = watcher.end() if last else watcher.now()
        facts = run_of(seen, inside=no_steps)
        findings, crashed = findings_of(facts) if pid is not None else ((), ())
        elapsed = time.monotonic() - begun
        return WatchedRun(command=command, exit_status=None, elapsed_seconds=elapsed, every_seconds=every, watch=seen,
                          run=facts, findings=findings, crashed=crashed)  # fmt: skip

    is_live = format_name == "table" and output is None and sys.stdout.isatty()
    with suppress(KeyboardInterrupt):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that `timeout 60` ends with the report too
        serve_metrics(server, current)
        while (pid is None or _is_running(pid)) and (seconds is None or time.monotonic() - begun < seconds):
            time.sleep(min(every, 0.5) if seconds is None else min(every, 0.5, seconds))
            if is_live:
                sys.stdout.write(_CLEAR + render_run(current(), "table", None, sys.stdout))
                sys.stdout.flush()
            if watcher.has_ended:
                break
    if server is not None:
        server.end()
    text = render_run(current(last=True), format_name, output, sys.stdout)
    if is_live:
        sys.stdout.write(_CLEAR)
    write(text, output)


def _command(pid: int | None) -> tuple[str, ...]:
    """Return the command line of a process, without secrets; its number if that is unknown."""
    if pid is None:
        return ()
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = os.fsdecode(file.read()).rstrip("\0").split("\0")
    except OSError:
        words = [""]
    return mask_arguments(words) if words[0] else (f"process {pid}",)


def _is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        if os.path.isdir("/proc/self"):
            return False
    if os.name == "nt":  # signal 0 would end it
        return True
    try:
        os.kill(pid, 0)
    except OSError as error:  # it may be somebody else's
        return isinstance(error, PermissionError)
    return True
