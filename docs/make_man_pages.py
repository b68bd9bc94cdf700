"""Write the manual page of each command, made from its --help: python docs/make_man_pages.py [FOLDER]."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from gpudoctor import __version__
from gpudoctor.commands.cli import cli
from gpudoctor.commands.manual import ManualCommand


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the command and all below it, each with how it is called."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from commands(below, f"{path} {name}")


def page(path: str, command: click.Command) -> str:
    """Return the page in the markup of man(7)."""
    context = click.Context(command, info_name=path)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{path.replace(" ", "-").upper()}" 1 "" "gpudoctor {__version__}" "gpudoctor manual"',
        ".SH NAME",
        text(f"{path.replace(' ', '-')} - {command.get_short_help_str(200)}"),
        ".SH SYNOPSIS",
        f".B {text(path)}",
        text(usage),
        ".SH DESCRIPTION",
        *paragraphs(command.help or ""),
    ]
    options = [
        record
        for item in command.get_params(context)
        if isinstance(item, click.Option) and (record := item.get_help_record(context))
    ]
    lines += [".SH OPTIONS", *(line for names, told in options for line in entry(names, told))]
    if isinstance(command, click.Group):
        below = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
        lines += [".SH COMMANDS"]
        lines += [line for name, sub in below if sub for line in entry(f"{path} {name}", sub.get_short_help_str(200))]
    if isinstance(command, ManualCommand):
        lines += [
            ".SH EXIT STATUS",
            *(x for status, told in command.statuses.items() for x in entry(str(status), told)),
        ]
        lines += [".SH EXAMPLES"]
        lines += [
            x for told, example in command.examples for x in (".PP", text(f"{told}:"), ".EX", text(example), ".EE")
        ]
    return "\n".join(line for line in lines if line) + "\n"


def text(words: str) -> str:
    """Return words in which nothing is markup."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^\.", "\\&.", escaped, flags=re.MULTILINE)


def paragraphs(words: str) -> Iterator[str]:
    """Yield the paragraphs of a help text."""
    for paragraph in words.split("\n\n"):
        yield from (".PP", text(" ".join(paragraph.split())))


def entry(name: str, told: str) -> Iterator[str]:
    """Yield an entry of a list: a name in bold, and what it means."""
    yield from (".TP", f".B {text(name)}", text(told))


def main() -> None:
    """Write the pages and say where."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/man")
    folder.mkdir(parents=True, exist_ok=True)
    for path, command in commands(cli, "gpudoctor"):
        (folder / f"{path.replace(' ', '-')}.1").write_text(page(path, command), encoding="utf-8")
    print(f"Wrote {len(list(folder.glob('*.1')))} pages to {folder}")


if __name__ == "__main__":
    main()
