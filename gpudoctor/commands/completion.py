"""Names of checks, families and requirements for the completion of a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gpudoctor.registry import Check


def all_checks() -> tuple[Check, ...]:
    """Return every check, those in the folder that the configuration names too.

    Raises:
        UsageError: the configuration is wrong.
    """
    from gpudoctor.engine.catalog import load_checks
    from gpudoctor.engine.plan import project_configuration, working_directory

    return load_checks(project_configuration(working_directory()).plugins)


def complete_ids(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids of checks that begin with this text, each with its problem."""
    return _items([(check.id, check.title) for check in _checks()], incomplete)


def complete_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids and the families of checks that begin with this text."""
    checks = _checks()
    families = dict.fromkeys(check.family for check in checks)
    names = [(family, f"all checks of the family {family}") for family in families]
    return _items([*names, *((check.id, check.title) for check in checks)], incomplete)


def complete_requirements(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the names of requirements that begin with this text, without operators, which a shell interprets."""
    from gpudoctor.configuration.requirement_names import names

    return _items([(name, known.meaning) for name, known in names().items()], incomplete)


def _checks() -> tuple[Check, ...]:
    """Return gpudoctor's own checks: the tab key runs no code of a plugin."""
    from gpudoctor.engine.catalog import load_checks

    return load_checks(plugins=False)


def _items(words: list[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(word, help=text or None) for word, text in words if word.startswith(incomplete)]
