"""The env profile in the working directory, read as any machine's."""

import os
from pathlib import Path

import pytest

from gpudoctor.model.profile import FoundProfile
from gpudoctor.probes.host import ProbeContext
from gpudoctor.probes.profile import parse_profile
from gpudoctor.probes.workers import read_host
from gpudoctor.profiles.env_file import render
from tests.probes.asked import asked
from tests.profiles.samples import FINGERPRINT, PROFILE

TEXT = render(PROFILE)


def read(folder: Path) -> FoundProfile | None:
    question = asked("profile", ProbeContext(environ={}, directory=folder))
    assert (question.name, question.worker) == ("profile", "read_host")
    return parse_profile(read_host.collect(question.arguments))


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), "\ufeff" + TEXT])
def test_a_profile(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "project [1]: a"
    folder.mkdir()
    (folder / "gpudoctor.env").write_bytes(text.encode())
    assert read(folder) == FoundProfile(device="cuda:0", workload="cnn", mode="training", fingerprint=FINGERPRINT)


def test_no_profile(tmp_path: Path) -> None:
    assert read(tmp_path) is None


def test_other_variables_in_it_leave_the_worker_never(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.env").write_text(TEXT + "DATABASE_PASSWORD=hunter2\n# hunter2\n")
    answer = read_host.collect(asked("profile", ProbeContext(environ={}, directory=tmp_path)).arguments)
    assert "hunter2" not in repr(answer)
    assert parse_profile(answer) == read(tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "GPUDOCTOR_SCHEMA is missing: this is not a gpudoctor profile"),
        (
            TEXT.replace("profile/1", "profile/9"),
            "its schema is 'gpudoctor/profile/9', this gpudoctor reads gpudoctor/profile/1",
        ),
        (TEXT.replace("SIZE=256", "SIZE=big"), "GPUDOCTOR_BATCH_SIZE is 'big', not a whole number from 1 on"),
        (TEXT + "GPUDOCTOR_MODE=inference\n", "GPUDOCTOR_MODE is in it twice"),
    ],
)
def test_one_that_cannot_be_used(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.env").write_text(text)
    assert read(tmp_path) == FoundProfile(problem=problem)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gpudoctor.env")
    assert read(tmp_path) == FoundProfile(problem="ValueError not a regular file")


def test_a_file_of_any_size_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "gpudoctor.env").write_text("GPUDOCTOR_A=" + "x" * 10**6 + "\n" + "GPUDOCTOR_B=1\n" * 10**5)
    answer = read_host.collect(asked("profile", ProbeContext(environ={}, directory=tmp_path)).arguments)
    assert len(repr(answer)) < 10**5
