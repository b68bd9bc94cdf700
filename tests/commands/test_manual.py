"""The help of every command reads like a manual page: what it does, options, exit statuses, examples that work."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from gpudoctor.commands.cli import cli
from gpudoctor.commands.manual import ManualCommand
from gpudoctor.engine.catalog import load_checks
from gpudoctor.registry import Check


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the command and all below it, each with how it is called."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, f"{path} {name}")


COMMANDS = dict(commands(cli, "gpudoctor"))


def help_of(path: str) -> str:
    command = COMMANDS[path]
    context = click.Context(command, info_name=path, max_content_width=80, terminal_width=80)
    return command.get_help(context)


@pytest.mark.parametrize("path", COMMANDS)
def test_a_page(path: str) -> None:
    text = help_of(path)
    assert max(map(len, text.splitlines())) <= 80
    assert [s for s in ("\nExit status:\n", "\nExamples:\n") if s not in text] == []
    assert re.search(r"^  0  ", text, re.MULTILINE)
    assert "Exit status" not in text.partition("Options:")[0]


@pytest.mark.parametrize("path", COMMANDS)
def test_its_examples_are_taken(path: str) -> None:
    command = COMMANDS[path]
    assert isinstance(command, ManualCommand)
    assert len(command.examples) >= 2
    for _, line in command.examples:
        assert_taken(line)


@pytest.mark.parametrize("path", COMMANDS)
def test_it_takes_no_color(path: str) -> None:
    command = COMMANDS[path]
    context = click.Context(command, info_name=path, resilient_parsing=True)
    command.parse_args(context, ["--no-color"])
    assert context.color is False


def assert_taken(line: str) -> None:
    """Assert that the command line, up to what a shell does with its end, names a command and its options."""
    words = shlex.split(line.partition(" |")[0])
    path = next(" ".join(words[:n]) for n in (3, 2) if " ".join(words[:n]) in COMMANDS)
    arguments = words[len(path.split()) :]
    COMMANDS[path].make_context(path, arguments)


def test_the_commands_are_described_in_whole_sentences() -> None:
    text = help_of("gpudoctor")
    assert "..." not in text.partition("Commands:")[2]


@pytest.mark.parametrize("check", load_checks(), ids=lambda check: check.id)
def test_every_page_of_a_check_has_its_reference(check: Check) -> None:
    assert re.search(r"^References?: https://\S+$", check.page, re.MULTILINE)


# 1 where something can be found, stale or different; `run` ends as the program does.
STATUSES = {
    (0, 1, 2, 3): ("check", "tune", "profile", "profile verify", "rebuild", "diff"),
    (0, 2, 3): ("profile export", "profile show", "snapshot", "record", "list", "explain"),
    (0, 2, 127): ("run",),
    (0, 2): ("init", "completion"),
}


@pytest.mark.parametrize(("name", "statuses"), [(name, key) for key, names in STATUSES.items() for name in names])
def test_the_exit_statuses_of_a_command(name: str, statuses: tuple[int, ...]) -> None:
    command = COMMANDS[f"gpudoctor {name}"]
    assert isinstance(command, ManualCommand)
    assert tuple(command.statuses) == statuses
