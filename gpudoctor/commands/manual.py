"""Help that reads like a manual page: after the options the exit statuses, and examples to copy."""

import json
import os.path
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import click


def _print_no_colors(context: click.Context, _option: click.Parameter, value: bool) -> None:
    context.color = False if value else context.color


class ManualCommand(click.Command):
    """A command whose help has exit statuses and examples: those that manual.json has under its name.

    Each one has the option --no-color.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        option = click.Option(
            ["--no-color"], is_flag=True, expose_value=False, callback=_print_no_colors, help="Print no colors."
        )
        self.params.append(option)

    @cached_property
    def _page(self) -> Mapping[str, Any]:
        with open(os.path.join(os.path.dirname(__file__), "manual.json"), encoding="utf-8") as file:
            page: dict[str, Any] = json.load(file)[self.name]
        return page

    @property
    def statuses(self) -> Mapping[int, str]:
        """Exit status → what it means."""
        return {int(status): meaning for status, meaning in self._page["statuses"].items()}

    @property
    def examples(self) -> Sequence[tuple[str, str]]:
        """What it is for → the command line."""
        return [(purpose, command) for purpose, command in self._page["examples"]]

    def format_epilog(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections after the options. Command lines are never wrapped."""
        with formatter.section("Exit status"):
            formatter.write_dl([(str(status), meaning) for status, meaning in self.statuses.items()])
        with formatter.section("Examples"):
            for purpose, command in self.examples:
                formatter.write_text(f"{purpose}:")
                formatter.write(f"{'':{formatter.current_indent + 2}}{command}\n")


class ManualGroup(ManualCommand, click.Group):
    """A group of commands with such a help."""
