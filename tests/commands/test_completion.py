"""A shell completes commands, options, checks, families and requirements."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables under which `gpudoctor` is this program."""
    program = tmp_path / "bin" / "gpudoctor"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gpudoctor "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


def bash(words: list[str], environment: dict[str, str], folder: Path) -> list[str]:
    """Return what bash offers for the last of `words`."""
    line = " ".join(f"'{word}'" for word in words)
    script = (
        f'eval "$(_GPUDOCTOR_COMPLETE=bash_source gpudoctor)"; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; '
        '_gpudoctor_completion gpudoctor; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, cwd=folder, env=environment
    )
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["che"], ["check"]),
        (["profile", "v"], ["verify"]),
        (["explain", "torch-cpu"], ["torch-cpu-build"]),
        (["explain", "mult"], []),
        (["check", "mult"], ["multi-gpu"]),
        (["check", "--select", "torch-cpu"], ["torch-cpu-build"]),
        (["check", "--ignore", "shm"], ["shm-too-small"]),
        (["check", "--format", "j"], ["json", "junit"]),
        (["check", "--require", "vra"], ["vram"]),
        (["check", "--fas"], ["--fast"]),
    ],
    ids=" ".join,
)
def test_bash(words: list[str], offered: list[str], environment: dict[str, str], tmp_path: Path) -> None:
    assert bash(["gpudoctor", *words], environment, tmp_path) == offered


def complete(shell: str, environment: dict[str, str], folder: Path, **variables: str) -> str:
    """Return what the program answers to a shell."""
    done = subprocess.run(
        ["gpudoctor"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**environment, "_GPUDOCTOR_COMPLETE": shell, **variables},
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(("shell", "mark"), [("zsh", "#compdef gpudoctor"), ("fish", "complete --no-files")])
def test_the_source_for_a_shell(shell: str, mark: str, environment: dict[str, str], tmp_path: Path) -> None:
    source = complete(f"{shell}_source", environment, tmp_path)
    assert mark in source
    if shutil.which(shell) is not None:
        subprocess.run([shell, "--no-execute", "/dev/stdin"], input=source, text=True, check=True)


def test_zsh_and_fish_show_the_problem_next_to_the_id(environment: dict[str, str], tmp_path: Path) -> None:
    title = "PyTorch is built without CUDA, on a machine with an NVIDIA GPU."
    line = "gpudoctor explain torch-cpu"
    zsh = complete("zsh_complete", environment, tmp_path, COMP_WORDS=line, COMP_CWORD="2")
    assert zsh.splitlines() == ["plain", "torch-cpu-build", title]
    fish = complete("fish_complete", environment, tmp_path, COMP_WORDS=line, COMP_CWORD="torch-cpu")
    assert "torch-cpu-build" in fish
    assert title in fish


def test_the_tab_key_runs_no_code_of_the_project(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text('plugins = "checks"\n')
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "acme.py").write_text(
        "from gpudoctor.registry import check\n\n\n"
        '@check(family="tool")\ndef acme_made_up(system):\n    """A problem."""\n    yield from ()\n'
        f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    )
    assert bash(["gpudoctor", "explain", "acme"], environment, tmp_path) == []
    assert not (tmp_path / "ran").exists()


def test_a_wrong_configuration_leaves_our_own(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text("plugins = 7\n")
    assert bash(["gpudoctor", "explain", "torch-cpu"], environment, tmp_path) == ["torch-cpu-build"]
