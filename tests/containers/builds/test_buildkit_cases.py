"""The parsers of Dockerfiles and .dockerignore against the published cases of BuildKit's own.

The cases, with source and licence, are in buildkit_cases.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.containers.builds.dockerfile import Instruction, parse_dockerfile
from gpudoctor.containers.builds.dockerignore import parse_dockerignore
from gpudoctor.containers.builds.stages import read_stages

CASES = json.loads((Path(__file__).parent / "buildkit_cases.json").read_text("utf-8"))


def cases(kind: str, text: str = "text") -> list[Any]:
    return [pytest.param(case, id=f"{number} {str(case[text])[:50]!r}") for number, case in enumerate(CASES[kind], 1)]


def only(text: str) -> Instruction:
    """Return the one instruction of `text`."""
    _, found = parse_dockerfile(f"FROM base\n{text}\n").instructions
    return found


def arguments(found: Instruction) -> list[str]:
    """Return the arguments as BuildKit's parser lists them, by the instruction."""
    if found.name in ("ENV", "LABEL", "HEALTHCHECK"):
        first, *rest = found.rest.split(maxsplit=1)
        return [first, *(found.words[1:] if found.is_json else rest)]
    is_list = found.is_json or found.name in ("ADD", "COPY", "FROM", "VOLUME")
    return list(found.words) if is_list else [found.rest]


@pytest.mark.parametrize("case", cases("instructions"))
def test_instructions(case: dict[str, Any]) -> None:
    found = parse_dockerfile(case["text"]).instructions
    assert [
        (
            f"ONBUILD {item.name}" if item.onbuild else item.name,
            [f"--{name}={value}" if value else f"--{name}" for name, value in item.flags],
            arguments(item),
        )
        for item in found
    ] == [(item["name"], item.get("flags", []), item["arguments"]) for item in case["instructions"]]


@pytest.mark.parametrize("case", cases("lines"))
def test_lines(case: dict[str, Any]) -> None:
    assert [item.line for item in parse_dockerfile(case["text"]).instructions] == case["lines"]


@pytest.mark.parametrize("case", cases("assignments"))
@pytest.mark.parametrize("name", ["ENV", "LABEL"])
def test_assignments(case: dict[str, Any], name: str) -> None:
    dockerfile = parse_dockerfile(f"FROM base\n{name} {case['text']}\n")
    if case["words"] is None:
        with pytest.raises(ValueError, match=f"line 2: .*{name}"):
            read_stages(dockerfile, {})
    else:
        ((step,),) = (stage.steps for stage in read_stages(dockerfile, {}))
        assert list(step.words) == case["words"]


@pytest.mark.parametrize("case", cases("json"))
def test_json(case: dict[str, Any]) -> None:
    if case["words"] is None:
        with pytest.raises(ValueError, match="line 2: .*strings"):
            only(f"RUN {case['text']}")
    else:
        assert (only(f"RUN {case['text']}").is_json, list(only(f"RUN {case['text']}").words)) == (True, case["words"])


@pytest.mark.parametrize("case", cases("heredocs"))
def test_here_documents(case: dict[str, Any]) -> None:
    found = only(case["text"]).heredocs
    assert [{"name": doc.name, "content": doc.content, "expands": doc.expands} for doc in found] == case["documents"]


@pytest.mark.parametrize("case", cases("escapes"))
def test_directives(case: dict[str, Any]) -> None:
    if case["escape"] is None:
        with pytest.raises(ValueError, match="escape"):
            parse_dockerfile(f"{case['text']}FROM base\n")
    else:
        assert parse_dockerfile(f"{case['text']}FROM base\n").escape == case["escape"]


@pytest.mark.parametrize("case", cases("refused"))
def test_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="line 2: longer than"):
        parse_dockerfile(case["text"].replace("@65536", "a" * 65536))


@pytest.mark.parametrize("case", cases("patterns", "patterns"))
def test_patterns(case: dict[str, Any]) -> None:
    text = "\n".join(case["patterns"])
    if case["matches"] is None:
        with pytest.raises(ValueError, match="line 1: "):
            parse_dockerignore(text)
    else:
        assert parse_dockerignore(text).ignores(case["path"]) is case["matches"]


@pytest.mark.parametrize("case", cases("ignore_files"))
def test_ignore_files(case: dict[str, Any]) -> None:
    ignore = parse_dockerignore(case["text"])
    assert [path for path in (*case["ignored"], *case["kept"]) if ignore.ignores(path)] == case["ignored"]
