"""The file of a profile: what every reader of such files takes the same way, and nothing else."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.model.profile import Profile
from gpudoctor.parsers.profile_variables import all_variables
from gpudoctor.profiles.env_file import LARGEST_BYTES, parse, read_profile, render, write_profile
from tests.profiles.samples import LEAST, PROFILE

TEXT = render(LEAST)


@pytest.mark.parametrize("profile", [PROFILE, LEAST], ids=["whole", "least"])
def test_what_is_written_is_read_again(profile: Profile, tmp_path: Path) -> None:
    write_profile(tmp_path / "gpudoctor.env", profile)
    assert read_profile(tmp_path / "gpudoctor.env") == profile


def test_it_says_what_it_is() -> None:
    first, second, *_ = render(PROFILE, "tuned.env").splitlines()
    assert second == "# docker run --env-file tuned.env ..., env_file of compose, EnvironmentFile of systemd;"
    assert first.startswith("# Profile of a GPU program, measured and written by gpudoctor ")
    assert first.endswith(" on 2026-11-21T13:15:34Z.")
    assert "# in a shell: set -a; . ./tuned.env; set +a\n" in render(PROFILE, "tuned.env")


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_a_shell_reads_the_same(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    write_profile(tmp_path / "gpudoctor.env", PROFILE)
    script = "set -a; . ./gpudoctor.env; set +a; env"
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path, env={})
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert all_variables(PROFILE).items() <= variables.items()


def test_every_line_is_empty_a_comment_or_an_assignment_without_quotes() -> None:
    """As `docker run --env-file` needs them: it knows no quotes, no export and no comment behind a value."""
    lines = render(PROFILE).splitlines()
    assert {line.partition("=")[0]: line.partition("=")[2] for line in lines if line and line[0] != "#"} == (
        all_variables(PROFILE)
    )


def test_a_warning_cannot_leave_its_comment() -> None:
    """systemd joins a line to a comment that ends in a backslash."""
    hostile = Profile(**{**vars(LEAST), "warnings": ("a\nLD_PRELOAD=/tmp/x", "b\\", "\x1b[31m")})
    comments = [line for line in render(hostile).splitlines() if "Warning" in line]
    assert comments == ["# Warning: a/nLD_PRELOAD=/tmp/x", "# Warning: b/", "# Warning: /x1b[31m"]
    assert parse(render(hostile), "x") == LEAST


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", "\r\n"),
        "\n\n" + TEXT,
        TEXT.rstrip("\n"),
        TEXT + "   # an indented comment\n",
        "".join(sorted(TEXT.splitlines(keepends=True))),
    ],
    ids=["Windows line ends", "empty lines", "no line end", "indented comment", "another order"],
)
def test_what_editors_change_does_no_harm(text: str) -> None:
    assert parse(text, "gpudoctor.env") == LEAST


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    (tmp_path / "x.env").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert read_profile(tmp_path / "x.env") == LEAST


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("export A=1", "x.env line 1: remove the word export: docker and systemd do not support it"),
        ("export\tA=1", "x.env line 1: remove the word export: docker and systemd do not support it"),
        ("A='1'", "x.env line 1: remove the quotes: docker makes them part of the value"),
        ("A=a b", "x.env line 1: the value of A may contain only A-Z a-z 0-9 _ . , : / + -"),
        ("A=$(reboot)", "x.env line 1: the value of A may contain only A-Z a-z 0-9 _ . , : / + -"),
        ("A=1 # one", "x.env line 1: the value of A may contain only A-Z a-z 0-9 _ . , : / + -"),
        ("A =1", "x.env line 1: 'A =1' is not of the form NAME=value"),
        (" A=1", "x.env line 1: ' A=1' is not of the form NAME=value"),
        ("1A=1", "x.env line 1: '1A=1' is not of the form NAME=value"),
        ("A", "x.env line 1: 'A' is not of the form NAME=value"),
        ("=1", "x.env line 1: '=1' is not of the form NAME=value"),
        ("A=1\n\nA=2", "x.env line 3: A is already set in line 1"),
        ("", "x.env: GPUDOCTOR_SCHEMA is missing: this is not a gpudoctor profile"),
        (
            "# c\nGPUDOCTOR_SCHEMA=gpudoctor/profile/7",
            "x.env line 2: its schema is 'gpudoctor/profile/7', this gpudoctor reads gpudoctor/profile/1",
        ),
        (
            TEXT.replace("GPUDOCTOR_WORKLOAD=mlp\n", ""),
            "x.env: GPUDOCTOR_WORKLOAD is missing",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "x.env")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"A=1\n\n\xff\xfe", "line 3: not UTF-8 text"),
        (b"\n\xff", "line 2: not UTF-8 text"),
        (b"#" * LARGEST_BYTES, ": GPUDOCTOR_SCHEMA is missing"),
        (b"A='1'", "line 1: remove the quotes"),
        (b'A="1"', "line 1: remove the quotes"),
        (b"#" * (LARGEST_BYTES + 1), ": larger than 64 KiB: this is not a gpudoctor profile"),
        (b"A=\x00\n", "line 1: the value of A may contain only"),
    ],
)
def test_what_is_no_text_or_too_large_is_said(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.env").write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_profile(tmp_path / "x.env")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.env", "nowhere.env: No such file or directory"),
        (".", "Is a directory"),
        ("a\0b", "embedded null byte"),
    ],
)
def test_a_file_that_cannot_be_opened_is_named(path: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        read_profile(tmp_path / path)
