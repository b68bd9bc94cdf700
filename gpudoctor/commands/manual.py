"""Help that reads like a manual page: after the options the exit statuses, and examples to copy."""

from collections.abc import Mapping, Sequence
from typing import Any

import click


class ManualCommand(click.Command):
    """A command whose help tells its exit statuses and gives examples.

    statuses: exit status → what it says. examples: what it is for → the command line.
    """

    def __init__(
        self, *arguments: Any, statuses: Mapping[int, str], examples: Sequence[tuple[str, str]], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.statuses = statuses
        self.examples = examples

    def format_epilog(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what stands after the options. Command lines are never wrapped."""
        with formatter.section("Exit status"):
            formatter.write_dl([(str(status), told) for status, told in self.statuses.items()])
        with formatter.section("Examples"):
            for told, command in self.examples:
                formatter.write_text(f"{told}:")
                formatter.write(f"{'':{formatter.current_indent + 2}}{command}\n")


class ManualGroup(ManualCommand, click.Group):
    """A group of commands with such a help."""
