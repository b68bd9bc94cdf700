"""What several commands share: their options, the machine that they look at, and where their text goes."""

import functools
import os
import sys
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import click

from gpudoctor.errors import UsageError
from gpudoctor.probes.host import ImageRequest, ProbeContext, is_own_environment
from gpudoctor.reporters import terminal
from gpudoctor.untrusted import clean

if TYPE_CHECKING:
    from gpudoctor.probes.local_host import LocalHost

FORMATS = ("table", "json")

debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an internal error."
)


def environment_options(command: Any) -> Any:
    """Add the options that say which environment is looked at, and for how long."""
    command = click.option(
        "--python",
        "interpreter",
        metavar="PATH",
        help="Diagnose the environment of this Python instead of gpudoctor's own.",
    )(command)
    command = click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0.1),
        default=30.0,
        show_default=True,
        help="Seconds for each probe.",
    )(command)
    return debug_option(command)


def refuse_probing(interpreter: str | None, *, fast: bool) -> None:
    """Refuse options that say how this machine is probed if a report is read instead.

    Raises:
        UsageError: there is one.
    """
    option = "--python" if interpreter is not None else "--fast" if fast else None
    if option is not None:
        raise UsageError(f"{option} is for probing this machine: with --from nothing is probed")


OWN_ENVIRONMENT = (
    "gpudoctor: no environment is activated, so the one that pipx or uv made for gpudoctor is checked:"
    " activate yours, or name its interpreter with --python PATH"
)


def local_host(setting: ProbeContext) -> "LocalHost":
    from gpudoctor.probes.local_host import LocalHost  # not needed for a report

    if setting.interpreter is None and is_own_environment():
        click.echo(OWN_ENVIRONMENT, err=True)
    return LocalHost(setting)


def image_options(command: Any) -> Any:
    """Add the options that say what the container checks look at; `command` gets them as `images`."""

    @functools.wraps(command)
    def with_request(**values: Any) -> Any:
        names = [item.name for item in fields(ImageRequest)]
        request = ImageRequest(**{name: values.pop(name) for name in names})
        return command(images=_existing(request), **values)

    wrapped: Any = with_request
    for option in (
        click.option("--compose", metavar="FILE", help="Compare the services of this compose file with the project."),
        click.option("--service", metavar="NAME", help="Use this service of the compose file only."),
        click.option("--image", metavar="REF", help="Compare this image with the project."),
        click.option("--container", metavar="NAME", help="Compare this container (name or id) with the project."),
        click.option("--dockerfile", metavar="FILE", help="Dockerfile of the image."),
        click.option("--context", metavar="DIR", help="Build context of the image."),
        click.option("--target", metavar="STAGE", help="Stage of the Dockerfile that the image is built from."),
        click.option("--build-arg", "build_arguments", multiple=True, metavar="NAME=VALUE",
                     help="Build argument of the image; repeatable."),
    ):  # fmt: skip
        wrapped = option(wrapped)
    return wrapped


def _existing(request: ImageRequest) -> ImageRequest:
    """Return the request, after checking that the files and folders that it names exist.

    Raises:
        UsageError: one does not exist, or a build argument has no value.
    """
    for option, path, exists in (
        ("--compose", request.compose, os.path.isfile),
        ("--dockerfile", request.dockerfile, os.path.isfile),
        ("--context", request.context, os.path.isdir),
    ):
        if path is not None and not exists(path):
            raise UsageError(f"{option}: there is no {'folder' if exists is os.path.isdir else 'file'} {path}")
    arguments = tuple(_assignment(argument) for argument in request.build_arguments)
    return replace(request, build_arguments=arguments)


def _assignment(argument: str) -> str:
    """Return NAME=VALUE, the value of a bare name taken from the environment, as docker build does."""
    name, equals, _ = argument.partition("=")
    if not name:
        raise UsageError(f"--build-arg: {argument!r} has no name")
    return argument if equals else f"{name}={os.environ.get(name, '')}"


def write(text: str, output: str | None) -> None:
    if output is None:
        print_text(text)
    else:
        from pathlib import Path

        from gpudoctor.files import write_whole

        write_whole(Path(output), text, private=True)
        click.echo(f"Wrote {clean(output)}", err=True)


def print_text(text: str) -> None:
    """Write `text` to standard output, in characters that its encoding has."""
    sys.stdout.write(terminal.encodable(text, sys.stdout.encoding))
    sys.stdout.flush()
