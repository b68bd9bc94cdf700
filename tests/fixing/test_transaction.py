"""A change that goes wrong, is interrupted or makes things worse leaves the environment as it was."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpudoctor.fixing.environment import read_inventory
from gpudoctor.fixing.installers import Installer, Pip
from gpudoctor.fixing.programs import Failed, Refused, environment_of
from gpudoctor.fixing.resolution import Change, Pin, Resolution
from gpudoctor.fixing.store import Store
from gpudoctor.fixing.transaction import apply
from tests.benchmarks.fix_interruptions import kill_often
from tests.fixing.beds import UV, Bed, Env

CPU = ("torch==2.13.0+cpu", "tiny", "numpy==2.4.6")
PLAN = Resolution(
    pins=(Pin(name="torch", version="2.13.0+cu130"),),
    removes=(),
    changes=(Change(name="torch", before="2.13.0+cpu", after="2.13.0+cu130"),),
)


@pytest.fixture
def env(bed: Bed) -> Env:
    return bed.environment(*CPU)


def change(env: Env, installer: type[Installer] = Pip, is_worse: Callable[[], str] = lambda: "") -> str:
    """Change the environment as `gpudoctor fix` does, and return why it was restored."""
    inventory = read_inventory(env.python)
    store = Store(inventory.prefix)
    with store.locked(print):
        try:
            why, left = apply(store, installer(inventory, env.bed.variables), PLAN, is_worse, lambda _: None)
        except BaseException:
            assert store.settle() == []
            raise
    assert left == []
    return why


def test_it_is_kept_if_all_is_well(env: Env) -> None:
    (info := env.packages / "mine-1.0.dist-info").mkdir()
    (info / "METADATA").write_text("Name: mine\nVersion: 1.0\n")
    (info / "direct_url.json").write_text('{"url": "file:///srv/mine", "dir_info": {"editable": true}}')
    limits = env.path / "limits.txt"
    limits.write_text("torch<3\n")
    env = replace(env, bed=replace(env.bed, variables={**env.bed.variables, "PIP_CONSTRAINT": str(limits)}))
    assert change(env) == ""
    assert env.versions()["torch"] == "2.13.0+cu130"
    noted = json.loads((env.path / ".gpudoctor" / "record" / "manifest.json").read_text())
    assert (noted["before"]["torch"], noted["after"]) == ("2.13.0+cpu", {"torch": "2.13.0+cu130"})
    assert noted["sources"].keys() == {"mine"}
    assert noted["constraints"] == {"PIP_CONSTRAINT": str(limits)}
    assert not (env.path / ".gpudoctor" / "pending").exists()


def test_a_record_is_private_and_notes_no_password(env: Env) -> None:
    secret = "p4ssw0rd-of-alice"
    for name in ("torch", "mine"):
        info = env.packages / ("torch-2.13.0+cpu.dist-info" if name == "torch" else "mine-1.0.dist-info")
        info.mkdir(exist_ok=True)
        if name == "mine":
            (info / "METADATA").write_text("Name: mine\nVersion: 1.0\n")
        (info / "direct_url.json").write_text(f'{{"url": "git+https://alice:{secret}@example.com/{name}.git"}}')
    limits = f"https://alice:{secret}@example.com/limits.txt"
    env = replace(env, bed=replace(env.bed, variables={**env.bed.variables, "UV_CONSTRAINT": limits}))
    before = env.state()
    assert change(env) == ""
    record = env.path / ".gpudoctor" / "record"
    files = [path for path in record.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files if path.stat().st_nlink == 1} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (record.parent, record, record / "files")} == {0o700}
    noted = (record / "manifest.json").read_text()
    assert "example.com/mine.git" in noted
    assert "example.com/limits.txt" in noted
    # Only the file of the changed package itself has it, which the undo restores as it was.
    assert [path.parent.name for path in files if secret in path.read_text(errors="replace")] == ["files"]
    assert env.gpudoctor("fix", "--undo").returncode == 0
    assert env.state() == before


def test_it_is_undone_if_the_check_is_worse(env: Env) -> None:
    before = env.state()
    assert change(env, is_worse=lambda: "the check finds something new") == "the check finds something new"
    assert env.state() == before
    assert not (env.path / ".gpudoctor" / "record").exists()


class FailsHalfway(Pip):
    def apply(self, resolution: Resolution, folder: Path) -> None:
        shutil.rmtree(next(Path(self.inventory.folders[0]).glob("torch-*.dist-info")))
        raise Failed("pip ended")


class Interrupted(Pip):
    def apply(self, resolution: Resolution, folder: Path) -> None:
        super().apply(resolution, folder)
        raise KeyboardInterrupt


class InstallsSomethingElse(Pip):
    def apply(self, resolution: Resolution, folder: Path) -> None:
        super().apply(resolution, folder)
        (Path(self.inventory.folders[0]) / "torch" / "version.py").write_text("damaged")


class InstallsNothing(Pip):
    def apply(self, resolution: Resolution, folder: Path) -> None:
        pass


class BreaksAnother(Pip):
    def broken(self) -> set[str]:
        self.asked = getattr(self, "asked", 0) + 1
        return {"old 1 has requirement numpy<2", *(["other 1 requires torch<2"] if self.asked > 1 else [])}


@pytest.mark.parametrize(
    ("installer", "why"),
    [
        pytest.param(FailsHalfway, "pip ended", id="the installer fails"),
        pytest.param(InstallsSomethingElse, "1 installed files are not those of their package", id="other content"),
        pytest.param(InstallsNothing, "torch is 2.13.0+cpu, not 2.13.0+cu130", id="nothing happened"),
        pytest.param(BreaksAnother, "other 1 requires torch<2", id="another package is broken"),
    ],
)
def test_it_is_undone_if_a_step_fails(env: Env, installer: type[Installer], why: str) -> None:
    before = env.state()
    assert change(env, installer).startswith(why)
    assert env.state() == before


def test_it_is_undone_if_what_fits_cannot_be_checked(env: Env) -> None:
    before = env.state()

    class Killed(Pip):
        """Its check ends without an answer after the change, as a process that the system killed for its memory."""

        def _check_command(self) -> list[str]:
            command = super()._check_command()
            new = any(env.packages.glob("torch-2.13.0+cu130.dist-info"))
            return [command[0], "-c", "import os; os.kill(os.getpid(), 9)"] if new else command

    assert change(env, Killed) == "pip check ended with exit status -9: the environment cannot be verified"
    assert env.state() == before


def test_an_undo_that_is_killed_at_its_end_blocks_nothing(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    before = env.state()
    assert change(env) == ""
    store, remove = Store(str(env.path)), shutil.rmtree

    def killed(path: Path, ignore_errors: bool = False) -> None:
        if (path / "manifest.json").is_file():
            (path / "manifest.json").unlink()
            raise KeyboardInterrupt
        remove(path, ignore_errors)

    monkeypatch.setattr("gpudoctor.fixing.store.shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt), store.locked(print):
        store.undo()
    monkeypatch.undo()
    assert env.state() == before
    assert change(env) == ""
    assert not (env.path / ".gpudoctor" / "settled").exists()


def test_an_interruption_leaves_it_as_it_was(env: Env) -> None:
    before = env.state()
    with pytest.raises(KeyboardInterrupt):
        change(env, Interrupted)
    assert env.state() == before


@pytest.mark.parametrize("where", ["content", "hash"])
def test_a_damaged_wheel_changes_nothing(env: Env, where: str) -> None:
    before = env.state()
    wheel = env.bed.index / "torch-2.13.0+cu130-py3-none-any.whl"

    class Fetches(Pip):
        def fetch(self, resolution: Resolution, folder: Path) -> None:
            data = wheel.read_bytes()
            at = data.index(b"__version__")
            (folder / wheel.name).write_bytes(data[:at] + b"X" + data[at + 1 :] if where == "content" else data)

    plan = Resolution(
        pins=(Pin(name="torch", version="2.13.0+cu130", sha256="" if where == "content" else "0" * 64),),
        removes=(),
        changes=PLAN.changes,
    )
    inventory = read_inventory(env.python)
    store = Store(inventory.prefix)
    with store.locked(print), pytest.raises(Refused, match="damaged|not the file that the index announced"):
        apply(store, Fetches(inventory, env.bed.variables), plan, lambda: "", lambda _: None)
    assert env.state() == before
    assert not store.pending.exists()


def test_undo_is_refused_after_another_change(env: Env) -> None:
    change(env)
    env.bed.run(env.python, "-m", "pip", "install", "-q", "--no-deps", "torch==2.12.0+cu126")
    before = env.state()
    done = env.gpudoctor("fix", "--undo")
    assert done.returncode == 2
    assert "torch was changed after the fix (from 2.13.0+cu130 to 2.12.0+cu126)" in done.stderr
    assert env.state() == before


@pytest.mark.parametrize("name", ["__init__.py", "my_patch.py", "../torch-2.13.0+cu130.dist-info/RECORD"])
def test_an_undo_does_not_remove_what_was_edited_since(env: Env, name: str) -> None:
    change(env)
    file = env.packages / "torch" / name
    file.unlink() if name.endswith("RECORD") else file.write_text("print('mine')\n")
    before = env.state()
    done = env.gpudoctor("fix", "--undo")
    assert (done.returncode, env.state() == before) == (2, True)
    assert f"{Path(name).name} was changed after the fix, and the undo would remove it" in done.stderr


def test_undo_is_refused_if_another_package_shares_the_folder(env: Env) -> None:
    change(env)
    (env.packages / "torch" / "plugin.py").touch()
    info = env.packages / "plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1\n")
    (info / "RECORD").write_text("torch/plugin.py,,\n")
    done = env.gpudoctor("fix", "--undo")
    assert done.returncode == 2
    assert "plugin was installed after the fix" in done.stderr
    assert (env.packages / "torch" / "plugin.py").exists()


def test_a_folder_of_records_that_is_a_link_is_refused(env: Env, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (env.path / ".gpudoctor").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="does not belong to you"):
        change(env)


def test_one_at_a_time(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudoctor.fixing.store.WAIT_SECONDS", 0.0)
    store = Store(str(env.path))
    with store.locked(print), pytest.raises(Refused, match="another gpudoctor fix is changing"), store.locked(print):
        pass


def test_a_plan_for_other_versions_is_refused_and_the_undo_of_the_fix_before_stays(env: Env) -> None:
    before = env.versions()
    assert change(env) == ""
    with pytest.raises(Refused, match="torch was changed after the plan was made"):
        change(env)
    store = Store(str(env.path))
    with store.locked(print):
        assert store.undo() == []
    assert env.versions() == before


def test_waiting_is_said_once(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudoctor.fixing.store.WAIT_SECONDS", 0.5)
    store, said = Store(str(env.path)), list[str]()
    with store.locked(print), pytest.raises(Refused), store.locked(said.append):
        pass
    assert len(said) == 1


def test_settings_that_install_elsewhere_do_not_count() -> None:
    given = {
        "PIP_TARGET": "/x",
        "PIP_USER": "1",
        "PYTHONPATH": "/y",
        "PIP_INDEX_URL": "https://example.com",
        "HOME": "/",
    }
    kept = environment_of(given)
    assert {"PIP_INDEX_URL", "HOME"} <= {*kept}
    assert not {"PIP_TARGET", "PIP_USER", "PYTHONPATH"} & {*kept}


@pytest.mark.skipif(UV is None, reason="uv is not installed")
def test_killed_at_random_moments(bed: Bed) -> None:
    from random import Random

    env = bed.environment(*CPU, "cupy-cuda12x", "cupy-cuda13x", installer="uv")
    counted = kill_often(env, 3, Random(os.getpid()))
    assert counted["as neither"] == 0
    assert counted.total() - counted["half changed when killed"] == 3


def test_a_signal_ends_it_in_order(bed: Bed) -> None:
    env = bed.environment(*CPU)
    before = env.state()
    command = [sys.executable, "-m", "gpudoctor", "fix", "--yes", "--fast", "--python", env.python]
    with subprocess.Popen(
        command, env=dict(bed.variables), cwd=bed.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "Applying" in line:
                process.send_signal(signal.SIGTERM)
        process.wait()
    assert process.returncode == 3
    assert env.state() == before
    assert not (env.path / ".gpudoctor" / "pending").exists()


def test_every_wheel_of_these_tests_is_whole(bed: Bed) -> None:
    for wheel in bed.index.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            assert archive.testzip() is None
