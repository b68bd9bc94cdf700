"""Images and containers whose truth is known, built by a real engine with both builders."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import CheckResult, CopiedFiles
from tests.containers.engine import BUILDERS, base_image
from tests.containers.scenarios.fresh import FRESH
from tests.containers.scenarios.place import TREE, Place
from tests.containers.scenarios.table import SCENARIOS, Scenario

pytestmark = pytest.mark.usefixtures("engine_alone")

__all__ = ["base_image"]

Maker = Callable[[str], Place]


@pytest.fixture
def make_place(tmp_path: Path, base_image: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Maker]:
    """Return what makes a project for a builder; everything that it makes is removed after the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made: list[Place] = []

    def make(builder: str) -> Place:
        root = tmp_path / uuid.uuid4().hex  # BuildKit has one copy for all contexts whose folders have the same name
        place = Place(root=root, builder=builder, base=base_image)
        made.append(place)
        for path, content in TREE.items():
            place.write(path, content)
        (place.root / "run.sh").chmod(0o755)
        return place

    yield make
    for place in made:
        place.remove()


def judged(result: CheckResult) -> tuple[str, tuple[str, ...]]:
    (image,) = result.findings[0].details["images"]
    return image["verdict"], tuple(image["causes"])


def paths(instructions: tuple[CopiedFiles, ...], kind: str) -> set[str]:
    return {path for item in instructions for path in getattr(item, kind)}


def every_scenario() -> Iterator[Any]:
    """Yield each scenario with BuildKit, and every second one with the classic builder too."""
    for number, (name, scenario) in enumerate(SCENARIOS.items()):
        for builder in scenario.builders[number % 2 - 2 :]:
            yield pytest.param(scenario, builder, id=f"{name}, {builder}")


@pytest.mark.parametrize(("scenario", "builder"), list(every_scenario()))
def test_scenario(scenario: Scenario, builder: str, make_place: Maker) -> None:
    place = make_place(builder)
    place.arguments = {name: value.replace("TAG", place.tag) for name, value in scenario.arguments.items()}
    place.dockerfile(scenario.dockerfile)
    if scenario.is_built:
        place.build()
    scenario.act(place)
    verdict, causes = scenario.verdict, scenario.causes
    if scenario.needs_old_image and place.has_lost_image():
        causes = tuple(cause for cause in causes if cause != "container-runs-older-image")
        verdict = "stale" if causes else "unknown"
    assert judged(place.check()) == (verdict, causes)
    instructions = place.look().instructions
    assert paths(instructions, "stale") == scenario.stale
    assert paths(instructions, "missing") == scenario.missing
    assert paths(instructions, "extra") == scenario.extra


@pytest.mark.parametrize(
    ("dockerfile", "builder"),
    [pytest.param(text, builder, id=f"{name}, {builder}") for name, text in FRESH.items() for builder in BUILDERS],
)
def test_a_new_image_is_fresh(dockerfile: str, builder: str, make_place: Maker) -> None:
    place = make_place(builder)
    place.dockerfile(dockerfile)
    place.build()
    assert judged(place.check()) == ("fresh", ())
