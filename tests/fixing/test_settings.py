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
