"""One name in many places: each check has its file, id, page, test and row; the wheel has every file."""

import configparser
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.engine.catalog import load_checks
from gpudoctor.registry import Check

ROOT = Path(__file__).parent.parent
CHECKS = load_checks()
IDS = {check.id for check in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check(check: Check) -> None:
    name = check.id.replace("-", "_")
    assert (ROOT / "checks" / f"{name}.py").is_file()
    assert (ROOT / "tests" / "checks" / f"test_{name}.py").is_file()
    assert check.function.__module__ == f"gpudoctor.checks.{name}"
    assert check.title.endswith(".")
    assert len(check.title) <= 110
    assert "\nWhy: " in check.page
    assert set(check.explains) - {check.id} == set(check.explains)


@pytest.mark.parametrize("check", [check for check in CHECKS if check.explains], ids=lambda check: check.id)
def test_what_a_check_explains_exists(check: Check) -> None:
    assert set(check.explains) <= IDS


def test_every_file_is_a_check() -> None:
    files = {path.stem.replace("_", "-") for path in (ROOT / "checks").glob("*.py")} - {"--init--"}
    assert files == IDS


@pytest.fixture
def setup_py(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What setup.py contains, with its arguments for setuptools under the name "arguments"."""
    arguments: dict[str, Any] = {}
    monkeypatch.setitem(sys.modules, "setuptools", SimpleNamespace(setup=arguments.update))
    return {**runpy.run_path(str(ROOT / "setup.py")), "arguments": arguments}


def test_the_wheel_has_every_file(setup_py: dict[str, Any]) -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    patterns = {package: names.split(", ") for package, names in config["options.package_data"].items()}
    packages = setup_py["arguments"]["packages"]
    assert "gpudoctor.checks" in packages
    folders = {package: ROOT / package.replace(".", "/") for package in packages}
    inside = {
        path
        for package, folder in folders.items()
        for pattern in ["*.py", *patterns["*"], *patterns.get(package, [])]
        for path in folder.glob(pattern)
    }
    files = {path for path in (ROOT / "gpudoctor").rglob("*.*") if path.is_file() and path.suffix != ".pyc"}
    assert files - inside == set()


def test_the_index_page_has_no_relative_link(setup_py: dict[str, Any]) -> None:
    readme = "![a picture](docs/a.svg)\n\nSee [two\nwords](docs/b.md) and [another](https://example.org/c)."
    with_address = setup_py["description"](readme, "https://example.org/p")
    assert re.findall(r"\]\((\S+)\)", with_address) == [
        "https://example.org/p/raw/HEAD/docs/a.svg",
        "https://example.org/p/blob/HEAD/docs/b.md",
        "https://example.org/c",
    ]
    assert setup_py["description"](readme, "") == "\n\nSee two\nwords and [another](https://example.org/c)."
    links = re.findall(r"\]\((\S+)\)", setup_py["arguments"]["long_description"])
    assert [link for link in links if "://" not in link] == []


def test_a_file_imports_no_check_by_name() -> None:
    for path in [*(ROOT / "gpudoctor").rglob("*.py"), *(ROOT / "checks").glob("*.py")]:
        assert not re.search(r"^(from|import) (gpudoctor\.)?checks\.", path.read_text(), re.MULTILINE), path
