"""What leaves the machine names no person and no host."""

from pathlib import Path

import pytest

from gpudoctor.host import Setting
from gpudoctor.privacy import mask

ALICE = Setting(environ={}, directory=Path(), home="/home/alice", host_name="lab42")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/home/alice/venv/bin/python", "~/venv/bin/python"),
        ("HOME is /home/alice", "HOME is ~"),
        ("/home/alice2/venv", "/home/user/venv"),
        ("/home/bob/job.py", "/home/user/job.py"),
        ("/Users/carol/job.py", "/Users/user/job.py"),
        (r"C:\Users\Dave\job.py", r"C:\Users\user\job.py"),
        ("Nov 3 10:00:00 lab42 kernel: NVRM", "Nov 3 10:00:00 host kernel: NVRM"),
        ("lab420 is another", "lab420 is another"),
        ("/opt/cuda", "/opt/cuda"),
    ],
)
def test_names_are_replaced(text: str, masked: str) -> None:
    assert mask(text, ALICE) == masked


def test_whatever_depth_they_stand_at() -> None:
    facts = {"files": {"/home/alice/a": {"text": "/home/alice"}}, "paths": ["/home/alice/b", 3, None]}
    assert mask(facts, ALICE) == {"files": {"~/a": {"text": "~"}}, "paths": ["~/b", 3, None]}


def test_a_machine_without_a_home_directory() -> None:
    assert mask("/usr/bin", Setting(environ={}, directory=Path(), home="/")) == "/usr/bin"
