"""The command line: which command it is, and how a run ends. What the commands do is in commands/."""

import errno
import itertools
import os
import re
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click

from gpudoctor import __version__
from gpudoctor.commands.manual import ManualGroup
from gpudoctor.errors import EXIT_NO_VERDICT, EXIT_USAGE, GpudoctorError, UsageError, WorkloadError
from gpudoctor.privacy import mask_pasted
from gpudoctor.untrusted import clean

COMMANDS = {
    "check": "check.check",
    "fix": "fix.fix",
    "install": "fix.install",
    "tune": "tune.tune",
    "profile": "profile.profile",
    "rebuild": "rebuild.rebuild",
    "run": "run.run",
    "watch": "watch.watch",
    "snapshot": "facts.snapshot",
    "diff": "facts.diff",
    "record": "facts.record",
    "list": "catalog.list_checks",
    "explain": "catalog.explain",
    "init": "setup.init",
    "completion": "setup.completion",
}
"""Each command, and where it is in gpudoctor.commands: only the module of the requested one is loaded."""


_OWN = {"-h", "--help", "--version"}  # options of gpudoctor itself
_FLAGS = {"--no-color", "-v", "--verbose", "-q", "--quiet"}  # of commands, and taken in front of them too

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""The errors with which a full disk or a failing device answers a write."""

_WHAT_ELSE = """
What else there is:
  gpudoctor -v           list every check with its result
  gpudoctor explain ID   describe one check
  gpudoctor --from FILE  diagnose a pasted report
  gpudoctor tune         find precision and batch size
  gpudoctor --help       list all commands"""


def main() -> NoReturn:
    """Run the command line; a user's mistake is one line on standard error, never a traceback."""
    debug = "--debug" in sys.argv
    try:
        sys.exit(cli.main(prog_name="gpudoctor", standalone_mode=False))
    except click.ClickException as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "gpudoctor")
        said = re.sub(r"is not a valid (float|integer)( range)?\.", "is not a number.", error.format_message())
        _end(f"{command}: {said}", EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt):
        _end("gpudoctor: interrupted", EXIT_NO_VERDICT)
    except BrokenPipeError:
        _leave_output()
        sys.exit(EXIT_NO_VERDICT)
    except GpudoctorError as error:
        if isinstance(error, WorkloadError) and error.traceback:
            print(error.traceback, file=sys.stderr)
        command = error.command if isinstance(error, UsageError) else ""
        _end(f"gpudoctor: {error}".removesuffix(command), error.exit_status, command)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
            _leave_output()
            _end(f"gpudoctor: cannot write the output: {error.strerror}", EXIT_NO_VERDICT)
        if debug:
            _show_traceback(error)
            sys.exit(EXIT_NO_VERDICT)
        _end(f"internal error: {type(error).__name__}: {error} (--debug shows the traceback)", EXIT_NO_VERDICT)


def _end(message: str, status: int, command: str = "") -> NoReturn:
    line = clean(message.replace("\n", " ")) + clean(command, limit=None)
    with suppress(OSError):  # /dev/full: the exit status remains
        print(line, file=sys.stderr, flush=True)
    sys.exit(status)


def _show_traceback(error: Exception) -> None:
    """Print the traceback as other text is shown: its messages and lines of code may contain secrets and escapes."""
    import traceback

    lines = mask_pasted("".join(traceback.format_exception(error))).splitlines()
    with suppress(OSError):
        print("\n".join(clean(line, limit=None) for line in lines), file=sys.stderr, flush=True)


def _leave_output() -> None:
    """Discard what is still to be written: the end of the program would try again, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Commands(ManualGroup):
    """The commands, each loaded when it is asked for."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the names in the order in which the help shows them."""
        return list(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        """Return the command, None if there is none of that name."""
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(".")
        command: click.Command = getattr(import_module(f"gpudoctor.commands.{module}"), attribute)
        return command

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Parse the command line. Options before the command are its own; without a command, those of check."""
        flags = [*itertools.takewhile(_FLAGS.__contains__, arguments)]
        named = arguments[len(flags) : len(flags) + 1]
        if flags and named and named[0] in COMMANDS:
            arguments = [*named, *flags, *arguments[len(flags) + 1 :]]
        elif arguments and arguments[0].startswith("-") and not _OWN & {*arguments} and not context.resilient_parsing:
            arguments = ["check", *arguments]
        return super().parse_args(context, arguments)

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called. The message for a mistyped one names the nearest."""
        name = arguments[0]
        if name not in COMMANDS and not name.startswith("-") and not context.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else "gpudoctor --help lists the commands"
            raise click.UsageError(f"no such command {name!r}: {hint}", context)
        return super().resolve_command(context, arguments)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)  # fmt: skip
@click.option("--version", is_flag=True, help="Show the version and exit.")
@click.option("--verbose", is_flag=True, help="With --version, also show when each table was last checked.")
@click.pass_context
def cli(context: click.Context, version: bool, verbose: bool) -> None:
    """Find out why the GPU is not used, and which command fixes it. Without a command, gpudoctor runs check."""
    if version:
        click.echo(f"gpudoctor, version {__version__}")
        if verbose:
            from gpudoctor.data.tables import table_dates

            click.echo("".join(f"{date}  {name}\n" for name, date in table_dates().items()), nl=False)
        context.exit()
    if context.invoked_subcommand is None:
        try:
            cli.main(["check"], prog_name="gpudoctor", standalone_mode=False)
        finally:
            click.echo(_WHAT_ELSE, err=True)
