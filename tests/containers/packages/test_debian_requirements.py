"""Requirements that changed after pip installed them: real packages of a real pip, in all the places it has."""

from __future__ import annotations

import pytest

from gpudoctor.containers.packages import installed as image_packages
from gpudoctor.model import ProjectImage
from gpudoctor.testing import run_check
from tests.containers.debian import PIP, Shelf, edited
from tests.containers.scenarios.place import Place

pytestmark = pytest.mark.engine

NEEDS = "torchlike==2.1.0\nnumpylike==1.26.0\n"
NEWER = NEEDS.replace("2.1.0", "2.3.1")
UNMET = {("torchlike==2.3.1", "2.1.0")}

INCLUDING = {
    "requirements.txt": "-r deps/base.txt\n-c constraints.txt\ntorchlike==2.1.0\n",
    "deps/base.txt": "numpylike==1.26.0\n",
    "constraints.txt": "numpylike<2\n",
    "train.py": "import torchlike\n",
}
INSTALLED = PIP + "COPY . .\nRUN pip install -r requirements.txt\n"


def judged(image: ProjectImage) -> tuple[str, tuple[str, ...]]:
    (about,) = run_check("docker-stale-layers", images=(image,)).findings[0].details["images"]
    return about["verdict"], tuple(about["causes"])


def unmet(place: Place) -> set[tuple[str, str]]:
    return {(item.requirement, item.installed) for item in place.look().unmet_requirements}


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        pytest.param("requirements.txt", NEWER, UNMET, id="another pin"),
        pytest.param("requirements.txt", "torchlike>=2,<3\nnumpylike~=1.26\n", set(), id="ranges that are met"),
        pytest.param("requirements.txt", "torchlike<2\nnumpylike\n", {("torchlike<2", "2.1.0")}, id="a range"),
        pytest.param("requirements.txt", f"{NEEDS}newlike\n", {("newlike", "")}, id="a new package"),
        pytest.param(
            "requirements.txt",
            "torchlike[cuda]==2.1.0\nnumpylike\n",
            {("cudalike>=12", "")},
            id="an extra of a package",
        ),
        pytest.param("requirements.txt", f'{NEEDS}x==1; sys_platform=="win32"\n', set(), id="for another system"),
        pytest.param("requirements.txt", f'{NEEDS}x==1; python_version<"3.8"\n', set(), id="for another Python"),
        pytest.param(
            "requirements.txt", f'{NEEDS}x==1; platform_machine=="s390x"\n', set(), id="for another processor"
        ),
        pytest.param(
            "requirements.txt", f"torchlike==2.3.1 \\\n    --hash=sha256:{'a' * 64}\nnumpylike\n", UNMET, id="hashes"
        ),
        pytest.param("requirements.txt", "-e .\ntorchlike\nnumpylike\n", set(), id="an editable one"),
        pytest.param(
            "requirements.txt",
            "numpylike\ntorchlike @ https://x.example/torchlike-2.3.1-py3-none-any.whl\n",
            UNMET,
            id="the address of a wheel",
        ),
        pytest.param(
            "requirements.txt", "numpylike\ntorchlike @ git+https://x.example/t.git@v3\n", set(), id="of a tag"
        ),
        pytest.param("deps/base.txt", "numpylike==2.0.0\n", {("numpylike==2.0.0", "1.26.0")}, id="an included file"),
        pytest.param("constraints.txt", "numpylike<1.26\n", {("numpylike<1.26", "1.26.0")}, id="constraints"),
        pytest.param("constraints.txt", "newlike==1\nsetuptools==1\n", set(), id="constraints of what pip left alone"),
    ],
)
def test_a_file_of_requirements_is_edited(shelf: Shelf, file: str, text: str, expected: set[tuple[str, str]]) -> None:
    place = shelf.place("classic", INSTALLED, INCLUDING)
    with edited(place, {file: text}):
        image = place.look()
        assert {(item.requirement, item.installed) for item in image.unmet_requirements} == expected
        assert all(item.file == file for item in image.unmet_requirements)
        assert judged(image)[1] == ("image-not-rebuilt", *(["dependency-not-at-pinned-version"] if expected else []))
        assert [item.stale for item in image.instructions] == [(), (file,)]


