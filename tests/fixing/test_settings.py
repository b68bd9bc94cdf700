"""Settings by which pip and uv install elsewhere are refused, and an index that does not answer is named."""

from __future__ import annotations

import pytest

from gpudoctor.fixing.settings import index_problem
from tests.fixing.beds import UV, Bed

CPU = ("torch==2.13.0+cpu", "tiny")


def test_a_pip_that_is_configured_to_install_elsewhere(bed: Bed) -> None:
    env, config = bed.environment(*CPU), bed.folder / "pip.conf"
    config.write_text(f"[global]\ntarget = {bed.folder}/elsewhere\n")
    done = env.gpudoctor("fix", "--yes", PIP_CONFIG_FILE=str(config))
    assert done.returncode == 2
    assert done.stderr.endswith("remove that first, with pip config unset global.target\n")
    assert not (bed.folder / "elsewhere").exists()


@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_a_uv_that_is_configured_to_install_elsewhere(bed: Bed) -> None:
    env = bed.environment(*CPU, installer="uv")
    (bed.folder / "uv.toml").write_text(f"[pip]\ntarget = '{bed.folder}/elsewhere'\n")
    done = env.gpudoctor("fix", "--yes", UV_NO_CONFIG="0")
    assert (done.returncode, "uv is configured to install elsewhere" in done.stderr) == (2, True)
    assert not (bed.folder / "elsewhere").exists()


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("Could not fetch URL https://x/y/: 403 Client Error: F for url: https://x/y/ - skipping", "403"),
        ("Could not fetch URL https://x/y/: Max (Caused by E('too many 500 error responses')) - skipping", "500"),
    ],
)
def test_an_index_that_does_not_answer(said: str, problem: str) -> None:
    assert index_problem(said) == f"the index page https://x/y/ answers with HTTP status {problem}"


@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_a_setting_of_uv_that_overrides_what_is_asked_for(bed: Bed) -> None:
    env = bed.environment("torch==2.13.0+cpu", "tiny", installer="uv")
    (bed.folder / "pyproject.toml").write_text('[tool.uv]\noverride-dependencies = ["torch==2.13.0+cpu"]\n')
    done = env.fix("--yes", UV_NO_CONFIG="0")
    assert (done["status"], done["exit"]) == ("refused", 2)
    assert done["why"].startswith("uv leaves torch as it is, although torch==2.13.0+cu130 is asked for: a setting")


def test_folders_alone_are_searched(bed: Bed) -> None:
    env = bed.environment("torch==2.13.0+cpu", "tiny")
    (bed.folder / "empty").mkdir()
    began = "pip finds no versions that go together: PIP_NO_INDEX forbids every index, and "
    folders = {"": "PIP_FIND_LINKS names no folder", "empty": "empty has no torch==2.13.0+cu130 for this Python"}
    for folder, why in folders.items():
        assert env.fix("--dry-run", PIP_FIND_LINKS=folder)["why"] == f"{began}{why}"


def test_what_the_configuration_leaves_out_is_fixed_only_if_it_is_named(bed: Bed) -> None:
    env = bed.environment("torch==2.13.0+cpu", "tiny")
    for line in ('ignore = ["torch-cpu-build"]', 'select = ["driver"]'):
        (bed.folder / "gpudoctor.toml").write_text(f"{line}\n")
        unasked, named = env.fix("--dry-run"), env.fix("torch-cpu-build", "--dry-run")
        assert [step["check"] for step in unasked["plan"]] == []
        assert [step["check"] for step in named["plan"]] == ["torch-cpu-build"]


@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_a_narrow_terminal_does_not_cut_what_uv_complains_about(bed: Bed) -> None:
    env = bed.environment("torch==2.13.0+cpu", "tiny", installer="uv")
    (bed.folder / "file").write_text("")
    why = env.fix("--yes", COLUMNS="20", UV_CACHE_DIR=str(bed.folder / "file" / "cache"))["why"]
    assert "Failed to initialize cache at" in why
    assert "Not a directory" in why
