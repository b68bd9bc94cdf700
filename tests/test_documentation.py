"""The documents are true: what is generated is up to date, every block runs or is checked, every link has a target."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
HANDWRITTEN = [page for page in PAGES if page.name != "commands.md"]
BLOCK = re.compile(r"(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)```", re.DOTALL)
TESTED_ELSEWHERE = {
    "the install command": "test_readme.py",
    "the test command": "test_readme.py",
    "the rebuild example": "test_rebuild_command.py",
    "the fix example": "fixing/test_every_remedy.py",
    "the gate": "test_readme.py",
    "the configuration": "test_readme.py",
    "the pytest options": "test_readme.py",
    "the Python program": "test_readme.py",
    "the plugin": "test_readme.py",
    "the profile program": "test_readme.py",
}
"""Blocks with an example that a test of its own looks at."""


def blocks(*languages: str) -> list[object]:
    """Return the blocks in one of these languages, as parameters."""
    return [
        pytest.param(page, block, id=f"{page.name}-{number}")
        for page in HANDWRITTEN
        for number, block in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")))
        if block["language"] in languages
    ]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date(generate: ModuleType) -> None:
    pages = generate.pages()
    assert [path.name for path, text in pages.items() if path.read_text(encoding="utf-8") != text] == []
    assert set((ROOT / "docs" / "checks").glob("*.md")) == {path for path in pages if path.parent.name == "checks"}


def test_printed_output_is_up_to_date(generate: ModuleType) -> None:
    assert [path.name for path, text in generate.filled_in().items() if path.read_text(encoding="utf-8") != text] == []


def test_the_picture_is_up_to_date(generate: ModuleType) -> None:
    pytest.importorskip("rich")
    assert (ROOT / "docs" / "images" / "diagnosis.svg").read_text(encoding="utf-8") == generate.picture()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize(("page", "block"), blocks("console"))
def test_a_console_block_shows_real_output(page: Path, block: re.Match[str]) -> None:
    assert (block["note"] or "").startswith("output") or block["note"] in TESTED_ELSEWHERE, page


@pytest.mark.parametrize(("page", "block"), blocks("python", "toml", ""))
def test_a_program_or_configuration_has_a_test(page: Path, block: re.Match[str]) -> None:
    assert block["note"] in TESTED_ELSEWHERE or page.name == "CONTRIBUTING.md"


@pytest.mark.parametrize(("page", "block"), blocks("bash"))
def test_a_shell_block_runs(page: Path, block: re.Match[str], tmp_path: Path) -> None:
    if (block["note"] or "").startswith("needs: ") or block["note"] in TESTED_ELSEWHERE:
        subprocess.run(["bash", "-n"], input=block["text"], text=True, check=True)
        return
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gpudoctor"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gpudoctor "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    text = block["text"].replace("venv/bin/python", shlex.quote(sys.executable))
    for line in text.strip().splitlines():
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        # 1 and 3 are verdicts about the machine that runs the tests, 2 is wrong use
        assert done.returncode in (0, 1, 3), (line, done.stderr)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("page", HANDWRITTEN, ids=lambda page: page.name)
def test_every_option_exists(page: Path) -> None:
    helps = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    known = dict(re.findall(r"^## gpudoctor ([a-z ]+)\n\n```text\n(.*?)```", helps, re.M | re.S))
    for command, rest in re.findall(
        r"\bgpudoctor ((?:profile )?[a-z]+)((?: [^`\n|]+)?)", page.read_text(encoding="utf-8")
    ):
        own = rest.partition(" -- ")[0]
        if command in known:
            unknown = [
                option
                for option in re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", own)
                if not re.search(rf"(?<![\w-]){option}(?![\w-])", known[command])
            ]
            assert unknown == [], (command, own)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_has_a_target(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """Return the anchors that a code host makes of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    site = (ROOT / "docs" / "index.rst").read_text(encoding="utf-8")
    names = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"README"}
    assert {name for name in names if f"]({name}.md)" not in contents or f"\n   {name}\n" not in site} == set()
