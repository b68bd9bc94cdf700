"""Whether an image is stale, by what was compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.conclusions.image_verdicts import CLOCK_SECONDS, image_verdicts
from gpudoctor.model import CopiedFiles, Mounted, ProjectImage, RunningContainer

SAME = CopiedFiles(line=3, text="COPY . .", stage="0")
STALE = CopiedFiles(line=3, text="COPY . .", stage="0", stale=("a.py",), newest_change_at=200.0)
UNKNOWN = CopiedFiles(line=3, text="COPY . .", stage="0", unknown="too many files")
EMPTY = CopiedFiles(line=4, text="COPY *.yml ./", stage="0", empty_patterns=("*.yml",))


def image(*instructions: CopiedFiles, **about: Any) -> ProjectImage:
    return ProjectImage(image="a:1", dockerfile="/p/Dockerfile", context="/p", instructions=instructions, **about)


@pytest.mark.parametrize(
    ("subject", "verdict", "causes", "is_hint"),
    [
        pytest.param(image(SAME), "fresh", (), False, id="fresh"),
        pytest.param(image(SAME, EMPTY), "fresh", ("wildcard-matches-nothing",), True, id="a hint"),
        pytest.param(image(STALE, built_at=100.0), "stale", ("image-not-rebuilt",), False, id="stale"),
        pytest.param(image(STALE, UNKNOWN), "stale", ("image-not-rebuilt",), False, id="partly unknown"),
        pytest.param(image(SAME, UNKNOWN), "unknown", (), False, id="unknown"),
        pytest.param(image(SAME, unknown="no container"), "unknown", (), False, id="not looked at"),
    ],
)
def test_verdict(subject: ProjectImage, verdict: str, causes: tuple[str, ...], is_hint: bool) -> None:
    (found,) = image_verdicts((subject,))
    assert (found.verdict, found.causes, found.is_hint) == (verdict, causes, is_hint)


@pytest.mark.parametrize(
    ("changed_at", "code"), [(100.0, ""), (100.1, "/p/a.py"), (None, "")], ids=["as old", "newer", "unknown"]
)
def test_code_that_is_newer_than_the_process(changed_at: float | None, code: str) -> None:
    mount = Mounted(destination="/app", is_context=True, newest_change_at=changed_at, newest_code="/p/a.py")
    container = RunningContainer(
        name="web", image_id="1", is_running=True, started_at=100.0, keeps_code=True, mounts=(mount,)
    )
    (found,) = image_verdicts((image(SAME, container=container),))
    assert found.newer_code == code
    assert found.subject == "container web"


def test_the_path_of_each_image() -> None:
    assert [found.fact for found in image_verdicts((image(), image()))] == ["images[0].image_id", "images[1].image_id"]
    assert image_verdicts(None) == ()


@pytest.mark.parametrize(
    ("about", "in_mount"),
    [
        pytest.param({"is_running": False}, True, id="it does not run"),
        pytest.param({"keeps_code": False}, True, id="its program reads files again"),
        pytest.param({}, False, id="a mount of another folder"),
    ],
)
def test_code_that_a_process_does_not_keep(about: dict[str, Any], in_mount: bool) -> None:
    mount = Mounted(destination="/app", is_context=in_mount, newest_change_at=200.0, newest_code="/p/a.py")
    known: dict[str, Any] = {"is_running": True, "keeps_code": True, **about}
    container = RunningContainer(name="web", image_id="1", started_at=100.0, mounts=(mount,), **known)
    (found,) = image_verdicts((image(SAME, container=container),))
    assert (found.verdict, found.newer_code) == ("fresh", "")


CHANGED = CopiedFiles(line=3, text="COPY . .", stage="0", stale=("a.py",), newest_change_at=200.0)
KEPT = replace(CHANGED, may_be_kept=True)
NAMED = replace(CHANGED, text="COPY $V .")


@pytest.mark.parametrize(
    ("changed", "built_after", "by_buildkit", "cause"),
    [
        pytest.param([KEPT], 0.1, None, "image-rebuilt-but-stale", id="built since, and may have kept it"),
        pytest.param([CHANGED, KEPT], 0.1, None, "image-rebuilt-but-stale", id="one of two may be kept"),
        pytest.param([KEPT], 0.0, None, "image-not-rebuilt", id="clocks differ as much"),
        pytest.param([KEPT], None, None, "image-not-rebuilt", id="nobody knows when it was built"),
        pytest.param(
            [KEPT, replace(KEPT, newest_change_at=201.0)], 0.5, None, "image-not-rebuilt", id="the newest change counts"
        ),
        pytest.param([replace(KEPT, newest_change_at=None)], 0.1, None, "image-not-rebuilt", id="no time of a change"),
        pytest.param([CHANGED], 0.1, False, "image-not-rebuilt", id="nothing explains it"),
        pytest.param([NAMED], 0.1, False, "dockerfile-differs-from-image", id="another argument"),
        pytest.param([NAMED, CHANGED], 0.1, False, "image-not-rebuilt", id="an argument in one of two"),
        pytest.param([NAMED], 0.1, True, "image-not-rebuilt", id="BuildKit shows the sources"),
        pytest.param([NAMED], 0.1, None, "image-not-rebuilt", id="nobody knows the builder"),
        pytest.param([NAMED], 0.0, False, "image-not-rebuilt", id="an argument, and no build since"),
    ],
)
def test_why_it_is_stale(
    changed: list[CopiedFiles], built_after: float | None, by_buildkit: bool | None, cause: str
) -> None:
    built_at = None if built_after is None else 200.0 + CLOCK_SECONDS + built_after
    (found,) = image_verdicts((image(*changed, built_at=built_at, by_buildkit=by_buildkit),))
    assert (found.verdict, found.causes) == ("stale", (cause,))
