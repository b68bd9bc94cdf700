"""A Dockerfile as text, and the instructions in it."""

from __future__ import annotations

import pytest

from gpudoctor.containers.builds.dockerfile import Heredoc, Instruction, context_mounts, parse_dockerfile


def only(text: str) -> Instruction:
    """Return the one instruction of `text` that is not FROM."""
    (found,) = (item for item in parse_dockerfile(f"{text}\nFROM scratch\n").instructions if item.name != "FROM")
    return found


def test_lines_count_from_the_first_line_of_an_instruction() -> None:
    dockerfile = parse_dockerfile("# a comment\n\nFROM scratch\nRUN a && \\\n    b\nCOPY x y\n")
    assert [(item.name, item.line) for item in dockerfile.instructions] == [("FROM", 3), ("RUN", 4), ("COPY", 6)]


def test_comments_and_empty_lines_inside_a_continued_line_are_left_out() -> None:
    assert only("COPY a \\\n# why\n\n  b \\  \n  /c/").words == ("a", "b", "/c/")


def test_names_of_instructions_are_in_any_case() -> None:
    assert only("copy a b").name == "COPY"


@pytest.mark.parametrize(
    ("line", "flags", "words"),
    [
        pytest.param("COPY --from=build --chown=1:1 a b", {"from": "build", "chown": "1:1"}, ("a", "b"), id="values"),
        pytest.param("COPY --link a b", {"link": ""}, ("a", "b"), id="no value"),
        pytest.param('COPY --chown=1 ["a b", "/c d"]', {"chown": "1"}, ("a b", "/c d"), id="JSON"),
        pytest.param("COPY [ab].txt /c", {}, ("[ab].txt", "/c"), id="a pattern that begins like JSON"),
        pytest.param('COPY "a b" c', {}, ('"a', 'b"', "c"), id="quotes do not hold words together"),
    ],
)
def test_flags_and_words(line: str, flags: dict[str, str], words: tuple[str, ...]) -> None:
    found = only(line)
    assert (dict(found.flags), found.words) == (flags, words)


def test_a_flag_may_stand_there_twice() -> None:
    found = only("COPY --exclude=a --exclude=b x y")
    assert found.flags == (("exclude", "a"), ("exclude", "b"))


def test_another_escape_character() -> None:
    dockerfile = parse_dockerfile("# escape=`\nFROM scratch\nCOPY a `\n C:\\\\b\\\n")
    assert dockerfile.escape == "`"
    assert dockerfile.instructions[1].words == ("a", "C:\\\\b\\")


def test_a_directive_after_a_comment_is_a_comment() -> None:
    assert parse_dockerfile("# hello\n# escape=`\nFROM scratch\n").escape == "\\"


def test_byte_order_mark_and_windows_line_ends() -> None:
    dockerfile = parse_dockerfile("\ufeffFROM scratch\r\nCOPY a \\\r\n b\r\n")
    assert dockerfile.instructions[1].words == ("a", "b")


def test_here_documents() -> None:
    found = only("COPY <<one.txt <<-'two' /app/\nhello $NAME\none.txt\n\tline\n\ttwo")
    assert found.heredocs == (
        Heredoc(name="one.txt", content="hello $NAME\n"),
        Heredoc(name="two", content="line\n", expands=False),
    )
    assert found.text == "COPY <<one.txt <<-'two' /app/"


def test_what_follows_a_here_document_is_the_next_instruction() -> None:
    names = [item.name for item in parse_dockerfile("FROM scratch\nRUN <<EOF\nCOPY x y\nEOF\nCOPY a b\n").instructions]
    assert names == ["FROM", "RUN", "COPY"]


def test_onbuild() -> None:
    found = only("ONBUILD COPY a b")
    assert (found.name, found.onbuild, found.words) == ("COPY", True, ("a", "b"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "no FROM", id="empty"),
        pytest.param("COPY a b\n", "no FROM", id="no FROM"),
        pytest.param(
            "FROM scratch\n\nCOPY <<EOF /x\nhello\n", "line 3: the here-document EOF is not closed", id="open"
        ),
        pytest.param("FROM scratch\n\x1b[31m x\n", r"line 2: '\\x1b\[31M' is not an instruction", id="escapes"),
        pytest.param("x" * (1 << 20) + "\n", "longer than", id="huge"),
        pytest.param("# escape=x\nFROM scratch\n", "escape='x'", id="escape"),
        pytest.param("# escape=`\n# Escape=`\nFROM scratch\n", "line 2: Escape= is set twice", id="escape twice"),
    ],
)
def test_what_is_no_dockerfile(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_dockerfile(text)


@pytest.mark.parametrize(
    ("flags", "mounts"),
    [
        ("--mount=type=bind,source=a,target=/b", [("a", "/b")]),
        ("--mount=src=a,dst=/b", [("a", "/b")]),
        ("--mount=type=bind,destination=/b", [(None, "/b")]),
        ("--mount=type=bind,from=other,source=a,target=/b", []),
        ("--mount=type=cache,target=/root/.cache", []),
        ("--mount=type=bind,source=a,target=/b --mount=type=secret,id=x --mount=source=c,target=/d",
         [("a", "/b"), ("c", "/d")]),
        ("--network=none", []),
    ],
)  # fmt: skip
def test_mounts_of_the_context(flags: str, mounts: list[tuple[str | None, str]]) -> None:
    instruction = parse_dockerfile(f"FROM scratch\nRUN {flags} make\n").instructions[-1]
    assert [(mount.get("source"), mount["target"]) for mount in context_mounts(instruction)] == mounts


@pytest.mark.parametrize("end", ["", "\n", "\n# a comment", "\n\n"])
def test_a_line_that_is_continued_by_nothing(end: str) -> None:
    found = parse_dockerfile(f"FROM scratch\nRUN a \\{end}").instructions[-1]
    assert (found.name, found.rest) == ("RUN", "a")


@pytest.mark.parametrize(
    ("name", "is_json"),
    [
        *((name, True) for name in ("ADD", "CMD", "COPY", "ENTRYPOINT", "HEALTHCHECK", "RUN", "SHELL", "VOLUME")),
        *((name, False) for name in ("ARG", "ENV", "EXPOSE", "LABEL", "STOPSIGNAL", "USER", "WORKDIR")),
    ],
)
def test_which_instructions_may_be_json(name: str, is_json: bool) -> None:
    found = only(f'{name} {"CMD " if name == "HEALTHCHECK" else ""}["/a", "/b c"]')
    assert found.is_json is is_json
    assert (found.words[-2:] == ("/a", "/b c")) is is_json


@pytest.mark.parametrize(
    ("line", "contents"),
    [
        pytest.param("RUN cat <<EOF", ["a\n"], id="a shell form"),
        pytest.param("COPY <<EOF /x", ["a\n"], id="a copy"),
        pytest.param("ADD <<EOF /x", ["a\n"], id="an addition"),
        pytest.param('RUN ["cat", "<<EOF"]', None, id="a JSON form has none"),
        pytest.param("CMD cat <<EOF", None, id="nor have others"),
    ],
)
def test_where_a_here_document_may_stand(line: str, contents: list[str] | None) -> None:
    text = f"FROM scratch\n{line}\n" + ("a\nEOF\n" if contents else "USER a\n")
    found = parse_dockerfile(text).instructions
    assert [heredoc.content for heredoc in found[1].heredocs] == (contents or [])
    assert [each.name for each in found[2:]] == ([] if contents else ["USER"])
