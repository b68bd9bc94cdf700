"""Build arguments that an image was built with, as its history tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudoctor.containers.builds.plan import read_plan
from gpudoctor.containers.images.arguments import differing_arguments, differing_defaults
from gpudoctor.containers.images.history import entries_of, match_history


def differing(folder: Path, run: str, **given: str) -> tuple[str, ...]:
    """Return what differs for an image whose one RUN was written as `run`."""
    (folder / "Dockerfile").write_text("FROM base\nARG V=1\nARG W\nARG API_TOKEN\nRUN x\n")
    plan = read_plan(folder / "Dockerfile", folder, None, given)
    entries = entries_of([{"CreatedBy": run, "Created": 1}])
    return differing_arguments(match_history(entries, plan.stages, plan.target), plan)


@pytest.mark.parametrize("prefix", ["", "RUN "], ids=["classic", "buildkit"])
def test_another_value(tmp_path: Path, prefix: str) -> None:
    assert differing(tmp_path, f"{prefix}|2 V=1 W=a b /bin/sh -c x", V="2", W="a b") == (
        "V: '1' in the image, '2' asked for",
    )


@pytest.mark.parametrize(
    ("run", "given"),
    [
        pytest.param("|1 V=2 /bin/sh -c x", {"V": "2"}, id="the same value"),
        pytest.param("|1 V=2 /bin/sh -c x", {}, id="none is given"),
        pytest.param("|1 V=2 /bin/sh -c x", {"OTHER": "1"}, id="one that is not declared"),
        pytest.param("/bin/sh -c x", {"V": "2"}, id="the history does not tell"),
        pytest.param("|1 V=a /bin/sh -c b /bin/sh -c x", {"V": "a /bin/sh -c b"}, id="a value like a command"),
    ],
)
def test_nothing_differs(tmp_path: Path, run: str, given: dict[str, str]) -> None:
    assert differing(tmp_path, run, **given) == ()


@pytest.mark.parametrize(
    ("built_at", "given", "expected"),
    [
        pytest.param(0.0, {}, ("V: '2' in the image, '1' asked for",), id="the Dockerfile was written after the build"),
        pytest.param(1e12, {}, (), id="before it: the value was given"),
        pytest.param(0.0, {"V": "3"}, (), id="another value is given: told by what a RUN read"),
    ],
)
def test_another_default(tmp_path: Path, built_at: float, given: dict[str, str], expected: tuple[str, ...]) -> None:
    (tmp_path / "Dockerfile").write_text("FROM base\nARG V=1\nARG W\n")
    plan = read_plan(tmp_path / "Dockerfile", tmp_path, None, given)
    history = [{"CreatedBy": text, "Created": 1, "Comment": "buildkit.dockerfile.v0"} for text in ("ARG W", "ARG V=2")]
    found = match_history(entries_of(history), plan.stages, plan.target)
    assert differing_defaults(found, plan, built_at) == expected


def test_a_secret_is_not_shown(tmp_path: Path) -> None:
    (text,) = differing(tmp_path, "|1 API_TOKEN=abc /bin/sh -c x", API_TOKEN="def")
    assert text == "API_TOKEN: *** in the image, *** asked for"
