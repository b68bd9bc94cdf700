"""`gpudoctor profile show`, `export` and `verify`."""

import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from gpudoctor.commands.manual import ManualCommand, ManualGroup
from gpudoctor.commands.options import FORMATS, environment_options, local_host, print_text, write
from gpudoctor.errors import EXIT_FINDINGS, EXIT_HEALTHY, EXIT_NO_VERDICT, UsageError
from gpudoctor.probes.host import setting
from gpudoctor.reporters import terminal

if TYPE_CHECKING:
    from gpudoctor.model.profile import Profile


@click.group(cls=ManualGroup, short_help="Read, export or verify the env profile.", invoke_without_command=True)
@click.pass_context
def profile(context: click.Context) -> None:
    """Read a profile that `gpudoctor tune` wrote, write it for another tool, or check whether it still fits."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


_profile_argument = click.argument("file", metavar="FILE", type=click.Path(dir_okay=False))


@profile.command("show", cls=ManualCommand, short_help="Show the settings, and what they were tuned on.")
@_profile_argument
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True)
def profile_show(file: str, format_name: str) -> None:
    """Show the settings in the profile, and what they were tuned on."""
    from gpudoctor.profiles.export import export
    from gpudoctor.reporters import profile_table

    read = _profile(file)
    print_text(export(read, "json") if format_name == "json" else profile_table.render(read))


@profile.command("export", cls=ManualCommand, short_help="Write the profile for another tool.")
@_profile_argument
@click.option("--format", "format_name", required=True, metavar="FORMAT",
              help="env, json, toml, dockerfile, compose, accelerate or deepspeed.")  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file.")
def profile_export(file: str, format_name: str, output: str | None) -> None:
    """Write the profile for another tool: ENV of a Dockerfile, environment of compose, accelerate's configuration."""
    from gpudoctor.profiles.export import FORMATS, export

    if format_name not in FORMATS:
        raise UsageError(f"--format: {format_name!r} is not one of {', '.join(FORMATS)}")
    write(export(_profile(file), format_name), output)


@profile.command("verify", cls=ManualCommand, short_help="Check whether the profile still fits this machine.")
@_profile_argument
@environment_options
def profile_verify(file: str, interpreter: str | None, timeout: float) -> NoReturn:
    """Check whether the profile still fits this machine."""
    from gpudoctor.conclusions import fingerprint
    from gpudoctor.probes.snapshot import begin_snapshot
    from gpudoctor.reporters import profile_table

    tuned_on = _profile(file).fingerprint
    host = local_host(setting(interpreter, timeout, fast=True))
    with terminal.progress("Looking at this machine ...", sys.stderr):
        found = begin_snapshot(host, fingerprint.SECTIONS)()
    parts = fingerprint.compare(tuned_on, **{name: getattr(found, name) for name in fingerprint.SECTIONS})
    print_text(profile_table.render_fit(parts, color=terminal.use_color(sys.stdout, os.environ)))
    statuses = {fingerprint.FITS: EXIT_HEALTHY, fingerprint.STALE: EXIT_FINDINGS}
    sys.exit(statuses.get(fingerprint.fit(parts), EXIT_NO_VERDICT))


def _profile(file: str) -> "Profile":
    from pathlib import Path

    from gpudoctor.profiles.env_file import read_profile

    return read_profile(Path(file))
