"""Fixes of stale images and containers, one for each cause."""

from collections.abc import Callable

from gpudoctor.model.finding import Remedy
from gpudoctor.model.images import ProjectImage
from gpudoctor.remedies.commands import quote_name, quote_value
from gpudoctor.remedies.fixes import fix

CACHE = "https://docs.docker.com/build/cache/invalidation/"
NO_FIX = ("wildcard-matches-nothing",)
MOUNTS = "https://docs.docker.com/engine/storage/bind-mounts/"


@fix
def refresh_image(image: ProjectImage, causes: tuple[str, ...]) -> tuple[Remedy, ...]:
    """Return the fixes of all causes (of docker-stale-layers), without duplicates."""
    return tuple(dict.fromkeys(stale_image(image, cause) for cause in causes if cause not in NO_FIX))


def stale_image(image: ProjectImage, cause: str) -> Remedy:
    """Return the fixes of `cause` (of docker-stale-layers) for `image`."""
    return _BY_CAUSE.get(cause, _rebuild)(image)


def _rebuild(image: ProjectImage) -> Remedy:
    recreate = " --recreate" if image.container is not None else ""
    same = ", with the build arguments that it was checked with" if image.service is None else ""
    return Remedy(
        summary=f"Rebuild the stale stage only, and compare again to verify{same}",
        commands=(f"gpudoctor rebuild{_which(image)}{recreate}",),
        reference=CACHE,
    )


def _recreate(image: ProjectImage) -> Remedy:
    if image.service is not None:
        command = f"{_compose(image)} up -d --force-recreate {quote_name(image.service)}"
    else:
        command = f"gpudoctor rebuild{_which(image)} --recreate"
    return Remedy(
        summary="Recreate the container from the image: a restart keeps the old one, and changes made inside it",
        commands=(command,),
    )


def _restart(image: ProjectImage) -> Remedy:
    name = quote_name(_container(image))
    return Remedy(
        summary="Restart the container, because it still uses the code and the mounts from its start",
        commands=(f"{_docker(image)} restart {name}",),
        reference=MOUNTS,
    )


def _remove_mount(image: ProjectImage) -> Remedy:
    name = quote_name(_container(image))
    mounts = () if image.container is None else image.container.mounts
    places = ", ".join(mount.destination for mount in mounts if mount.stale or mount.missing)
    if image.service is not None:
        commands: tuple[str, ...] = (
            f"{_compose(image)} up -d --force-recreate --renew-anon-volumes {quote_name(image.service)}",
        )
        how = "take it out of the compose file (an anonymous volume is renewed by this command)"
    else:
        commands = (f"{_docker(image)} inspect --format '{{{{json .Mounts}}}}' {name}",)
        how = "start the container without it; this shows what is mounted"
    return Remedy(
        summary=f"A mount at {places or 'its files'} hides the files of the image: {how}",
        commands=commands,
        reference=MOUNTS,
    )


def _reinstall(image: ProjectImage) -> Remedy:
    base = f"; if the base {image.base} has them, build that one first" if image.base else ""
    return Remedy(
        summary=f"Reinstall the packages: build without the cache{base}", commands=(_docker_build(image, "--no-cache"),)
    )


def _build_on_new_base(image: ProjectImage) -> Remedy:
    return Remedy(summary=f"Build again, because {image.base} has changed", commands=(_docker_build(image),))


def _remove_installed_copy(image: ProjectImage) -> Remedy:
    paths = (*image.shadowing_packages, *image.possibly_shadowing_packages)[:3]
    return Remedy(
        summary=f"An installed copy is older than the source ({', '.join(paths)}): install the copied source itself, "
        "after it is copied",
        commands=("RUN python -m pip install --no-deps -e .",),
        reference="https://setuptools.pypa.io/en/latest/userguide/development_mode.html",
    )


def _docker_build(image: ProjectImage, option: str = "") -> str:
    if image.service is not None:
        return " ".join(part for part in (f"{_compose(image)} build", option, quote_name(image.service)) if part)
    target = f"--target {quote_name(image.target)}" if image.target else ""
    build = f"{_docker(image)} build"
    parts = (build, option, target, f"-t {quote_name(image.image)}", f"-f {quote_value(image.dockerfile)}")
    return " ".join(part for part in (*parts, quote_value(image.context)) if part)


def _docker(image: ProjectImage) -> str:
    """Return the program that reaches the image's engine from a shell."""
    if image.by_podman_alone:
        return f"podman --url {quote_value(image.engine_address or '')}"
    return f"{_to_engine(image)}docker"


def _compose(image: ProjectImage) -> str:
    """Return the compose command; with Podman and without docker, compose version 1 with Podman's socket."""
    return f"{_to_engine(image)}{'docker-compose' if image.by_podman_alone else 'docker compose'}"


def _to_engine(image: ProjectImage) -> str:
    return f"DOCKER_HOST={quote_value(image.engine_address)} " if image.engine_address else ""


def _which(image: ProjectImage) -> str:
    """Return the options that select the target of `gpudoctor rebuild`."""
    if image.service is not None:
        return f" {quote_name(image.service)}"
    options = {
        "--image": quote_name(image.image),
        "--container": image.container and quote_name(image.container.name),
        "--dockerfile": quote_value(image.dockerfile),
        "--context": quote_value(image.context),
        "--target": image.target and quote_name(image.target),
    }
    return "".join(f" {option} {word}" for option, word in options.items() if word)


def _container(image: ProjectImage) -> str:
    return "" if image.container is None else image.container.name


_BY_CAUSE: dict[str, Callable[[ProjectImage], Remedy]] = {
    "base-image-moved": _build_on_new_base,
    "bind-source-replaced": _restart,
    "container-modified-in-place": _recreate,
    "container-runs-older-image": _recreate,
    "dependency-not-at-pinned-version": _reinstall,
    "mount-shadows-copy": _remove_mount,
    "process-older-than-mounted-source": _restart,
    "site-packages-shadow": _remove_installed_copy,
}
