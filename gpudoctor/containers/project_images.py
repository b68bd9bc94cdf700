"""Compare one image with its Dockerfile and context: everything that the engine and the files say about it."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpudoctor.containers.builds.context import TooLarge, is_below
from gpudoctor.containers.builds.plan import Plan
from gpudoctor.containers.builds.tracing import ResolvedCopy
from gpudoctor.containers.comparison import MAXIMUM_NAMED, compared, image_path_of
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.engines.connection import seconds_of
from gpudoctor.containers.images import base_images
from gpudoctor.containers.images.facts import ImageFacts, read_copied
from gpudoctor.containers.images.files import ImageFile
from gpudoctor.containers.images.other_images import fresh_tags, moved_sources
from gpudoctor.containers.images.reader import ContainerFiles, Files
from gpudoctor.containers.packages.installed import packages_of
from gpudoctor.containers.packages.requirements import platform_of, unmet, wanted_by
from gpudoctor.containers.packages.shadowing import copied_packages, shadowing
from gpudoctor.containers.running import look_at_container
from gpudoctor.model.images import CopiedFiles, ProjectImage, RunningContainer

UNTOLD = "its history is empty, as for an imported image, so its sources are unknown"


def look_at_image(api: APIClient, image: str, plan: Plan, container: str | None = None, **about: Any) -> ProjectImage:
    """Return the facts about `image` and the container that should run it, compared with `plan`.

    about: further fields of ProjectImage.
    """
    from docker.errors import APIError, ImageNotFound, NotFound

    about = {"image": image, **about}
    try:
        facts = ImageFacts(api, image, plan)
        config: Mapping[str, Any] = facts.about.get("Config") or {}
        if container is not None:
            config = api.inspect_container(container).get("Config") or {}
            about.update(_container(api, facts, container))
        return ProjectImage(**{**_image_fields(api, facts, config), **about})
    except ImageNotFound:
        return ProjectImage(**{**about, "unknown": f"there is no image {image}: it has not been built"})
    except NotFound:
        return ProjectImage(**{**about, "unknown": f"there is no container {container}"})
    except (APIError, OSError, TooLarge, ValueError) as error:
        return ProjectImage(**{**about, "unknown": f"{type(error).__name__}: {error}"[:500]})


def _container(api: APIClient, facts: ImageFacts, name: str) -> dict[str, Any]:
    """Return the fields of ProjectImage that describe the container."""
    from docker.errors import ImageNotFound

    container = look_at_container(api, name, facts.id, facts.plan.context, facts.plan.copies)
    if container.image_id == facts.id:
        return {"container": container}
    try:
        other = ImageFacts(api, container.image_id, facts.plan)
    except ImageNotFound:
        return {"container": container, **_look_at_orphan(api, container, facts)}
    is_same = other.about.get("RootFS") == facts.about.get("RootFS")
    return {
        "container": container,
        "container_instructions": () if is_same else other.instructions(),
        "container_fits": other.fit.fits or not facts.fit.fits,
    }


def _look_at_orphan(api: APIClient, container: RunningContainer, facts: ImageFacts) -> dict[str, Any]:
    """Return the fields of ProjectImage that describe a container whose image is gone: by its own files.

    Engines with containerd's image store drop an image when a build gives its name to another one, while its container
    goes on. facts: of the image that has the name now.
    """
    copies = facts.plan.copies
    theirs = read_copied(ContainerFiles(api, container.name), copies)
    with facts.files() as files:
        mine = read_copied(files, copies)
    instructions = tuple(_older(copy, container, theirs, mine) for copy in copies)
    if any(item.stale or item.missing for item in instructions):
        return {"container_instructions": instructions}
    created_at = seconds_of(str(api.inspect_container(container.name).get("Created") or ""))
    if seconds_of(str(facts.about.get("Created") or "")) <= created_at:  # every step of it came out of the cache since
        return {}
    return {
        "unknown": f"the engine no longer has the image of container {container.name}, and the image with that name"
        " was built later, so it may be another one"
    }


def _older(
    copy: ResolvedCopy, container: RunningContainer, theirs: Mapping[str, ImageFile], mine: Mapping[str, ImageFile]
) -> CopiedFiles:
    """Return the files of one COPY that the container has otherwise than the image, and not by its own changes."""
    hidden = (*container.modified, *(mount.destination for mount in container.mounts))
    stale, missing = [], []
    for placed in compared(copy):
        path = image_path_of(placed, mine)
        if is_below(path, hidden):
            continue
        if path not in theirs and path in mine:
            missing.append(placed.file.path)
        elif path in theirs and (path not in mine or theirs[path].identity != mine[path].identity):
            stale.append(placed.file.path)
    return CopiedFiles(
        line=copy.copy.instruction.line,
        text=copy.copy.instruction.text,
        stage=copy.copy.stage,
        compared=len(compared(copy)),
        stale=tuple(sorted(stale)[:MAXIMUM_NAMED]),
        missing=tuple(sorted(missing)[:MAXIMUM_NAMED]),
    )


def _image_fields(api: APIClient, facts: ImageFacts, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ProjectImage that describe the image itself.

    config: of the container that runs it, or else its own: what is started, and how.
    """
    plan, fit = facts.plan, facts.fit
    base = facts.bases.get(plan.base)
    with facts.files() as files:
        instructions = facts.instructions(files)
        packages = _packages(facts, files, instructions, config)
    arguments = (
        *base_images.differing_arguments(fit, plan),
        *base_images.differing_defaults(fit, plan, facts.built_at),
    )
    moved = base_images.has_base_moved(facts.about, base)
    other = (
        None
        if base is None or base_images.is_built_on(facts.about, base)
        else base_images.tag_built_on(api, facts.about, fit)
    )
    if other is not None and (plan.is_base_given or not moved):
        moved = None
        arguments = (*arguments, f"FROM: built on {other} instead of {plan.base}")
    outside = moved_sources(api, facts)
    return {
        "image_id": facts.id,
        "built_at": facts.built_at,
        "by_buildkit": facts.by_buildkit if facts.entries else None,
        "instructions": instructions,
        "differing_lines": fit.differing if facts.entries else None,
        "unknown": "" if facts.entries else UNTOLD,
        "additional_steps": fit.additional,
        "differing_arguments": arguments,
        "base": outside[0] if outside and not moved else plan.base,
        "base_moved": True if outside else moved,
        **packages,
        "fresh_tags": fresh_tags(api, facts) if any(is_changed(item) for item in instructions) else (),
    }


def _packages(
    facts: ImageFacts, files: Files, instructions: Sequence[CopiedFiles], config: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of ProjectImage that describe the Python packages in the image.

    config: of the container, or else of the image.
    """
    plan, built_at = facts.plan, facts.built_at
    if not wanted_by(plan, instructions, built_at, platform_of(facts.about, "")) and not copied_packages(
        plan.copies, ()
    ):
        return {}
    packages = packages_of(files, config)
    platform = platform_of(facts.about, packages.python_version)
    wanted = wanted_by(plan, instructions, built_at, platform)
    return {
        "unmet_requirements": unmet(packages, wanted, platform) if packages.folders else (),
        **shadowing(files, [folder.path for folder in packages.folders], facts, config),
    }


def is_changed(item: CopiedFiles) -> bool:
    """Return whether the image has other files than a build would copy now."""
    return bool(item.stale or item.missing or item.extra)
