"""`gpudoctor list` and `gpudoctor explain`."""

import os
import sys

import click

from gpudoctor.commands.completion import all_checks, complete_ids, complete_names
from gpudoctor.commands.manual import ManualCommand
from gpudoctor.commands.options import FORMATS, print_text
from gpudoctor.errors import UsageError
from gpudoctor.reporters import terminal


@click.command("list", cls=ManualCommand, short_help="List the checks.")
@click.argument("names", nargs=-1, metavar="[ID or FAMILY]...", shell_complete=complete_names)
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True)
def list_checks(names: tuple[str, ...], format_name: str) -> None:
    """List the checks: id, family and the problem that each one finds. In a pipe, each check is one line."""
    from gpudoctor.engine.catalog import select
    from gpudoctor.reporters import catalog

    checks = select(all_checks(), names)
    if format_name == "json":
        print_text(catalog.render_json(checks))
    else:
        width = terminal.width(os.environ, sys.stdout) if sys.stdout.isatty() else None
        print_text(catalog.render_list(checks, width=width))


@click.command(cls=ManualCommand, short_help="Explain one check.")
@click.argument("name", metavar="ID", required=False, shell_complete=complete_ids)
def explain(name: str | None) -> None:
    """Explain one check: what it finds, why it matters, how to see and fix it, known exceptions, and the reference."""
    from gpudoctor.engine.catalog import named
    from gpudoctor.reporters import catalog

    if name is None:
        raise UsageError("explain: an ID is missing: gpudoctor list shows the checks")
    page = next((check for check in named(all_checks(), name) if check.id == name), None)
    if page is None:
        raise UsageError(f"explain: {name!r} is a family: gpudoctor list {name} shows its checks")
    print_text(catalog.render_page(page, width=terminal.width(os.environ, sys.stdout)))
