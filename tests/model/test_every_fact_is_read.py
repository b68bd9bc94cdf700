"""Nothing idle: each fact of the model is read by a check, a conclusion, a remedy, a report or a requirement."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PRODUCERS = ("probes", "parsers", "readers")  # rooms that fill facts in
OF_SECTIONS = ("Snapshot", "Conclusions")  # checks, conclusions and fixes have their fields as parameters


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def fields() -> Iterator[tuple[str, str, str]]:
    """Yield record, field and annotation of everything that a record of the model holds."""
    for path in (ROOT / "gpudoctor" / "model").glob("*.py"):
        for record in tree_of(path).body:
            if isinstance(record, ast.ClassDef):
                for line in record.body:
                    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                        yield record.name, line.target.id, ast.unparse(line.annotation)


class Module:
    """What one module reads, by name.

    Fields of several records share a name, so a module reads that of one record only if it names the record, or a field
    that holds it.
    """

    def __init__(self, path: Path) -> None:
        nodes = list(ast.walk(tree_of(path)))
        self.read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
        self.known = {node.id for node in nodes if isinstance(node, ast.Name)} | self.read
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        for path_of_fact in (text for text in texts if len(text) < 100 and " " not in text):
            self.known |= set(re.findall(r"\w+", path_of_fact))  # "torch.cuda_version", f"devices[{number}].name"
            self.read |= set(re.findall(r"\.(\w+)", path_of_fact))
        given = [word for node in nodes if isinstance(node, ast.Call) for item in node.args for word in ast.walk(item)]
        named = {word.value for word in given if isinstance(word, ast.Constant)}  # known_facts(path, device, "name")
        self.read |= {text for text in texts if text.isidentifier() and ("getattr" in self.known or text in named)}


@cache
def modules() -> list[Module]:
    paths = [*(ROOT / "checks").glob("*.py"), *(ROOT / "gpudoctor").rglob("*.py")]
    return [Module(path) for path in paths if path.relative_to(ROOT).parts[1] not in PRODUCERS]


def holders(facts: list[tuple[str, str, str]]) -> Mapping[str, set[str]]:
    """Return record → itself and the fields of other records that hold it."""
    found = {record: {record} for record, _, _ in facts}
    for _, field, annotation in facts:
        for name in set(re.findall(r"\w+", re.sub(r"'[^']*'", "", annotation))) & set(found):
            found[name].add(field)
    return found


def unread(facts: list[tuple[str, str, str]]) -> set[str]:
    """Return the fields that no module reads."""
    ways = holders(facts)
    return {
        f"{record}.{field}"
        for record, field, annotation in facts
        if record not in OF_SECTIONS and not any(field in m.read and m.known & ways[record] for m in modules())
    }


def test_every_fact_is_read() -> None:
    assert unread(list(fields())) == set()


@pytest.mark.parametrize(
    ("record", "field"),
    [
        pytest.param("Device", "fan_percent", id="a name of its own"),
        pytest.param("UnmetRequirement", "throughput", id="a name that other records have"),
    ],
)
def test_a_new_fact_that_nobody_reads_is_found(record: str, field: str) -> None:
    added = (record, field, "Annotated[int | None, Fact('new')]")
    assert unread([*fields(), added]) == {f"{record}.{field}"}