def test_packages_too_many_to_be_listed(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_packages, "LISTED_BYTES", 1 << 10)
    place = shelf.place("classic", INSTALLED, INCLUDING)
    with edited(place, {"requirements.txt": f"{NEWER}newlike\n"}):
        assert unmet(place) == UNMET  # whether newlike is there, nobody can tell


PROJECT = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "app"
version = "1"
dependencies = ["torchlike==2.1.0"]
optional-dependencies = {gpu = ["cudalike==12.4"], docs = ["sphinxlike"]}
[tool.setuptools]
packages = ["app"]
"""
FILES = {"requirements.txt": NEEDS, "pyproject.toml": PROJECT, "app/__init__.py": "", "app/main.py": "x = 1\n"}
INSTALL = "install --no-build-isolation --no-cache-dir"
VENV = "RUN python3 -m venv --without-pip /opt/venv\n"
INTO_VENV = "COPY requirements.txt .\nRUN pip --python /opt/venv/bin/python install -r requirements.txt\n"
START = 'COPY app app\nCMD ["python3", "-m", "app.main"]\n'

PLACES = {
    "a virtual environment of the command": (
        "buildkit",
        (PIP + VENV + INTO_VENV + START).replace("/opt/venv", "/srv/env").replace('"python3"', '"/srv/env/bin/python"'),
    ),
    "the home folder": (
        "buildkit",
        PIP + "COPY requirements.txt .\nRUN pip install --user -r requirements.txt\n" + START,
    ),
    "a folder of PYTHONPATH": (
        "classic",
        PIP + "COPY requirements.txt .\nRUN pip install -t /deps -r requirements.txt\nENV PYTHONPATH=/deps\n" + START,
    ),
    "another stage": (
        "classic",
        PIP.replace("BASE", "BASE AS one") + VENV + INTO_VENV + "FROM BASE\nWORKDIR /app\n"
        "COPY --from=one /opt/venv /opt/venv\nENV PATH=/opt/venv/bin:$PATH\n" + START,
    ),
    "a mounted file, with a mounted cache": (
        "buildkit",
        PIP + "RUN --mount=type=bind,source=requirements.txt,target=/tmp/deps.txt "
        "--mount=type=cache,target=/root/.cache pip install -r /tmp/deps.txt\n" + START,
    ),
    "a mounted folder": (
        "buildkit",
        PIP + "RUN --mount=type=bind,target=/src cd /src && pip install -r requirements.txt\n" + START,
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_where_requirements_are_installed_from_and_to(shelf: Shelf, place: str) -> None:
    builder, dockerfile = PLACES[place]
    project = shelf.place(builder, dockerfile, FILES)
    assert judged(project.look()) == ("fresh", ())
    with edited(project, {"requirements.txt": NEWER}):
        image = project.look()
        assert {(item.requirement, item.installed) for item in image.unmet_requirements} == UNMET
        assert judged(image)[0] == "stale"
        assert "dependency-not-at-pinned-version" in judged(image)[1]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        pytest.param(('"torchlike==2.1.0"', '"torchlike==2.3.1"'), UNMET, id="its dependencies"),
        pytest.param(("cudalike==12.4", "cudalike>=13"), {("cudalike>=13", "12.4")}, id="an extra that is installed"),
        pytest.param(("sphinxlike", "sphinxlike==9"), set(), id="an extra that is not installed"),
        pytest.param(('version = "1"', 'version = "2"'), set(), id="its version"),
    ],
)
def test_a_project_that_pip_installs(shelf: Shelf, edit: tuple[str, str], expected: set[tuple[str, str]]) -> None:
    place = shelf.place("buildkit", PIP + f"COPY . .\nRUN pip {INSTALL} .[gpu]\n", FILES)
    with edited(place, {"pyproject.toml": PROJECT.replace(*edit)}):
        assert unmet(place) == expected
        assert place.look().instructions[1].stale == ("pyproject.toml",)


@pytest.mark.parametrize(("builder", "how"), [("buildkit", ".[gpu]"), ("classic", "-e .")])
def test_a_new_image_of_an_installed_project_is_fresh(shelf: Shelf, builder: str, how: str) -> None:
    place = shelf.place(builder, PIP + f"COPY . .\nRUN pip {INSTALL} {how}\n", FILES)
    assert judged(place.look()) == ("fresh", ())
    with edited(place, {"app/main.py": "x = 2\n"}):
        assert judged(place.look()) == ("stale", ("image-not-rebuilt",))
