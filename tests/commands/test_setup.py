"""`gpudoctor init` writes a configuration that is read, and `completion --install` a script that a shell loads."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpudoctor.configuration.options import _READERS, load_configuration

ROOT = Path(__file__).resolve().parent.parent.parent
TEMPLATE = (ROOT / "gpudoctor" / "configuration" / "template.toml").read_text(encoding="utf-8")


def gpudoctor(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpudoctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def test_init_writes_a_configuration_without_effect(tmp_path: Path) -> None:
    done = gpudoctor("init", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("Wrote gpudoctor.toml.")
    assert (tmp_path / "gpudoctor.toml").read_text(encoding="utf-8") == TEMPLATE
    found = load_configuration(str(tmp_path))
    assert (found.require, found.select, found.gpu, dict(found.severity)) == ((), (), None, {})


def test_every_setting_is_in_it_and_is_valid_once_uncommented(tmp_path: Path) -> None:
    settings = re.sub(r"^# (?=\w+ = |\[|driver-)", "", TEMPLATE, flags=re.MULTILINE)
    (tmp_path / "gpudoctor.toml").write_text(settings, encoding="utf-8")
    (tmp_path / "compose.yaml").touch()
    (tmp_path / "gpudoctor_checks").mkdir()
    found = load_configuration(str(tmp_path))
    assert found.source is not None
    assert set(found.source.content) == set(_READERS)
    assert found.select == ("driver", "torch")


@pytest.mark.parametrize(
    ("file", "text"),
    [("gpudoctor.toml", "mine"), ("pyproject.toml", "[tool.gpudoctor]\n"), ("setup.cfg", "[gpudoctor]\ngpu = auto\n")],
)
def test_init_changes_nothing_if_a_configuration_is(file: str, text: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(text)
    done = gpudoctor("init", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {file: text}


def test_init_in_a_folder_below_a_configured_one(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.toml").write_text("")
    (tmp_path / "below").mkdir()
    assert gpudoctor("init", "--folder", "below", folder=tmp_path).returncode == 0
    assert (tmp_path / "below" / "gpudoctor.toml").read_text(encoding="utf-8") == TEMPLATE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(shell: str, tmp_path: Path) -> None:
    named = gpudoctor("completion", shell, folder=tmp_path)
    assert (named.returncode, named.stderr) == (0, "")
    assert "_GPUDOCTOR_COMPLETE" in named.stdout
    assert gpudoctor("completion", folder=tmp_path, SHELL=f"/usr/bin/{shell}").stdout == named.stdout


def test_a_shell_that_is_not_supported(tmp_path: Path) -> None:
    done = gpudoctor("completion", folder=tmp_path, SHELL="/bin/tcsh")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gpudoctor: the shell 'tcsh' is not supported: name one of bash, zsh, fish\n"


def install(shell: str, home: Path) -> None:
    cleared = {"XDG_DATA_HOME": "", "XDG_CONFIG_HOME": "", "ZDOTDIR": ""}
    done = gpudoctor("completion", shell, "--install", folder=home, HOME=str(home), **cleared)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("Wrote ")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_completion_is_installed_for_bash_once(tmp_path: Path) -> None:
    profile = tmp_path / ".bashrc"
    profile.write_text("mine=1")
    install("bash", tmp_path)
    after = profile.read_text()
    assert after.startswith("mine=1\n[ -r ")
    install("bash", tmp_path)
    assert profile.read_text() == after
    loaded = subprocess.run(
        ["bash", "-c", ". ./.bashrc; complete -p gpudoctor; echo $mine"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert loaded.stdout.splitlines() == ["complete -o nosort -F _gpudoctor_completion gpudoctor", "1"]


def test_completion_is_installed_for_zsh_and_fish(tmp_path: Path) -> None:
    install("zsh", tmp_path)
    script = tmp_path / ".local" / "share" / "gpudoctor" / "gpudoctor.zsh"
    assert f'. "{script}"' in (tmp_path / ".zshrc").read_text()
    assert script.read_text().startswith("#compdef gpudoctor")
    install("fish", tmp_path)
    assert "gpudoctor" in (tmp_path / ".config" / "fish" / "completions" / "gpudoctor.fish").read_text()
    assert not (tmp_path / ".fishrc").exists()


def test_a_profile_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").mkdir()
    done = gpudoctor("completion", "bash", "--install", folder=tmp_path, HOME=str(tmp_path), XDG_DATA_HOME="")
    assert done.returncode == 2
    assert done.stderr.endswith(f"gpudoctor: cannot write {tmp_path}/.bashrc: Is a directory\n")
