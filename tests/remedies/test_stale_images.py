"""What mends a stale image or container, by the cause."""

from dataclasses import replace

import pytest

from gpudoctor.model import Mounted, ProjectImage, RunningContainer
from gpudoctor.remedies.stale_images import refresh_image, stale_image

IMAGE = ProjectImage(image="app:1", dockerfile="/p/Dockerfile", context="/p", base="python:3.12", target="prod")
CONTAINER = ProjectImage(
    image="app:1",
    dockerfile="/p/Dockerfile",
    context="/p",
    container=RunningContainer(name="web", image_id="sha256:1", mounts=(Mounted(destination="/app", stale=("a",)),)),
)
SERVICE = ProjectImage(image="p-web", dockerfile="/p/Dockerfile", context="/p", service="web")
ALONE = "--image app:1 --dockerfile /p/Dockerfile --context /p --target prod"
BUILT = "--target prod -t app:1 -f /p/Dockerfile /p"
WHICH = "--image app:1 --container web --dockerfile /p/Dockerfile --context /p"


@pytest.mark.parametrize(
    ("image", "cause", "command"),
    [
        (SERVICE, "image-not-rebuilt", "gpudoctor rebuild web"),
        (IMAGE, "image-not-rebuilt", f"gpudoctor rebuild {ALONE}"),
        (CONTAINER, "image-rebuilt-but-stale", f"gpudoctor rebuild {WHICH} --recreate"),
        (CONTAINER, "container-runs-older-image", f"gpudoctor rebuild {WHICH} --recreate"),
        (SERVICE, "container-runs-older-image", "docker compose up -d --force-recreate web"),
        (SERVICE, "container-modified-in-place", "docker compose up -d --force-recreate web"),
        (CONTAINER, "bind-source-replaced", "docker restart web"),
        (CONTAINER, "process-older-than-mounted-source", "docker restart web"),
        (CONTAINER, "mount-shadows-copy", "docker inspect --format '{{json .Mounts}}' web"),
        (SERVICE, "mount-shadows-copy", "docker compose up -d --force-recreate --renew-anon-volumes web"),
        (IMAGE, "base-image-moved", f"docker build {BUILT}"),
        (SERVICE, "base-image-moved", "docker compose build web"),
        (SERVICE, "dependency-not-at-pinned-version", "docker compose build --no-cache web"),
        (IMAGE, "dependency-not-at-pinned-version", f"docker build --no-cache {BUILT}"),
    ],
)  # fmt: skip
def test_the_command(image: ProjectImage, cause: str, command: str) -> None:
    assert stale_image(image, cause).commands == (command,)


def test_what_fixes_several_causes_is_given_once() -> None:
    causes = ("image-not-rebuilt", "wildcard-matches-nothing", "image-rebuilt-but-stale", "base-image-moved")
    remedies = refresh_image(IMAGE, causes)
    assert [remedy.commands for remedy in remedies] == [
        (f"gpudoctor rebuild {ALONE}",),
        (f"docker build {BUILT}",),
    ]


def test_the_mount_and_the_base_are_named() -> None:
    assert "mount at /app hides" in stale_image(CONTAINER, "mount-shadows-copy").summary
    assert "python:3.12 has changed" in stale_image(IMAGE, "base-image-moved").summary


PODMAN = "unix:///run/podman/podman.sock"


@pytest.mark.parametrize(
    ("image", "alone", "command"),
    [
        (CONTAINER, False, f"DOCKER_HOST={PODMAN} docker restart web"),
        (CONTAINER, True, f"podman --url {PODMAN} restart web"),
    ],
)
def test_the_command_reaches_the_engine_that_was_asked(image: ProjectImage, alone: bool, command: str) -> None:
    there = replace(image, engine_address=PODMAN, by_podman_alone=alone)
    assert stale_image(there, "bind-source-replaced").commands == (command,)


@pytest.mark.parametrize(("alone", "compose"), [(False, "docker compose"), (True, "docker-compose")])
def test_compose_reaches_the_engine_that_was_asked(alone: bool, compose: str) -> None:
    there = replace(SERVICE, engine_address=PODMAN, by_podman_alone=alone)
    command = f"DOCKER_HOST={PODMAN} {compose} up -d --force-recreate web"
    assert stale_image(there, "container-runs-older-image").commands == (command,)


def test_paths_are_quoted_and_what_is_no_name_is_refused() -> None:
    image = ProjectImage(image="a/b:1", dockerfile="/p q/Dockerfile", context="/p; q", service=None)
    (command,) = stale_image(image, "image-not-rebuilt").commands
    assert "--image a/b:1 --dockerfile '/p q/Dockerfile' --context '/p; q'" in command
    (refused,) = stale_image(replace(image, image="a; rm -rf ~"), "image-not-rebuilt").commands
    assert not refused.isprintable()


@pytest.mark.parametrize(
    ("certain", "possible", "named"),
    [
        (("/a",), (), "(/a)"),
        (("/a", "/b"), ("/c",), "(/a, /b, /c)"),
        (("/a", "/b"), ("/c", "/d"), "(/a, /b, /c)"),
    ],
)
def test_three_installed_copies_are_named(certain: tuple[str, ...], possible: tuple[str, ...], named: str) -> None:
    image = replace(IMAGE, shadowing_packages=certain, possibly_shadowing_packages=possible)
    remedy = stale_image(image, "site-packages-shadow")
    assert named in remedy.summary
    assert remedy.commands == ("RUN python -m pip install --no-deps -e .",)
