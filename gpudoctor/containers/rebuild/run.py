"""Rebuild what is stale, give it its name, recreate its container, and look once more."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gpudoctor.containers.builds.plan import Plan
from gpudoctor.containers.builds.stages import find_stage, needed_by
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.engines.objects import inspect_container, inspect_image
from gpudoctor.containers.project_images import is_changed
from gpudoctor.containers.rebuild.builders import Attempt, ComposeBuilder, attempts
from gpudoctor.containers.rebuild.choice import Chosen, choose_builder
from gpudoctor.containers.rebuild.container import (
    await_started,
    build_under,
    check_can_be_kept,
    move_name,
    new_tag,
    recreate,
)
from gpudoctor.containers.rebuild.copy_again import CopyAgain
from gpudoctor.containers.rebuild.steps import Command, Progress
from gpudoctor.containers.rebuild.transaction import Journal
from gpudoctor.containers.requested import Subject, look_at_subject
from gpudoctor.errors import GpudoctorError, UsageError, one_line
from gpudoctor.model import Finding, ProjectImage
from gpudoctor.model.record import record

OF_THE_CONTAINER = (
    "container-runs-older-image",
    "container-modified-in-place",
    "bind-source-replaced",
    "process-older-than-mounted-source",
)
"""Causes that a new container fixes, and no build."""

OF_THE_MOUNTS = ("mount-shadows-copy",)
"""Causes that neither fixes: the new container has the same mounts."""


@record
class Verdict:
    """state: "fresh", "stale" or "unknown". text: the check's own sentence."""

    state: str
    causes: tuple[str, ...]
    text: str

    @property
    def needs_build(self) -> bool:
        """Return whether a build fixes one of the causes."""
        return bool(set(self.causes) - {*OF_THE_CONTAINER, *OF_THE_MOUNTS})

    @property
    def needs_container(self) -> bool:
        """Return whether a new container fixes one of the causes."""
        return bool(set(self.causes) & {*OF_THE_CONTAINER})

    @property
    def is_hidden_by_mounts(self) -> bool:
        """Return whether neither a build nor a new container fixes one of the causes."""
        return bool(set(self.causes) & {*OF_THE_MOUNTS})

    @classmethod
    def of(cls, finding: Finding) -> "Verdict":
        """Return what the finding of the check on one image says."""
        about = finding.details["images"][0]
        return cls(state=about["verdict"], causes=tuple(about["causes"]), text=finding.summary)


Judge = Callable[[ProjectImage], Verdict]
"""Asks the check about an image."""


@record
class RebuildPlan:
    """One subject, what was found about it, and who would build it.

    builds, recreates: what is to be done.
    stages: those whose copied files are old.
    unseen_changes: a stale file has the size and time that it has in the image: BuildKit, which has a copy of the
        context, may take the old content again.
    """

    subject: Subject
    image: ProjectImage
    verdict: Verdict
    chosen: Chosen
    builds: bool
    recreates: bool
    stages: tuple[str, ...] = ()
    unseen_changes: bool = False

    @property
    def name(self) -> str:
        """Return its name for the user."""
        return self.subject.service or self.subject.container or self.subject.image or ""


def prepare(
    api: APIClient, subject: Subject, arguments: Mapping[str, Any], judge: Judge, *, recreates: bool
) -> RebuildPlan:
    """Return the rebuild plan for `subject`, which is `named`. Nothing is changed.

    Raises:
        UsageError: the Dockerfile or the request cannot be built.
        GpudoctorError: the image cannot be compared.
    """
    _check_name(api, subject.image or "")
    try:
        plan = subject.plan()
    except (ValueError, OSError) as error:
        raise UsageError(one_line(error)) from None
    exists = inspect_image(api, subject.image or "") is not None
    image = look_at_subject(api, subject if exists else replace(subject, container=None))
    if exists and image.unknown and image.image_id is None:
        raise GpudoctorError(f"{subject.image} cannot be compared: {image.unknown}")
    verdict = judge(image)
    chosen = choose_builder(api, subject, image.by_buildkit, arguments, os.environ)
    builds = verdict.needs_build or verdict.state == "unknown"  # no image yet, or none that can be compared
    has_old = subject.container is not None and (builds or verdict.needs_container)
    if recreates and has_old and not isinstance(chosen.builder, ComposeBuilder):
        check_can_be_kept(api.inspect_container(str(subject.container)))
    return RebuildPlan(
        subject=chosen.subject,
        image=image,
        verdict=verdict,
        chosen=chosen,
        builds=builds,
        recreates=recreates and has_old,
        stages=_stale_stages(image, plan) if exists else (),
        unseen_changes=bool(image.by_buildkit) and any(item.may_be_kept for item in image.instructions),
    )


def _stale_stages(image: ProjectImage, plan: Plan) -> tuple[str, ...]:
    """Return the stages whose copied files are old; of a COPY --from, those too that it takes its files from."""
    changed = {item.line for item in image.instructions if is_changed(item)}
    names: list[str] = []
    for copy in (traced.copy for traced in plan.copies if traced.copy.instruction.line in changed):
        origin = find_stage(plan.stages, copy.origin) if copy.origin else None
        before = () if origin is None else needed_by(plan.stages, origin)
        names += [*(stage.name for stage in before), copy.stage]
    return tuple(dict.fromkeys(names))


