"""Commands carried out: their output, their end, and how they are shown."""

import os
import sys
import time

import pytest

from gpudoctor.containers.rebuild.steps import LAST_LINES, BuildFailed, Command, Progress


def python(program: str, text: str = "") -> Command:
    return Command(arguments=(sys.executable, "-c", program), text=text)


def progress(shown: list[str], timeout_seconds: float = 20.0) -> Progress:
    return Progress(shown.append, shown.append, timeout_seconds)


def test_each_line_is_shown_in_the_place_of_the_one_before() -> None:
    shown: list[str] = []
    python(r"print('one\ntwo\n\n  three  ', end='\r')").run(progress(shown))
    assert shown == ["one", "two", "  three"]


def test_standard_input_and_environment_are_handed_over() -> None:
    shown: list[str] = []
    command = Command(
        arguments=(sys.executable, "-c", "import os; print(os.environ['MODE'], input())"),
        environment={"MODE": "a b"},
        text="FROM scratch\n",
    )
    command.run(progress(shown))
    assert shown == ["a b FROM scratch"]
    assert str(command).startswith("printf %s 'FROM scratch\n' | MODE='a b' ")


def test_a_failure_has_the_last_lines() -> None:
    watched = progress([])
    with pytest.raises(BuildFailed, match=r"failed \(exit status 3\)") as failure:
        python("import sys; [print(n) for n in range(100)]; sys.exit(3)").run(watched)
    assert failure.value.lines == tuple(str(number) for number in range(100 - LAST_LINES, 100))


def test_a_build_that_takes_too_long_is_ended() -> None:
    start = time.monotonic()
    with pytest.raises(BuildFailed, match="longer than 0.2 seconds"):
        python("import time; time.sleep(60)").run(progress([], timeout_seconds=0.2))
    assert time.monotonic() - start < 50


def test_an_interruption_ends_the_command_with_what_it_started() -> None:
    shown: list[str] = []

    def interrupt(line: str) -> None:
        shown.append(line)
        raise KeyboardInterrupt

    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        python(program).run(Progress(interrupt, interrupt, 20.0))
    with pytest.raises(ProcessLookupError):
        os.kill(int(shown[0]), 0)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(BuildFailed, match="/no/docker cannot be run: No such file"):
        Command(arguments=("/no/docker", "build")).run(progress([]))


def test_endless_output_without_a_line_end_is_cut() -> None:
    shown: list[str] = []
    python("print('x' * 100_000)").run(progress(shown))
    assert max(map(len, shown)) <= 400
