"""The files in which a configuration may stand: which one is taken, and which line a message names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.configuration import files
from gpudoctor.configuration.files import Source, find_source
from gpudoctor.errors import UsageError

OWN = 'fail_on = "warning"\n'
PYPROJECT = '[project]\nname = "x"\n\n[tool.gpudoctor]\nfail_on = "error"\n'
SETUP_CFG = "[metadata]\nname = x\n\n[gpudoctor]\nfail_on = info\nselect =\n  torch\n\n  driver\n"
NOBODYS = '[tool.other]\nname = "gpudoctor"\n'


@pytest.mark.parametrize(
    ("tree", "name", "content", "first_line"),
    [
        pytest.param({"gpudoctor.toml": OWN}, "../gpudoctor.toml", {"fail_on": "warning"}, 1, id="its own"),
        pytest.param({"pyproject.toml": PYPROJECT}, "../pyproject.toml", {"fail_on": "error"}, 4, id="pyproject"),
        pytest.param(
            {"setup.cfg": SETUP_CFG},
            "../setup.cfg",
            {"fail_on": "info", "select": ["torch", "driver"]},
            4,
            id="setup.cfg",
        ),
        pytest.param(
            {"gpudoctor.toml": OWN, "pyproject.toml": PYPROJECT, "setup.cfg": SETUP_CFG},
            "../gpudoctor.toml",
            {"fail_on": "warning"},
            1,
            id="its own first",
        ),
        pytest.param(
            {"pyproject.toml": PYPROJECT, "setup.cfg": SETUP_CFG},
            "../pyproject.toml",
            {"fail_on": "error"},
            4,
            id="then pyproject",
        ),
        pytest.param(
            {"gpudoctor.toml": OWN, "sub/setup.cfg": SETUP_CFG},
            "setup.cfg",
            {"fail_on": "info", "select": ["torch", "driver"]},
            4,
            id="the nearer folder",
        ),
        pytest.param(
            {"gpudoctor.toml": OWN, "sub/pyproject.toml": NOBODYS, "sub/setup.cfg": "[other]\nx = [gpudoctor]\n"},
            "../gpudoctor.toml",
            {"fail_on": "warning"},
            1,
            id="those of others are passed over",
        ),
        pytest.param(
            {"gpudoctor.toml": OWN, "sub/pyproject.toml": "[tool.other\n"},
            "../gpudoctor.toml",
            {"fail_on": "warning"},
            1,
            id="broken ones of others too",
        ),
        pytest.param({"gpudoctor.toml": "\ufeff" + OWN}, "../gpudoctor.toml", {"fail_on": "warning"}, 1, id="a mark"),
    ],
)
def test_the_file_that_counts(
    tmp_path: Path, tree: dict[str, str], name: str, content: dict[str, Any], first_line: int
) -> None:
    (tmp_path / "sub").mkdir()
    for path, text in tree.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    found = find_source(str(tmp_path / "sub"))
    assert found is not None
    assert (found.name, found.path) == (name, os.path.normpath(tmp_path / "sub" / name))
    assert (found.content, found.first_line) == (content, first_line)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("gpudoctor.toml", b"\xff", "gpudoctor.toml line 1: not UTF-8 text"),
        ("gpudoctor.toml", b"\n\n\xff", "gpudoctor.toml line 3: not UTF-8 text"),
        ("gpudoctor.toml", b"a = 1\nb =\n", "gpudoctor.toml line 2: "),
        ("gpudoctor.toml", b"a = " + b"[" * 5000, "gpudoctor.toml: nested too deeply"),
        ("pyproject.toml", b"tool = 3 # gpudoctor", "pyproject.toml: tool is not a table"),
        ("pyproject.toml", b"[tool]\ngpudoctor = 3", "pyproject.toml: gpudoctor is not a table"),
        ("setup.cfg", b"[gpudoctor]\nx = 1\nx = 2\n", "setup.cfg line 3: "),
        ("setup.cfg", b"[gpudoctor]\nx\n", "setup.cfg line 2: "),
        (
            "setup.cfg",
            b"[gpudoctor]\nseverity =\n  a b\n",
            "setup.cfg: severity: 'a b' is not of the form id = warning",
        ),
    ],
)
def test_what_cannot_be_read_names_its_line(tmp_path: Path, file: str, content: bytes, message: str) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(UsageError) as raised:
        find_source(str(tmp_path))
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(("size", "is_too_large"), [(files.LARGEST_BYTES, False), (files.LARGEST_BYTES + 1, True)])
def test_the_largest_file(tmp_path: Path, size: int, is_too_large: bool) -> None:
    (tmp_path / "gpudoctor.toml").write_bytes(b"#" * size)
    if is_too_large:
        with pytest.raises(UsageError, match=r"^gpudoctor\.toml: larger than 1 MiB$"):
            find_source(str(tmp_path))
    else:
        assert find_source(str(tmp_path)) is not None


TEXT = """[project]
ignore = "not this one"
[tool.gpudoctor]
select = [
  "torch-cpu",
  "torch",
]
[tool.gpudoctor.severity]
"quoted" = "info"
"""
SOURCE = Source(path="/p", name="p", text=TEXT, content={}, first_line=3)


@pytest.mark.parametrize(
    ("key", "word", "place"),
    [
        ("select", "", "p line 4: select"),
        ("select", "torch", "p line 6: select"),
        ("select", "torch-cpu", "p line 5: select"),
        ("select", "elsewhere", "p line 4: select"),
        ("severity", "", "p line 8: severity"),
        ("severity", "quoted", "p line 9: severity"),
        ("quoted", "", "p line 9: quoted"),
        ("ignore", "", "p: ignore"),
        ("ignore", "torch", "p: ignore"),
    ],
)
def test_the_line_that_a_message_names(key: str, word: str, place: str) -> None:
    assert SOURCE.place(key, word) == place
    assert str(SOURCE.error(key, "is wrong", word)) == f"{place}: is wrong"