def named(api: APIClient, subject: Subject) -> Subject:
    """Return the subject with the name of its image, and that of its container, which outlives its id."""
    if subject.container is None:
        return subject
    about = inspect_container(api, subject.container)
    if about is None:
        raise UsageError(f"--container: there is no container {subject.container}")
    image = subject.image or str(about["Config"]["Image"])
    return replace(subject, image=image, container=str(about["Name"]).lstrip("/"))


def _check_name(api: APIClient, image: str) -> None:
    """Refuse an id in the place of a name: a new image has another."""
    short = image.removeprefix("sha256:")
    about = inspect_image(api, image)
    is_id = about is not None and str(about["Id"]).removeprefix("sha256:").startswith(short)
    if is_id or "@" in image:
        raise UsageError(
            f"{image} is an id or digest, which a rebuilt image cannot keep: give a name with --image NAME"
        )


def describe(api: APIClient, work: RebuildPlan) -> Iterator[str]:
    """Yield the lines of a dry run: commands for a shell, and comments."""
    yield f"# {work.verdict.text}"
    if work.chosen.note:
        yield f"# {work.chosen.note}"
    tag, image = new_tag(), work.subject.image or ""
    if work.builds:
        for attempt in _attempts(api, work, tag):
            if attempt.why:
                yield f"# {attempt.why}"
            yield from map(str, attempt.steps)
        yield "# after the new image has been verified:"
        if work.chosen.docker is None:
            yield f"# the engine's API: tags {tag} as {image}, and removes the tag {tag}"
        else:
            docker = work.chosen.docker.docker
            for words in (("tag", tag, image), ("rmi", "--no-prune", tag)):
                yield str(Command(arguments=(docker.path, *words), environment=docker.environment))
    if work.recreates and isinstance(work.chosen.builder, ComposeBuilder):
        yield str(work.chosen.builder.recreate(start=_state(api, str(work.subject.container))[1]))
    elif work.recreates:
        yield (
            f"# the engine's API: container {work.subject.container} is recreated from {image} with its settings;"
            " the old one is kept until the new one has started"
        )


def execute(api: APIClient, work: RebuildPlan, progress: Progress, judge: Judge, journal: Journal) -> Verdict:
    """Rebuild and recreate, and return what the check says then. The journal settles the rest.

    Raises:
        BuildFailed: a build failed, or another program built the image meanwhile.
        NotStarted: the image was built, but the container does not run with it.
        docker.errors.APIError: the engine refuses.
    """
    if work.chosen.note:
        progress.say(work.chosen.note)
    tag = work.subject.image or ""
    if work.builds:
        tag = new_tag()
        journal.write(tag=tag)
        with progress.interrupts.allowed():
            build_under(tag, api, work.subject, _attempts(api, work, tag), progress)
    _use(api, work, tag, progress, journal)
    with progress.interrupts.allowed():
        return judge(look_at_subject(api, work.subject))


def _attempts(api: APIClient, work: RebuildPlan, tag: str) -> Iterator[Attempt]:
    docker = work.chosen.docker
    by_buildkit = docker is None or docker.buildkit or work.subject.dockerfile_inline is not None
    copy_again = None if docker is None or by_buildkit else CopyAgain(api=api, builder=docker, tag=tag)
    return attempts(
        work.chosen.builder, tag, stages=work.stages, unseen_changes=work.unseen_changes, copy_again=copy_again
    )


def _use(api: APIClient, work: RebuildPlan, tag: str, progress: Progress, journal: Journal) -> None:
    """Give the image under `tag` its name, and the container that image; both or neither. Signals wait meanwhile."""
    image, builder, container = work.subject.image or "", work.chosen.builder, str(work.subject.container)
    again: Callable[[], object] | None = None
    if work.recreates and isinstance(builder, ComposeBuilder):
        again = _by_compose(api, builder, container, progress, journal)
    elif work.recreates:
        again = partial(recreate, api, container, image, journal)
    if tag != image:
        move_name(api, image, tag, work.image.image_id, journal)
    if again is not None:
        again()
    journal.write(done=True)


def _by_compose(
    api: APIClient, builder: ComposeBuilder, container: str, progress: Progress, journal: Journal
) -> Callable[[], None]:
    """Note in the journal how compose recreates the container as it is now, and return what does so."""
    before = _, was_running = _state(api, container)
    step = builder.recreate(start=was_running)

    def repeat() -> None:
        if _state(api, container) != before:
            step.run(progress)  # with the old image, whose name it is again

    def recreate_it() -> None:
        step.run(progress)
        if was_running:
            await_started(api, container)

    journal.repeat = repeat
    journal.write(command=str(step))
    return recreate_it


def _state(api: APIClient, container: str) -> tuple[str, bool]:
    """Return the id of the container that has the name, "" if none has, and whether it runs."""
    about = inspect_container(api, container)
    return ("", False) if about is None else (str(about["Id"]), bool(about["State"].get("Running")))
