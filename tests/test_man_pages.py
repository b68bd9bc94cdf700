"""docs/make_man_pages.py makes a manual page of each command's help that man can show."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man")
    command = [sys.executable, str(ROOT / "docs" / "make_man_pages.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
    assert done.stdout == f"Wrote {len(list(folder.iterdir()))} pages to {folder}\n"
    return folder


def test_there_is_a_page_for_each_command(pages: Path) -> None:
    names = {path.name for path in pages.iterdir()}
    assert {"gpudoctor.1", "gpudoctor-check.1", "gpudoctor-profile-export.1", "gpudoctor-init.1"} <= names


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_man_shows_the_page_without_a_warning(pages: Path) -> None:
    for path in pages.iterdir():
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-P-cbou", "-ww", str(path)], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        assert [s for s in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES") if s not in done.stdout] == []


def test_a_page_has_the_options_and_the_examples(pages: Path) -> None:
    text = (pages / "gpudoctor-check.1").read_text(encoding="utf-8")
    assert "\n.B \\-\\-require EXPR\n" in text
    assert "\ngpudoctor check \\-\\-require \\(aqgpu>=1\\(aq || exit\n" in text
