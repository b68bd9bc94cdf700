"""`gpudoctor rebuild`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gpudoctor.commands.manual import ManualCommand
from gpudoctor.commands.options import debug_option, image_options, print_text
from gpudoctor.errors import EXIT_FINDINGS, EXIT_HEALTHY, GpudoctorError, UsageError, one_line
from gpudoctor.privacy import mask_secrets
from gpudoctor.probes.host import ImageRequest, setting
from gpudoctor.reporters import terminal
from gpudoctor.untrusted import clean

if TYPE_CHECKING:
    from docker import DockerClient

    from gpudoctor.containers.rebuild.container import NotStarted
    from gpudoctor.containers.rebuild.interrupts import Interrupts
    from gpudoctor.containers.rebuild.run import RebuildPlan, Verdict
    from gpudoctor.containers.rebuild.steps import BuildFailed
    from gpudoctor.containers.rebuild.transaction import Journal
    from gpudoctor.containers.requested import Subject
    from gpudoctor.model import ProjectImage

CHECK = "docker-stale-layers"
ENGINE_SECONDS = 600.0  # for one answer of the engine; on a loaded machine it comes late


@click.command(cls=ManualCommand, short_help="Rebuild a stale container image, and verify that it is up to date.")
@click.argument("services", nargs=-1, metavar="[SERVICE]...")
@click.option("--dry-run", is_flag=True, help="Print the commands, and change nothing.")
@click.option("--recreate", is_flag=True, help="Recreate the container from the rebuilt image, with its settings.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=1), default=7200.0, show_default=True,
              help="Seconds for each build.")  # fmt: skip
@debug_option
@image_options
def rebuild(services: tuple[str, ...], dry_run: bool, recreate: bool, timeout: float, images: ImageRequest) -> NoReturn:
    """Rebuild the stale stage of a stale image, and verify that its files are those of the project.

    The tag moves to the new image only after it has been verified; a build that fails changes nothing.
    """
    from gpudoctor.containers.rebuild.interrupts import Interrupts
    from gpudoctor.containers.rebuild.run import describe, prepare
    from gpudoctor.containers.rebuild.transaction import settle_interrupted, transaction

    directory = setting(None, timeout, fast=True).directory
    request = {**{item.name: getattr(images, item.name) for item in fields(ImageRequest)}, "directory": directory}
    interrupts, journals = Interrupts(), dict[str, "Journal"]()
    with _engine() as client, ExitStack() as stack:
        if not dry_run:
            stack.enter_context(interrupts.listening())
            settle_interrupted(client.api, _note)
        with interrupts.allowed():
            subjects = _subjects(client, request, services)
        for image in () if dry_run else sorted({subject.image or "" for subject, _ in subjects}):
            journals[image] = stack.enter_context(transaction(client.api, image, timeout, _note, interrupts))
        with interrupts.allowed():
            works = [prepare(client.api, subject, asked, _judge, recreates=recreate) for subject, asked in subjects]
        if dry_run:
            _show(line for work in works for line in describe(client.api, work))
            sys.exit(EXIT_HEALTHY)
        fresh = [
            _rebuild(client, work, timeout, interrupts, journals[subject.image or ""], recreate=recreate)
            for work, (subject, _) in zip(works, subjects, strict=True)
        ]
    sys.exit(EXIT_HEALTHY if all(fresh) else EXIT_FINDINGS)


@contextmanager
def _engine() -> Iterator[DockerClient]:
    """Yield a client of the engine. Raises GpudoctorError: there is none, or it refuses."""
    from gpudoctor.containers.engines.connection import EngineUnavailable, connect, refusal

    try:
        client = connect(os.environ, ENGINE_SECONDS)
    except EngineUnavailable as reason:
        raise GpudoctorError(str(reason)) from None
    from docker.errors import DockerException
    from requests import RequestException

    try:
        yield client
    except (DockerException, RequestException) as error:
        raise GpudoctorError(refusal(error)) from None
    finally:
        client.close()


def _subjects(
    client: DockerClient, arguments: dict[str, Any], services: tuple[str, ...]
) -> list[tuple[Subject, dict[str, Any]]]:
    """Return each requested image, or those found in the working directory, and the arguments for it.

    Raises:
        UsageError: nothing to rebuild, or the request is wrong.
    """
    from requests import RequestException

    from gpudoctor.containers.rebuild.run import named
    from gpudoctor.containers.requested import find_subjects

    if services and (arguments["image"] or arguments["container"]):
        raise UsageError("--image and --container cannot be combined with a service")
    found = []
    for service in services or (arguments["service"],):
        asked = {**arguments, "service": service}
        try:
            subjects = find_subjects(client, asked, os.environ)
        except RequestException:  # an OSError too, and the engine's fault, not the user's
            raise
        except (ValueError, OSError) as error:
            raise UsageError(one_line(error)) from None
        if not subjects:
            what = "nothing to rebuild" if service is None else f"service {service} has nothing to build"
            raise UsageError(f"{what}: no compose file with a build here, and no --image or --container")
        found += [(named(client.api, subject), asked) for subject in subjects]
    return found


def _rebuild(
    client: DockerClient, work: RebuildPlan, timeout: float, interrupts: Interrupts, journal: Journal, *, recreate: bool
) -> bool:
    """Rebuild, print how it ended, and return whether everything is up to date."""
    from gpudoctor.containers.rebuild.container import NotStarted
    from gpudoctor.containers.rebuild.run import execute
    from gpudoctor.containers.rebuild.steps import BuildFailed, Progress

    if not work.builds and not work.recreates:
        _print_result(work.verdict.text if work.verdict.state != "fresh" else f"{work.name}: nothing is stale")
        _advise(work, recreate=recreate)
        return work.verdict.state == "fresh"
    _note(work.verdict.text)
    try:
        with terminal.progress(f"Rebuilding {work.name} ...", sys.stderr) as show:

            def say(text: str) -> None:
                show("")  # ends the line of the build's output
                _note(text)

            progress = Progress(show, say, timeout, interrupts, kept_open=(journal.lock,), heard=journal.note_step)
            verdict = execute(client.api, work, progress, _judge, journal)
    except (BuildFailed, NotStarted) as error:
        journal.settle(client.api)
        _print_failure(work.name, error)
        return False
    journal.settle(client.api)
    done = "rebuilt" if work.builds else "recreated"
    _print_result(f"{work.name}: {done}; {verdict.text}")
    _advise(replace(work, verdict=verdict), recreate=recreate)
    return verdict.state == "fresh"


def _judge(image: ProjectImage) -> Verdict:
    """Return the check's verdict on the image."""
    from gpudoctor.containers.rebuild.run import Verdict
    from gpudoctor.engine.catalog import load_checks
    from gpudoctor.engine.runner import run_one
    from gpudoctor.model import Snapshot

    check = next(check for check in load_checks() if check.id == CHECK)
    return Verdict.of(run_one(check, Snapshot(images=(replace(image, asked_for=True),))).findings[0])


def _advise(work: RebuildPlan, *, recreate: bool) -> None:
    if work.verdict.needs_container and not recreate:
        _note(f"{work.name}: the container still uses the old image; add --recreate to replace it")
    if work.verdict.is_hidden_by_mounts:
        _note(f"{work.name}: a mount hides the files of the image, and a rebuild does not change that")


def _print_failure(name: str, error: BuildFailed | NotStarted) -> None:
    for line in mask_secrets("\n".join(error.lines)).splitlines():  # a private key has several
        _note(f"    {line}")
    _note(f"{name}: {error}; image and container are as before")


def _show(lines: Iterable[str]) -> None:
    print_text("".join(f"{clean(line, limit=None)}\n" for line in lines))


def _print_result(text: str) -> None:
    print_text(f"{clean(text)}\n")


def _note(text: str) -> None:
    with suppress(OSError):  # the terminal may be closed: what was begun is still undone
        click.echo(terminal.encodable(clean(text), sys.stderr.encoding), err=True)
