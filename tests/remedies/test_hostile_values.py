"""No value of a report runs anything: every fix is made from hostile values, and bash runs its lines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from gpudoctor.model import Fix, Python, System
from gpudoctor.remedies.commands import environment_of, is_windows, quote, quote_name
from gpudoctor.triage.next_steps import next_steps
from tests.remedies.hostile_values import BEGIN, DISCRIMINATORS, END, VALUES, remedies
from tests.remedies.made import pasted_one

BASH = shutil.which("bash") or ""
# Programs are not found, and record how they were called; so do the builtins.
RECORDER = r"""
record() { builtin printf '%s\0' "$#" "$@" >>"$RECORD"; }
command_not_found_handle() { record "$@"; }
for name in echo printf export unset cd source eval exec test kill alias ulimit; do
    builtin eval "$name() { record $name \"\$@\"; }"
done
while IFS= read -r -d '' line; do
    ( builtin eval "$line" ) </dev/null >/dev/null 2>&1
    builtin printf 'END\0' >>"$RECORD"
done <"$LINES"
"""
MARKED = [value for value in VALUES if BEGIN in value]
LINUX = [name for name in DISCRIMINATORS if not name.startswith("windows")]
WINDOWS = [name for name in DISCRIMINATORS if name.startswith("windows")]
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:+-é")


def hostile_lines(machine: str, value: str) -> Iterator[str]:
    """Yield the commands with the value in them; what is refused is shown in a sentence."""
    for _, remedy in remedies(machine, value):
        for command in remedy.commands:
            assert command.isprintable(), command
            if BEGIN in command or END in command:
                yield command


def chosen(machine: str, windows: bool = False) -> list[tuple[str, str]]:
    """Return values and commands: of each place that a value has, those of the first three that are not refused there.

    What stands around a quoted value is the same for every value. Each value is on one machine with Linux and on one
    with Windows.
    """
    found: list[tuple[str, str]] = []
    times: Counter[str] = Counter()
    machines = WINDOWS if windows else LINUX
    for value in MARKED[machines.index(machine) :: len(machines)]:
        for number, command in enumerate(hostile_lines(machine, value)):
            place = command.replace(quote(value, windows), "VALUE")
            times[place] += 1
            if times[place] <= 3 or number == 0 or BEGIN in place:
                found.append((value, command))
    return found


def called(lines: Iterable[str], folder: Path) -> list[list[list[str]]]:
    """Return what each line calls in bash, each call as the list of its arguments."""
    (folder / "lines").write_bytes(b"".join(line.encode("utf-8") + b"\0" for line in lines))
    (folder / "record").write_bytes(b"")
    (folder / "work").mkdir(exist_ok=True)
    environment = {"PATH": str(folder / "nothing"), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    environment |= {"RECORD": str(folder / "record"), "LINES": str(folder / "lines")}
    subprocess.run(
        [BASH, "--norc", "--noprofile", "-c", RECORDER], env=environment, cwd=folder / "work", check=True, timeout=300
    )
    words = iter((folder / "record").read_bytes().decode("utf-8", "replace").split("\0")[:-1])
    found: list[list[list[str]]] = [[]]
    for word in words:
        if word == "END":
            found.append([])
        else:
            found[-1].append([next(words) for _ in range(int(word))])
    return found[:-1]


def assert_whole(value: str, call: Sequence[str], line: str) -> None:
    """The value arrives as a part of one argument, which is no option and no code of Python."""
    for before, argument in zip(("", *call), call, strict=False):
        if BEGIN in argument or END in argument:
            if before == "-c":
                assert set(value) <= PLAIN, f"in Python code: {line}"
                continue
            assert value in argument, line
            assert not argument.startswith(value) or not value.startswith("-"), f"an option: {line}"


@pytest.mark.skipif(not BASH or os.name == "nt", reason="needs bash")
@pytest.mark.parametrize("machine", LINUX)
def test_bash_passes_each_value_on_whole_and_runs_nothing_of_it(machine: str, tmp_path: Path) -> None:
    pairs = chosen(machine)
    for (value, line), calls in zip(pairs, called([line for _, line in pairs], tmp_path), strict=True):
        for call in calls:
            assert_whole(value, call, line)
    assert list((tmp_path / "work").iterdir()) == []
    assert len(pairs) > 50


def powershell(line: str) -> list[str]:
    """Return the words of a line as PowerShell reads them. Raises ValueError: it runs or expands something."""
    words, at = [""], 0
    line = re.sub(r"^\$env:\w+ = (?!\"\$)", "=", line)
    line = re.sub(
        r'^\$env:PATH = "\$\((.*)\);\$env:PATH"$', r"\1", line
    )  # a command within quotes has quotes of its own
    line = line.removeprefix("& ")
    while at < len(line):
        mark = line[at]
        if mark in "'\u2018\u2019\u201a\u201b":
            end = next(n for n in range(at + 1, len(line)) if line[n] in "'\u2018\u2019\u201a\u201b")
            words[-1] += line[at + 1 : end]
            at = end
        elif mark in '"\u201c\u201d\u201e':
            end = next(n for n in range(at + 1, len(line)) if line[n] in '"\u201c\u201d\u201e')
            inside = line[at + 1 : end]
            if re.search("[$`]", inside.removeprefix("$HOME")) and BEGIN in inside:
                raise ValueError(f"expanded: {line}")
            words[-1] += inside
            at = end
        elif mark == " ":
            words.append("")
        elif mark in "$`;|&(){}<>,\n" or (mark in "@#" and not words[-1]):
            words[-1] += f"<{mark}>"  # means something there
        else:
            words[-1] += mark
        at += 1
    return words


def outside_of_quotes_in_cmd(line: str) -> str:
    """Return what cmd does not take as text: it knows double quotes only, within which % still expands."""
    return "".join(part for n, part in enumerate(line.split('"')) if n % 2 == 0 or "%" in part)


@pytest.mark.parametrize("machine", WINDOWS)
def test_powershell_and_cmd_run_nothing_of_a_value(machine: str) -> None:
    pairs = chosen(machine, windows=True)
    for value, line in pairs:
        assert_whole(value, powershell(line), line)
        if BEGIN in outside_of_quotes_in_cmd(line) and not line.startswith('$env:PATH = "$('):
            assert not set(value) & set("&|<>^%"), line
    assert len(pairs) > 20


@pytest.mark.parametrize("machine", [*LINUX[:1], *WINDOWS[:1]])
@pytest.mark.parametrize("value", [value for value in VALUES if not value.isprintable()], ids=ascii)
def test_what_cannot_be_seen_is_in_no_command(value: str, machine: str) -> None:
    assert list(hostile_lines(machine, value)) == []


def test_a_refused_value_is_shown_as_text() -> None:
    remedy = pasted_one(Fix("restart-container"), python=Python(), system=System(os="linux"))
    assert remedy.commands
    hostile = pasted_one(Fix("unset-variable", name="A;reboot"))
    assert hostile.commands == ()
    assert hostile.summary.endswith('; no command is shown, because "A;reboot" is not a valid name or path')


@pytest.mark.parametrize(
    ("path", "windows"),
    [
        ("C:\\v\\python.exe", True),
        ("C:/v/python.exe", True),
        (".venv\\Scripts\\python.exe", True),
        ("/c/Users/me/a$(calc.exe)", False),
        ("/work/a\\b/bin/python", False),
        ("a\\b", False),
    ],
)
def test_a_backslash_alone_is_no_sign_of_windows(path: str, windows: bool) -> None:
    assert is_windows(Python(executable=path), System()) is windows


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("C:\\a b\\python.exe", '"C:\\a b\\python.exe"'),
        ("numpy<2", '"numpy<2"'),
        ("/c/Users/me/a$(calc.exe)", "'/c/Users/me/a$(calc.exe)'"),
        ("a,b", '"a,b"'),
        ("@a", '"@a"'),
    ],
)
def test_the_quotes_of_windows(word: str, quoted: str) -> None:
    assert quote(word, windows=True) == quoted


@pytest.mark.parametrize("word", ["a$(b)&c", "a$'b", "%PATH%", 'a"b', "a b\\", "a`\u2019b"])
def test_what_one_shell_of_windows_would_run_is_refused(word: str) -> None:
    assert not quote(word, windows=True).isprintable()


@pytest.mark.parametrize(
    "name", ["user", "host", "user@host", "***", "--index-url=https://x", "-r", "a b", "a;b", "", "é"]
)
def test_pip_is_given_no_name_that_is_none(name: str) -> None:
    environment = environment_of(Python(executable="/v/bin/python"))
    assert environment.install([name]).isprintable() is (name == "-r")
    assert environment.uninstall([name]).isprintable() is (name == "-r")


@pytest.mark.parametrize(
    "requirement",
    ["torch==2.9.0+cu130", "jax[cuda12]", "numpy<2", "numpy>=1.24, <2", "nvidia-cudnn-cu12==9.*", "user-agents",
     "--upgrade", "git+https://github.com/NVIDIA/apex.git", "torch"],
)  # fmt: skip
def test_pip_is_given_every_requirement(requirement: str) -> None:
    assert environment_of(Python()).install([requirement]).isprintable()


@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_a_next_step_runs_nothing_of_the_interpreter(value: str) -> None:
    for step in next_steps(frozenset(), Python(executable=value), System(os="linux")):
        assert step.command.isprintable()
        assert BEGIN not in step.command or quote(value) in step.command


@pytest.mark.parametrize("name", ["a b", "$(reboot)", "-it", "", "a\nb"])
def test_a_container_that_is_none_is_not_named(name: str) -> None:
    assert not quote_name(name).isprintable()
