"""One name in many places: each check has its file, id, page, test and row; setup.cfg lists every package."""

import configparser
import re
from pathlib import Path

import pytest

from gpudoctor.registry import Check
from tests.own_checks import own_checks

ROOT = Path(__file__).parent.parent
CHECKS = own_checks()
IDS = {check.id for check in CHECKS}
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg")
PACKAGES = CONFIG["options"]["packages"].split()


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


def test_setup_cfg_lists_every_package() -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "gpudoctor").rglob("__init__.py")}
    assert set(PACKAGES) == {".".join(folder.parts) for folder in folders} | {"gpudoctor.checks"}


def test_the_wheel_has_every_file() -> None:
    patterns = {package: names.split(", ") for package, names in CONFIG["options.package_data"].items()}
    inside = {
        path
        for package in PACKAGES
        for pattern in ["*.py", *patterns["*"], *patterns.get(package, [])]
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    files = {path for path in (ROOT / "gpudoctor").rglob("*.*") if path.is_file() and path.suffix != ".pyc"}
    assert files - inside == set()


def test_a_file_imports_no_check_by_name() -> None:
    for path in [*(ROOT / "gpudoctor").rglob("*.py"), *(ROOT / "checks").glob("*.py")]:
        assert not re.search(r"^(from|import) (gpudoctor\.)?checks\.", path.read_text(), re.MULTILINE), path
