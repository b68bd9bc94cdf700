"""Write the parts of the documentation that come from the program: `python docs/generate.py`.

- `docs/checks/`: one page per check, from its docstring.
- `docs/commands.md`: the help of every command.
- In every page: the output of a command in a block after `<!-- output -->` or `<!-- output, the first 9 lines -->`, and
  the table after `<!-- the requirements -->`.
- `docs/images/diagnosis.svg`: the picture of a diagnosis (needs `rich`).

A test asserts that running it again changes nothing.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from gpudoctor.commands.cli import cli
from gpudoctor.configuration.requirement_names import names
from gpudoctor.engine.catalog import load_checks
from gpudoctor.engine.runner import run_checks
from gpudoctor.probes.snapshot import take_snapshot
from gpudoctor.registry import Check
from gpudoctor.reporters import catalog, table
from gpudoctor.reporters.terminal import Screen
from gpudoctor.snapshots.recording import RecordedHost

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PICTURED = ROOT / "tests" / "machines" / "s2-rtx4090-cpu-torch"
OUTPUT = re.compile(
    r"(<!-- output(?:, the first (?P<lines>\d+) lines)? -->\n```console\n\$ gpudoctor (?P<arguments>[^\n]*)\n)"
    r".*?(?=```)",
    re.DOTALL,
)
"""A command, and its output up to the end of the block."""
REQUIREMENTS = re.compile(r"(<!-- the requirements -->\n).*?(?=\n[^|\n])", re.DOTALL)
EXAMPLES = {
    "gpu": "gpu>=1",
    "vram": "vram>=24GiB",
    "compute_capability": "compute_capability>=8.0",
    "driver": "driver>=550",
    "cuda": "cuda>=12.4",
    "python": "python>=3.10",
    "torch": "torch>=2.4",
    "cupy": "cupy>=13",
    "shm": "shm>=1GiB",
}
"""Requirements that are compared with a value; the others are bare names."""
MARKUP = re.compile(r"(?P<code>`[^`\n]*`)|\*|__|<")
"""What Markdown reads as markup, and code, in which it reads none."""
NOTE = "<!-- written by docs/generate.py -->\n"


def main() -> None:
    """Write every generated page."""
    for path, text in {**pages(), **filled_in(), DOCS / "images" / "diagnosis.svg": picture()}.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def pages() -> dict[Path, str]:
    """Return the pages that are generated as a whole."""
    checks = load_checks()
    return {
        DOCS / "commands.md": commands_page(),
        DOCS / "checks" / "README.md": list_of_checks(checks),
        **{DOCS / "checks" / f"{check.id}.md": check_page(check) for check in checks},
    }


def commands_page() -> str:
    """Return the help of every command."""
    helps = [
        f"## gpudoctor {name}\n\n```text\n{run(*name.split(), '--help').strip()}\n```\n" for name in command_names(cli)
    ]
    return "\n".join([f"{NOTE}# Commands\n\n`python -m gpudoctor` is the same program.\n", *helps])


def command_names(group: click.Group, before: str = "") -> Iterator[str]:
    """Yield the names of the commands below `group`, those of groups with the group's name before them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from command_names(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def list_of_checks(checks: tuple[Check, ...]) -> str:
    """Return the table of checks, one section per family."""
    families: dict[str, list[Check]] = {}
    for check in checks:
        families.setdefault(check.family, []).append(check)
    tables = [
        f"## {family}\n\n| check | problem |\n| --- | --- |\n"
        + "".join(f"| [{check.id}]({check.id}.md) | {cell(check.title)} |\n" for check in members)
        for family, members in families.items()
    ]
    return "\n".join([f"{NOTE}# Checks\n", *tables])


def check_page(check: Check) -> str:
    """Return the page of one check."""
    explains = ", ".join(f"[{name}]({name}.md)" for name in check.explains)
    lines = [f"{NOTE}# {check.id}\n", f"{markdown(catalog.page(check))}\n", f"Family: `{check.family}`\n"]
    if explains:
        lines.append(f"If found, it is the cause of: {explains}\n")
    return "\n".join([*lines, "[All checks](README.md)\n"])


def markdown(page: str) -> str:
    """Return the text of a page as Markdown: its headings in bold, each in a paragraph of its own."""
    text = MARKUP.sub(lambda found: found["code"] or ("&lt;" if found[0] == "<" else f"\\{found[0]}"), page.strip())
    text = re.sub(r"\n+(See it|[A-Z][a-z]+): ", r"\n\n**\1:** ", text)
    return re.sub(r"(\*\*References?:\*\* )(\S+)", lambda link: f"{link[1]}<{link[2].replace(chr(92), '')}>", text)


def filled_in() -> dict[Path, str]:
    """Return the handwritten pages with today's output."""
    texts = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]}
    return {path: fill_in(text) for path, text in texts.items() if not text.startswith(NOTE)}


def fill_in(page: str) -> str:
    """Return a page with the output of its commands, and the table of requirements if it has a place for one."""
    page = OUTPUT.sub(lambda block: block[1] + output(block["arguments"], block["lines"]), page)
    rows = "".join(f"| `{EXAMPLES.get(name, name)}` | {cell(names()[name].meaning)} |\n" for name in names())
    return REQUIREMENTS.sub(lambda place: f"{place[1]}| requirement | meaning |\n| --- | --- |\n{rows}", page)


def output(arguments: str, lines: str | None) -> str:
    """Return what a command prints, or its first lines."""
    printed = run(*shlex.split(arguments)).splitlines(keepends=True)
    return "".join(printed[: int(lines)] if lines else printed)


def picture() -> str:
    """Return the diagnosis of a recorded machine in a terminal, as SVG that loads no font."""
    from rich.console import Console
    from rich.text import Text

    report = run_checks(load_checks(), take_snapshot(RecordedHost.load(PICTURED)))
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(Text.from_ansi("$ gpudoctor check\n" + table.render(report, screen=Screen(color=True, width=100))))
    svg = console.export_svg(title="gpudoctor", unique_id="diagnosis")
    return re.sub(r"@font-face \{.*?\n    \}\n", "", svg, flags=re.DOTALL)


def run(*arguments: str) -> str:
    """Return what gpudoctor prints in a terminal of 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "gpudoctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
    )
    return done.stdout


def cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return text.replace("|", r"\|")


if __name__ == "__main__":
    main()
