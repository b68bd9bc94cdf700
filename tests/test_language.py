"""What users read is plain English: messages, fixes, help, pages of checks, README and docs; docstrings as well."""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from gpudoctor.commands.cli import cli
from tests.own_checks import own_checks

ROOT = Path(__file__).parent.parent
MODULES = [*(ROOT / "checks").glob("*.py"), *(ROOT / "gpudoctor").rglob("*.py")]
WORST = re.compile(
    r"\b(beside|besides|anew|withal|mends?|mended)\b"
    r"|\bis told\b|\bare told\b|\b(is|are) (no|not) told\b|\btells?\b(?! you)|\bto be told\b"
    r"|\bstands? (in|there|at|for)\b|\bholds\b"
    r"|\b(is|are) (?-i:none)\b|(?<!there )(?<!which )\bis no [a-z]"
    r"|\bwho reports\b|\b(is|are) spoken of\b|\bdoes not go on\b|\bof one's own\b|\bheld? (the GPU )?(back|down)\b"
    r"|\AOr[ ,]"  # the screen already says "or:"
    r"|\bwhat could not be\b|\bcomes? and go"
    r"|\banother (?!stage)[a-z' -]{1,40} than\b"  # "a different ... than"
    r"|\bGPUs? of (AMD|NVIDIA|Intel|Apple)\b|\ba report of a bug\b|\bversion of the driver\b"
    r"|(^|[.;:,] )where (it|the(?! evidence)|this|that|one|a|an|no|nothing|there|they|another) (?!is taken)",
    re.IGNORECASE | re.MULTILINE,
)
"""Patterns of LANGUAGE: words that no manual uses, "is no" for "is not", "where" for "if", chains with "of"."""

WORST_INSIDE = re.compile(
    r"\b(beside|besides|anew|withal|mends?|mended)\b|\b(is|are|was|were) (not )?told\b|\bto be told\b"
    r"|\btells?\b(?! you)"
    r"|\bstands? (in|there|at|for|before|after)\b|\bpassed over\b|\bcomes? and go|\bof one's own\b"
    r"|(?<!there )\bis no (JSON|XML|TOML|GPU|program|section|extension|path|name|device|file|such)\b"
    r"|\b(None|0|\"\"|\(\)) where\b"
    r"|\bGPUs? of (AMD|NVIDIA|Intel|Apple)\b|\ba report of a bug\b|\bversion of the driver\b|\bwhat could not be\b",
    re.IGNORECASE,
)
"""The same in docstrings and comments, without the patterns that are often right there."""

SHOWN_KEYS = {
    "summary",
    "says",
    "why",
    "confirm",
    "where",
    "meaning",
    "wish",
    "text",
    "understood",
    "missing",
    "detail",
}


def json_texts(value: object, key: str = "") -> Iterator[str]:
    """Yield the sentences of a table; patterns, sources and commands are not sentences."""
    if isinstance(value, str) and key in SHOWN_KEYS:
        yield value
    for name, item in value.items() if isinstance(value, dict) else ():
        if name not in ("sources", "patterns", "about"):
            yield from json_texts(item, name)
    for item in value if isinstance(value, list) else ():
        yield from json_texts(item, key)


def python_texts(path: Path) -> Iterator[str]:
    """Yield the texts in a module that a user may see: not its docstrings, not its regular expressions."""
    tree = parsed(path)
    hidden = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            values = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
            yield "".join(str(value) for value in values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden | parts:
            yield node.value if " " in node.value else ""


def help_texts(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name=path)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from help_texts(below, f"{path} {name}")


@cache
def shown() -> list[tuple[str, str]]:
    """Return where each text is, and the text."""
    return list(_shown())


def _shown() -> Iterator[tuple[str, str]]:
    for check in own_checks():
        yield f"explain {check.id}", check.page
    yield from help_texts(cli, "gpudoctor")
    for path in MODULES:
        if path.parent.name == "model":
            continue  # what facts mean, for those who write checks
        yield from ((str(path.relative_to(ROOT)), text) for text in python_texts(path))
    for path in (ROOT / "gpudoctor").rglob("*.json"):
        yield from ((path.name, text) for text in json_texts(json.loads(path.read_text(encoding="utf-8"))))
    for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]:
        yield path.name, path.read_text(encoding="utf-8")


def offences() -> list[str]:
    return [f"{place}: ...{text[max(match.start() - 30, 0) : match.end() + 40]!r}" for place, text in shown()
            for match in WORST.finditer(text)]  # fmt: skip


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def docstrings_and_comments(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    yield from re.findall(r"(?:^|\s)# (.*)", path.read_text(encoding="utf-8"))


def test_docstrings_and_comments_have_none_of_the_worst_patterns() -> None:
    texts = [(path.name, text) for path in MODULES for text in docstrings_and_comments(path)]
    assert len(texts) > 4000
    assert [f"{name}: ...{text[max(match.start() - 30, 0) : match.end() + 40]!r}" for name, text in texts
            for match in WORST_INSIDE.finditer(text)] == []  # fmt: skip


def test_functions_and_fields_have_names_without_the_worst_words() -> None:
    words = r"\w*(?<![^\W_])(?:told|tells?|anew|beside|mends?)(?![^\W_])\w*"
    named = re.compile(rf"\bdef ({words})|^    ({words}):", re.MULTILINE)
    in_tests = re.compile(rf"\bdef (?!told\b)({words})")
    found = [f"{path.name}: {match[0]}" for path in MODULES for match in named.finditer(path.read_text("utf-8"))]
    tests = [*(ROOT / "tests").rglob("*.py")]
    found += [f"{path.name}: {match[0]}" for path in tests for match in in_tests.finditer(path.read_text("utf-8"))]
    assert len(tests) > 300
    assert found == []


def test_there_is_much_to_read() -> None:
    places = {place for place, _ in shown()}
    assert {"explain driver-too-old", "gpudoctor tune", "advice.json", "README.md"} <= places
    assert {"checks/driver_too_old.py", "program.json", "gpudoctor/tuning/gates.py"} <= places
    assert len(shown()) > 3000


def test_nothing_that_users_read_has_the_worst_patterns() -> None:
    assert offences() == []


def test_no_check_writes_a_number_with_an_exponent() -> None:
    checks = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "checks").glob("*.py")}
    assert len(checks) > 90
    assert [name for name, text in checks.items() if re.search(r":[.\d]*e\}", text)] == []
