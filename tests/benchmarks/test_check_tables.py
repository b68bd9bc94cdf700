"""What the script for the tables compares; it asks the network only when it is run by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).parent / "check_tables.py"
    spec = importlib.util.spec_from_file_location("check_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SAID = """
  Found link https://files.example/torch-2.12.0-cp313-cp313t-manylinux_2_28_x86_64.whl#sha256=1 (from https://x/torch/)
  Skipping link: none of the wheel's tags: https://files.example/torch-2.12.1-cp313-cp313-manylinux_2_28_x86_64.whl
  Found link https://files.example/torch-2.12.0-cp313-cp313-manylinux_2_28_x86_64.whl
  Found link https://files.example/torch_scatter-2.1.2.tar.gz
"""


def test_files_that_pip_names(script: ModuleType) -> None:
    files = script.file_names("torch", SAID)
    assert len(files) == 3
    assert script.versions_in(files) == {"2.12.0", "2.12.1"}
    assert script.pythons_in(files, "2.12.0", "linux_x86_64") == {"3.13", "3.13t"}
    assert script.pythons_in(files, "2.12.1", "linux_x86_64") == {"3.13"}
    assert script.pythons_in(files, "2.12.0", "windows_amd64") == set()
    assert script.file_names("torch-scatter", SAID) == ("torch_scatter-2.1.2.tar.gz",)


ROW = {"release": "2.12", "versions": ["2.12.0", "2.12.1"], "pythons": {"linux_x86_64": ["3.13", "3.13t"]}}


def test_a_row_that_fits_is_not_named(script: ModuleType) -> None:
    files = script.file_names("torch", SAID)
    assert list(script.torch_rows(files, [{**ROW, "last_with": {"3.13t": "2.12.0"}}])) == []


def test_a_platform_that_only_an_older_patch_version_has_may_be_left_out(script: ModuleType) -> None:
    said = SAID + "Found link https://files.example/torch-2.12.0-cp313-cp313-macosx_11_0_arm64.whl"
    files = script.file_names("torch", said)
    assert list(script.torch_rows(files, [{**ROW, "last_with": {"3.13t": "2.12.0"}}])) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "2.12.1 has no wheel for Python 3.13t any more"),
        ({"versions": ["2.12.0"]}, "the index ['2.12.0', '2.12.1']"),
        ({"pythons": {"linux_x86_64": ["3.13"]}}, "the index also has ['3.13t']"),
        ({"pythons": {"linux_x86_64": ["3.13", "3.13t", "3.9"]}}, "has no ['3.9']"),
        ({"release": "2.11", "versions": ["2.11.0"]}, "newer than the table: ['2.12.0', '2.12.1']"),
    ],
)
def test_a_row_that_does_not_is(script: ModuleType, changed: dict[str, object], words: str) -> None:
    assert any(words in line for line in script.torch_rows(script.file_names("torch", SAID), [{**ROW, **changed}]))


def test_chips_of_pci_ids(script: ModuleType) -> None:
    text = (
        "10de  NVIDIA Corporation\n\t13fa  GM204GLM [Quadro M3000M]\n\t0fb0  GM200 High Definition Audio\n8086  Intel\n"
    )
    assert list(script.chips_in(text)) == [("13FA", "GM204", "Quadro M3000M")]
