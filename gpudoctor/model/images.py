"""Facts about images and the projects that they are built from. `None` means unknown, never none."""

from __future__ import annotations

from typing import Annotated

from gpudoctor.model.record import Fact, record


@record
class CopiedFiles:
    """The files in an image that one COPY or ADD takes from the context."""

    line: Annotated[int, Fact("of the Dockerfile, from 1")]
    text: str
    stage: str
    compared: Annotated[int, Fact("files that were compared")] = 0
    stale: Annotated[tuple[str, ...], Fact("paths in the context whose content, link or executable bit differs")] = ()
    missing: Annotated[tuple[str, ...], Fact("paths in the context that the image has not")] = ()
    extra: Annotated[tuple[str, ...], Fact("paths in the image that are gone from the context")] = ()
    changed_later: Annotated[tuple[str, ...], Fact("paths in the image that a later instruction wrote or removed")] = ()
    ignored: Annotated[tuple[str, ...], Fact("paths in the context that .dockerignore leaves out")] = ()
    empty_patterns: Annotated[tuple[str, ...], Fact("sources with a wildcard that match nothing")] = ()
    opaque: Annotated[str, Fact("why its files cannot be traced to the context; empty if they can")] = ""
    unknown: Annotated[str, Fact("why it could not be compared; empty if it was")] = ""
    newest_change_at: Annotated[float | None, Fact("when the newest of the stale and missing files changed", "s")] = (
        None
    )
    may_be_kept: Annotated[bool, Fact("a stale file is one that a build after its change may have kept as it was")] = (
        False
    )

    @property
    def is_stale(self) -> bool:
        """Whether the image's files differ from those that a build would copy now."""
        return bool(self.stale or self.missing or self.extra)


@record
class Mounted:
    """A container mount that covers a path to which the image copies files."""

    destination: str
    stale: Annotated[tuple[str, ...], Fact("paths in the context that it shows with another content")] = ()
    missing: Annotated[tuple[str, ...], Fact("paths in the context that it hides")] = ()
    current: Annotated[tuple[str, ...], Fact("paths in the context that it shows as they are")] = ()
    is_context: Annotated[bool, Fact("it is that folder or file of the context itself")] = False
    replaced: Annotated[bool | None, Fact("the file that was mounted has been replaced by a rename since")] = None
    newest_change_at: Annotated[
        float | None, Fact("when the newest Python file in it was written that the process can have read", "s")
    ] = None
    newest_code: Annotated[str, Fact("that file, on this machine")] = ""


@record
class RunningContainer:
    """A container that runs, or ran, an image."""

    name: str
    image_id: str
    is_running: bool = False
    started_at: Annotated[float | None, Fact("when its process started", "s")] = None
    keeps_code: Annotated[bool, Fact("its process neither reloads its source by itself nor just waits")] = True
    modified: Annotated[tuple[str, ...], Fact("copied paths that were changed inside it")] = ()
    mounts: tuple[Mounted, ...] = ()


@record
class UnmetRequirement:
    """A requirement in the context that the image's packages do not satisfy."""

    requirement: str
    file: Annotated[str, Fact("of the context, that names it")]
    installed: Annotated[str, Fact("version in the image; empty if it is not installed")]


@record
class ProjectImage:
    """An image, and the Dockerfile and context that it should be built from."""

    image: str
    dockerfile: str = ""
    context: str = ""
    target: str | None = None
    service: Annotated[str | None, Fact("of the compose file")] = None
    asked_for: Annotated[bool, Fact("it was named on the command line")] = False
    engine_address: Annotated[
        str | None, Fact("of its engine, if the docker command line would not go there by itself")
    ] = None
    by_podman_alone: Annotated[bool, Fact("its engine is Podman, and there is no docker command line")] = False
    image_id: str | None = None
    built_at: Annotated[float | None, Fact("when its tag was last written, or else when it was made", "s")] = None
    by_buildkit: bool | None = None
    instructions: tuple[CopiedFiles, ...] = ()
    differing_lines: Annotated[tuple[int, ...] | None, Fact("of the Dockerfile, that its history has not")] = None
    additional_steps: Annotated[tuple[str, ...], Fact("that its history has, and the Dockerfile has not")] = ()
    differing_arguments: Annotated[tuple[str, ...], Fact('build arguments: "V: 1 in the image, 2 asked for"')] = ()
    base: Annotated[
        str | None, Fact("of FROM, outside the Dockerfile, or of the COPY --from that brings other files now")
    ] = None
    base_moved: Annotated[bool | None, Fact("the local image of that name is not the one it was built on")] = None
    fresh_tags: Annotated[
        tuple[str, ...], Fact("of other local images whose copied files are those of the context")
    ] = ()
    unmet_requirements: tuple[UnmetRequirement, ...] = ()
    shadowing_packages: Annotated[
        tuple[str, ...], Fact("installed copies of copied packages, which are imported instead: paths in the image")
    ] = ()
    possibly_shadowing_packages: Annotated[
        tuple[str, ...],
        Fact("older installed copies, of which the command does not show whether it imports them: paths in the image"),
    ] = ()
    container: RunningContainer | None = None
    container_instructions: Annotated[
        tuple[CopiedFiles, ...], Fact("the same of the image that the container runs, if it is another one")
    ] = ()
    container_fits: Annotated[
        bool | None, Fact("the image that the container runs is built from this Dockerfile, if it is another one")
    ] = None
    unknown: Annotated[str, Fact("why it could not be looked at; empty if it was")] = ""
