"""Every kind of environment remedy in real environments: planned, applied, verified, undone, with pip and with uv."""

from __future__ import annotations

import re
import subprocess
import zipfile
from typing import Any

import pytest

from tests.fixing.beds import ROOT, UV, Bed
from tests.wheels import make_wheel

CPU = ("torch==2.13.0+cpu", "torchvision==0.28.0+cpu", "tiny")
CUDA = ("torch==2.13.0+cu130", "tiny")
TWINS = ("cupy-cuda12x", "cupy-cuda13x", "numpy==2.4.6")
WITH_UV = pytest.mark.skipif(UV is None, reason="uv is not installed")


def changes(result: dict[str, Any]) -> dict[str, tuple[str | None, str | None]]:
    return {c["name"]: (c["from"], c["to"]) for step in result["plan"] for c in step["changes"]}


CASES: dict[str, tuple[tuple[str, ...], dict[str, tuple[str | None, str | None]]]] = {
    "torch-cpu-build": (CPU, {"torch": ("2.13.0+cpu", "2.13.0+cu130"), "torchvision": ("0.28.0+cpu", "0.28.0+cu130")}),
    "cupy-multiple-packages": (
        (*CUDA, *TWINS),
        {"cupy-cuda12x": ("14.2.0", None), "cupy-cuda13x": ("14.2.0", "14.2.0"), "cuda-pathfinder": (None, "1.4")},
    ),
    "torchvision-mismatch": (
        (*CUDA, "torchvision==0.28.0+cpu"),
        {"torchvision": ("0.28.0+cpu", "0.28.0+cu130")},
    ),
    "torch-not-installed": (("numpy==2.4.6",), {"torch": (None, "2.14.1+cu130"), "tiny": (None, "1.0")}),
    "cupy-missing": (
        (*CUDA, "numpy==2.4.6"),
        {"cupy-cuda13x": (None, "14.2.0"), "cuda-pathfinder": (None, "1.4")},
    ),
    "cupy-numpy-incompatible": ((*CUDA, "cupy-cuda13x", "numpy==1.26.4"), {"numpy": ("1.26.4", "2.4.6")}),
    "torch-library-missing": (CUDA, {"torch": ("2.13.0+cu130", "2.13.0+cu130")}),
    "pynvml-deprecated": (
        (*CUDA, "pynvml"),
        {"pynvml": ("11.5.3", None), "nvidia-ml-py": (None, "13.580.82")},
    ),
}


@pytest.mark.parametrize(
    ("check", "installer"),
    [
        *((check, "pip") for check in CASES),
        *(pytest.param(check, "uv", marks=WITH_UV) for check in CASES),
    ],
)
def test_a_remedy_is_applied_verified_and_undone(bed: Bed, check: str, installer: str) -> None:
    packages, expected = CASES[check]
    env = bed.environment(*packages, installer=installer)
    if check == "torch-library-missing":
        (env.packages / "torch" / "lib" / "libc10.so").unlink()
    before = env.state()

    done = env.fix(check, "--yes")
    assert (done["status"], done["exit"], done["why"], changes(done)) == ("fixed", 0, "", expected)
    assert (check in done["before"], check in done["after"]) == (True, False)
    assert {name: env.versions().get(name) for name in expected} == {name: new for name, (_, new) in expected.items()}

    assert env.gpudoctor("fix", "--undo").returncode == 0
    assert env.state() == before


@pytest.mark.parametrize("installer", ["pip", pytest.param("uv", marks=WITH_UV)])
def test_a_plan_changes_nothing_and_an_undo_is_done_once(bed: Bed, installer: str) -> None:
    packages, expected = CASES["torch-cpu-build"]
    env = bed.environment(*packages, installer=installer)
    before = env.state()
    planned = env.fix("torch-cpu-build", "--dry-run")
    assert (planned["status"], planned["exit"], changes(planned)) == ("planned", 0, expected)
    assert env.state() == before
    env.fix("torch-cpu-build", "--yes")
    undone = [env.gpudoctor("fix", "--undo").returncode for _ in range(2)]
    assert (undone, env.state()) == ([0, 2], before)


def test_several_fixes_are_one_transaction(bed: Bed) -> None:
    env = bed.environment(*CPU, *TWINS)
    done = env.fix("torch-cpu-build", "cupy-multiple-packages", "--yes")
    assert done["status"] == "fixed"
    assert [step["check"] for step in done["plan"]] == ["torch-cpu-build", "cupy-multiple-packages"]
    assert {"torch": "2.13.0+cu130", "torchvision": "0.28.0+cu130"}.items() <= env.versions().items()
    assert "cupy-cuda12x" not in env.versions()


def test_a_change_that_fixes_nothing_is_undone_and_the_record_before_it_stays(bed: Bed) -> None:
    env = bed.environment(*CUDA, *TWINS)
    before = env.state()
    assert env.fix("cupy-multiple-packages", "--yes")["status"] == "fixed"
    fixed = env.state()
    wheel = bed.index / "torch-2.13.0+cu130-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if "libc10.so" not in name and ".dist-info" not in name]
        make_wheel(bed.index, "torch", "2.13.0+cu130", {name: archive.read(name) for name in names}, ["tiny"])
    library = env.packages / "torch" / "lib" / "libc10.so"
    content = library.read_bytes()
    library.unlink()
    done = env.fix("torch-library-missing", "--yes")
    assert (done["status"], done["exit"], done["record"]) == ("not-fixed", 1, None)
    assert done["why"].startswith("torch-library-missing is still found")
    library.write_bytes(content)
    assert env.state() == fixed
    undone = env.fix("--undo")
    assert (undone["status"], undone["exit"]) == ("undone", 0)
    assert env.state() == before


def test_without_a_finding_there_is_nothing_to_do(bed: Bed) -> None:
    env = bed.environment(*CUDA)
    before = env.state()
    done = env.fix("torch-cpu-build", "--yes")
    assert (done["status"], done["exit"], done["plan"]) == ("fixed", 0, [])
    assert env.state() == before


def test_a_dependant_that_would_break_is_named(bed: Bed) -> None:
    env = bed.environment("torch==2.12.0+cu126", "tiny", "flash-attn==2.8.1")
    before = env.state()
    done = env.gpudoctor("install", "torch==2.13.0", "--yes")
    assert done.returncode == 2
    assert "flash-attn 2.8.1 needs torch<2.13, not 2.13.0+cu130" in done.stderr
    assert env.state() == before


def test_a_script_does_the_same_as_the_plan_in_the_documentation(bed: Bed) -> None:
    env = bed.environment(*CPU)
    example = (ROOT / "docs" / "fix.md").read_text(encoding="utf-8").partition("<!-- the fix example -->")[2]
    command, *expected = example.split("```")[1].removeprefix("console\n$ gpudoctor ").splitlines()
    shown = env.gpudoctor(*command.split()).stdout.replace(env.python, "/srv/venv/bin/python")
    shown, sizes = re.subn(r" \([\d.]+ kB to download\)", "", shown)  # those of the wheels of this test
    assert (shown.splitlines(), sizes) == (expected, 2)
    script = env.gpudoctor("fix", "--script").stdout
    assert script.startswith("#!/bin/sh\n")
    assert "# 1. torch-cpu-build: Install PyTorch 2.13.0 built with CUDA 13.0" in script
    lines = [line for line in script.splitlines() if " -c " not in line]  # the wheels of this test cannot be imported
    subprocess.run(["sh"], input="\n".join(lines), text=True, check=True, env=dict(bed.variables), capture_output=True)
    assert env.versions()["torch"] == "2.13.0+cu130"
