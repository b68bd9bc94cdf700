"""Installed copies of packages that are copied too: which of them are older, and whether the command imports them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers.builds.plan import read_plan
from gpudoctor.containers.images.facts import ImageFacts
from gpudoctor.containers.images.reader import ContainerFiles
from gpudoctor.containers.packages import shadowing
from gpudoctor.containers.packages.shadowing import copied_packages
from tests.containers.fake_engine import SECONDS, FakeEngine, Tree

SITE = "/usr/lib/python3/site-packages"
COPIED = {
    "/app/pkg/__init__.py": "",
    "/app/pkg/a.py": "a = 1",
    "/app/pkg/sub/__init__.py": "",
    "/app/pkg/sub/b.py": "b",
}
OLD = {f"{SITE}/pkg/__init__.py": "", f"{SITE}/pkg/a.py": "a = 0", f"{SITE}/pkg/sub/b.py": "b"}
COPY = "COPY src /app # buildkit"
INSTALL = "RUN pip install . # buildkit"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for path, text in {**COPIED, "/app/script.py": ""}.items():
        file = tmp_path / path.replace("/app", "src", 1)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (SECONDS - 100, SECONDS - 100))
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY src /app\nRUN pip install .\n")
    return tmp_path


def found(
    root: Path, installed: Tree, command: str = "/usr/bin/train", times: dict[str, float] | None = None, **config: Any
) -> dict[str, Any]:
    """Return what the report says about the installed files beside the copied ones."""
    engine: Any = FakeEngine()
    tree = {**COPIED, "/app/script.py": "", **installed}
    engine.add_image("app:1", tree=tree, history=[(COPY, SECONDS - 50), INSTALL], times=times)
    facts = ImageFacts(engine, "app:1", read_plan(root / "Dockerfile", root, None, {}))
    files = ContainerFiles(engine, engine.create_container("app:1")["Id"])
    told = {"Cmd": command.split(), "WorkingDir": "/", **config}
    return shadowing.shadowing(files, [SITE], facts, told)


BEFORE = dict.fromkeys(OLD, SECONDS - 60.0)
COPIES = (f"{SITE}/pkg",)


@pytest.mark.parametrize(
    ("command", "config", "expected"),
    [
        pytest.param("python /other/script.py", {}, {"shadowing_packages": COPIES}, id="a script of another folder"),
        pytest.param("python /app/script.py", {}, {"shadowing_packages": ()}, id="a script beside the source"),
        pytest.param("python -m pkg", {"WorkingDir": "/app"}, {"shadowing_packages": ()}, id="in its folder"),
        pytest.param(
            "python -m pkg", {"Env": ["PYTHONPATH=/x:/app/"]}, {"shadowing_packages": ()}, id="the source on PYTHONPATH"
        ),
        pytest.param(
            "python -m pkg", {"Env": ["PYTHONPATH=:"]}, {"shadowing_packages": COPIES}, id="an empty PYTHONPATH"
        ),
        pytest.param("/bin/true", {}, {"possibly_shadowing_packages": COPIES}, id="no Python"),
        pytest.param(
            "/bin/true", {"Env": ["PYTHONPATH=/app"]}, {"possibly_shadowing_packages": ()}, id="no Python, but its path"
        ),
    ],
)
def test_what_the_command_imports(root: Path, command: str, config: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found(root, OLD, command, BEFORE, **config) == expected


def without(*names: str) -> Tree:
    return {path: text for path, text in OLD.items() if path.removeprefix(f"{SITE}/pkg/") not in names}


def more(*names: str) -> Tree:
    return {f"{SITE}/pkg/{name}": "other" for name in names}


@pytest.mark.parametrize(
    ("installed", "times", "is_older"),
    [
        pytest.param(OLD, BEFORE, True, id="older"),
        pytest.param({}, {}, False, id="not installed"),
        pytest.param({**OLD, f"{SITE}/pkg/a.py": "a = 1"}, BEFORE, False, id="the same"),
        pytest.param({**OLD, f"{SITE}/pkg/a.py": "a = 10"}, BEFORE, True, id="of another size"),
        pytest.param({**OLD, **more("x.py", "y.py", "z.py")}, BEFORE, True, id="half of it is ours"),
        pytest.param({**OLD, **more("x.py", "y.py", "z.py", "w.py")}, BEFORE, False, id="somebody else's"),
        pytest.param({**OLD, **more("x.so", "y.so", "z.so", "w.so")}, BEFORE, True, id="with libraries"),
        pytest.param({f"{SITE}/pkg/__init__.py": "x"}, BEFORE, False, id="nothing but the start of a package"),
        pytest.param({**without("a.py"), **more("_version.py")}, BEFORE, False, id="another version file"),
        pytest.param(OLD, {}, False, id="installed after the copy"),
        pytest.param(OLD, {**BEFORE, f"{SITE}/pkg/a.py": SECONDS - 50.0}, False, id="installed with the copy"),
        pytest.param(OLD, {**BEFORE, f"{SITE}/pkg/a.py": SECONDS - 51.0}, True, id="just before the copy"),
        pytest.param(OLD, {f"{SITE}/pkg/a.py": SECONDS - 60.0}, True, id="other files do not count"),
    ],
)
def test_an_installed_copy(root: Path, installed: Tree, times: dict[str, float], is_older: bool) -> None:
    expected = {"shadowing_packages": COPIES} if is_older else {}
    assert found(root, installed, "python /other/x.py", times) == expected


@pytest.mark.parametrize("name", ["_version.py", "version.py", "__version__.py"])
def test_files_that_an_installation_writes_again(root: Path, name: str) -> None:
    (root / "src" / "pkg" / name).write_text("1")
    os.utime(root / "src" / "pkg" / name, (SECONDS - 100, SECONDS - 100))
    installed = {f"{SITE}/pkg/a.py": "a = 1", f"{SITE}/pkg/{name}": "2"}
    assert found(root, installed, "python /other/x.py", dict.fromkeys(installed, SECONDS - 60.0)) == {}


def test_the_packages_that_are_copied(root: Path) -> None:
    copies = read_plan(root / "Dockerfile", root, None, {}).copies
    (package,) = copied_packages(copies, [SITE])
    assert (package.folder, sorted(package.modules)) == (
        "/app/pkg",
        ["__init__.py", "a.py", "sub/__init__.py", "sub/b.py"],
    )
    assert len(package.traced) == 4
    assert copied_packages(copies, ["/app"]) == ()
    assert len(copied_packages(copies, ["/ap"])) == 1
