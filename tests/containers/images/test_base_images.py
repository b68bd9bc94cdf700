"""The image that another one is built on: whether it is that, has moved on, or has another tag; and what it tells."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, ImageNotFound

from gpudoctor.containers.builds.plan import Plan, read_plan
from gpudoctor.containers.builds.stages import Base
from gpudoctor.containers.images.base_images import (
    MAXIMUM_IMAGES,
    bases_of,
    differing_arguments,
    differing_defaults,
    environment_of,
    has_base_moved,
    inspect_bases,
    is_built_on,
    tag_built_on,
    written_at,
)
from gpudoctor.containers.images.history import Entry, HistoryMatch, entries_of, match_history

OLD, NEW = "2026-11-01T00:00:00Z", "2026-11-20T00:00:00Z"
NO_FIT = HistoryMatch(entries={})


def image(*layers: str, created: str = OLD, **about: Any) -> dict[str, Any]:
    """Return an image as the engine describes it."""
    plain = {"Id": "sha256:" + "-".join(layers), "Os": "linux", "Architecture": "amd64", "Created": created}
    return {**plain, "RootFS": {"Layers": list(layers)}, **about}


class Api:
    """An engine with images by their tags, the newest first. histories: of an image, from its newest line on."""

    def __init__(self, images: dict[str, dict[str, Any]], histories: dict[str, list[str]] | None = None) -> None:
        self._images = images
        self._histories = histories or {}
        self.inspected: list[str] = []

    def images(self) -> list[dict[str, Any]]:
        return [{"Id": about["Id"], "RepoTags": [tag]} for tag, about in self._images.items()]

    def inspect_image(self, name: str) -> dict[str, Any]:
        self.inspected.append(name)
        if name not in self._images:
            raise ImageNotFound("no such image", response=response(HTTPStatus.NOT_FOUND))
        return self._images[name]

    def history(self, image_id: str) -> list[dict[str, Any]]:
        return [{"CreatedBy": text, "Created": 1} for text in self._histories.get(image_id, [])]


def response(status: int) -> Any:
    return SimpleNamespace(status_code=status, reason="", url="http://engine")


def plan(folder: Path, dockerfile: str) -> Plan:
    file = folder / "Dockerfile"
    file.write_text(dockerfile)
    return read_plan(file, folder, None, {})


@pytest.mark.parametrize(
    ("base", "built_on"),
    [
        pytest.param(image("a", "b"), True, id="its first layers"),
        pytest.param(image("a", "b", "c"), True, id="all of its layers"),
        pytest.param(image("a", "x"), False, id="another second layer"),
        pytest.param(image("b"), False, id="a layer from its middle"),
        pytest.param(image("a", "b", "c", "d"), False, id="more layers than it has"),
    ],
)
def test_is_built_on(base: dict[str, Any], built_on: bool) -> None:
    assert is_built_on(image("a", "b", "c"), base) is built_on


@pytest.mark.parametrize(
    ("base", "moved"),
    [
        pytest.param(image("a", created=NEW), False, id="still the same"),
        pytest.param(image("x", created=NEW), True, id="a newer one"),
        pytest.param(image("x", created=OLD), False, id="an older one, which a builder may leave as it is"),
        pytest.param(image("x", Metadata={"LastTagTime": NEW}), True, id="an older one, tagged afterwards"),
        pytest.param(image("x", created=NEW, Architecture="arm64"), None, id="of another platform"),
        pytest.param(None, None, id="not there"),
    ],
)
def test_has_base_moved(base: dict[str, Any] | None, moved: bool | None) -> None:
    assert has_base_moved(image("a", "b", created="2026-11-10T00:00:00Z"), base) is moved


def test_when_an_image_was_written() -> None:
    assert written_at({"Created": "1970-01-01T00:01:00Z"}) == 60.0
    tagged = {"Created": "1970-01-01T00:01:00Z", "Metadata": {"LastTagTime": "1970-01-01T00:02:00Z"}}
    assert written_at(tagged) == 120.0
    assert written_at({"Created": None, "Metadata": {"LastTagTime": "0001-01-01T00:00:00Z"}}) == 0.0, "never tagged"


BUILT = image("a", "b", "c")
BEFORE = HistoryMatch(entries={}, before=(Entry(text="ADD rootfs", created_at=1), Entry(text="CMD sh", created_at=1)))
HISTORY = ["CMD sh", "ADD rootfs"]


@pytest.mark.parametrize(
    ("images", "histories", "tag"),
    [
        pytest.param({"base:1": image("a")}, {"sha256:a": HISTORY}, "base:1", id="it"),
        pytest.param({"base:1": image("a")}, {"sha256:a": ["ADD rootfs"]}, None, id="an image below it"),
        pytest.param({"base:1": image("x")}, {"sha256:x": HISTORY}, None, id="other layers"),
        pytest.param({"app": BUILT}, {BUILT["Id"]: HISTORY}, None, id="the image itself"),
        pytest.param({"empty": image()}, {"sha256:": HISTORY}, None, id="an image without layers"),
        pytest.param({"<none>:<none>": image("a")}, {"sha256:a": HISTORY}, None, id="without a tag"),
        pytest.param(
            {"other": image("x"), "base:1": image("a"), "base:2": image("a", "b")},
            {"sha256:a": HISTORY, "sha256:a-b": ["RUN more", *HISTORY]},
            "base:1",
            id="one of several",
        ),
    ],
)
def test_tag_built_on(images: dict[str, dict[str, Any]], histories: dict[str, list[str]], tag: str | None) -> None:
    assert tag_built_on(Api(images, histories), BUILT, BEFORE) == tag  # type: ignore[arg-type]


def test_only_the_newest_images_are_looked_through() -> None:
    others = {f"other:{number}": image("x") for number in range(MAXIMUM_IMAGES)}
    api = Api({**others, "base:1": image("a")}, {"sha256:a": HISTORY})
    assert tag_built_on(api, BUILT, BEFORE) is None  # type: ignore[arg-type]
    assert len(api.inspected) == MAXIMUM_IMAGES


def test_bases_that_the_engine_does_not_have_are_left_out(tmp_path: Path) -> None:
    made = plan(tmp_path, "FROM one AS first\nRUN a\nFROM two\nCOPY --from=first /x /x\n")
    api = Api({"two": image("a")})
    assert inspect_bases(api, made) == {"two": image("a")}  # type: ignore[arg-type]
    assert api.inspected == ["one", "two"]


def test_an_engine_that_fails_is_no_missing_image(tmp_path: Path) -> None:
    class Failing(Api):
        def inspect_image(self, name: str) -> dict[str, Any]:
            raise APIError("the disk is full", response=response(HTTPStatus.INTERNAL_SERVER_ERROR))

    with pytest.raises(APIError, match="500 Server Error"):
        inspect_bases(Failing({}), plan(tmp_path, "FROM one\n"))  # type: ignore[arg-type]


def test_what_a_base_hands_over(tmp_path: Path) -> None:
    config = {"WorkingDir": "/work", "Env": ["PATH=/bin", "EMPTY=", "URL=a=b"], "OnBuild": ["COPY . /src"]}
    base = image("a", Config=config)
    expected = Base(
        directory="/work", environment={"PATH": "/bin", "EMPTY": "", "URL": "a=b"}, triggers=("COPY . /src",)
    )
    assert bases_of(image("a", "b"), {"one": base}, plan(tmp_path, "FROM one\n"), NO_FIT) == {"one": expected}
    assert environment_of({"Env": None}) == {}


@pytest.mark.parametrize("bases", [{}, {"one": image("x")}], ids=["gone", "moved on"])
def test_if_the_base_is_gone_the_image_shows(tmp_path: Path, bases: dict[str, dict[str, Any]]) -> None:
    """What the Dockerfile sets itself is not the base's."""
    made = plan(tmp_path, "FROM one\nENV OWN=1\nWORKDIR /app\n")
    history = ["WORKDIR /app", "ENV OWN=1", "/bin/sh -c make", "WORKDIR sub", "WORKDIR /base # buildkit", "ADD rootfs"]
    answer = [{"CreatedBy": text, "Created": 1} for text in history]
    laid = match_history(entries_of(answer), made.stages, made.target)
    about = image("a", "b", Config={"WorkingDir": "/app", "Env": ["OWN=1", "PATH=/bin"]})
    assert bases_of(about, bases, made, laid)["one"] == Base(directory="/base", environment={"PATH": "/bin"})


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


def test_arguments_of_stages_that_the_image_does_not_go_on_from_are_not_compared(tmp_path: Path) -> None:
    text = "FROM base AS one\nARG V=1\nFROM other AS two\nARG W=1\nFROM one\nRUN x\nFROM other\nARG X=1\n"
    (tmp_path / "Dockerfile").write_text(text)
    plan = read_plan(tmp_path / "Dockerfile", tmp_path, "2", {"V": "2", "W": "2", "X": "2"})
    entries = entries_of([{"CreatedBy": "|3 V=1 W=1 X=1 /bin/sh -c x", "Created": 1}])
    assert differing_arguments(match_history(entries, plan.stages, plan.target), plan) == (
        "V: '1' in the image, '2' asked for",
    )
