"""Patterns of .dockerignore.

All but two were compared with `docker build` of Docker 20.10, by both builders; the two that are marked as newer follow
github.com/moby/patternmatcher, where 20.10 still took "(" for its own and never looked into an ignored folder for `**`.
"""

import time

import pytest

from gpudoctor.containers.builds.dockerignore import parse_dockerignore


@pytest.mark.parametrize(
    ("patterns", "ignored", "kept"),
    [
        pytest.param("data", ["data", "data/a", "data/a/b"], ["x/data", "database"], id="a name, at the root only"),
        pytest.param("**/data", ["data/a", "x/data", "x/y/data/a"], ["xdata"], id="at any depth"),
        pytest.param("*.py", ["a.py"], ["x/a.py", "a.pyc"], id="one level"),
        pytest.param("**/*.py", ["a.py", "x/y/a.py"], ["a.pyc"], id="every level"),
        pytest.param("*/a", ["x/a", "x/a/b"], ["a", "x/y/a"], id="second level"),
        pytest.param("a?c", ["abc"], ["a/c", "ac"], id="one character"),
        pytest.param("[ab].txt", ["a.txt"], ["c.txt"], id="a class"),
        pytest.param("[^ab].txt", ["c.txt"], ["a.txt"], id="a class of others"),
        pytest.param("a.b", ["a.b"], ["axb"], id="a dot is a dot"),
        pytest.param("a(b)+{c}$", ["a(b)+{c}$"], ["abc"], id="no regular expression (newer)"),
        pytest.param("x*b*c", ["xbc", "xbbcc", "x-b-b-c"], ["xcb", "xb/c"], id="several stars"),
        pytest.param("*b/c*d/*", ["ab/cd/e", "b/ccdd/e"], ["ab/c/d", "a/b/cd/e"], id="stars in several names"),
        pytest.param(r"a\*b", ["a*b"], ["axb"], id="escaped"),
        pytest.param("/data/", ["data/a"], ["x/data"], id="slashes around"),
        pytest.param("./a/../data", ["data/a"], ["a"], id="cleaned"),
        pytest.param("*\n!keep", ["a", "x/keep"], ["keep", "keep/a"], id="exception"),
        pytest.param("*.md\n!README*.md\nREADME-secret.md", ["a.md", "README-secret.md"], ["README.md"], id="the last"),
        pytest.param("data\n!data/keep", ["data/a"], ["data/keep", "data/keep/x"], id="inside an ignored folder"),
        pytest.param("data/**\n!data/**/*.csv", ["data/a"], ["data/a.csv", "data/x/a.csv"], id="with folders (newer)"),
        pytest.param("# comment\n\n  a  \n", ["a"], ["# comment"], id="comments and spaces"),
        pytest.param(" #x", ["#x"], [], id="a comment begins in the first column"),
        pytest.param(".\n", [], ["a"], id="a dot alone"),
        pytest.param("\ufeffa\r\nb\r\n", ["a", "b"], [], id="byte-order mark, Windows line ends"),
        pytest.param("a**b", ["ab", "a/b", "ax/y/b"], ["axb", "ax/yb"], id="within a name"),
    ],
)
def test_ignores(patterns: str, ignored: list[str], kept: list[str]) -> None:
    ignore = parse_dockerignore(patterns)
    assert [path for path in (*ignored, *kept) if ignore.ignores(path)] == ignored


@pytest.mark.parametrize(
    ("patterns", "ignored", "kept"),
    [
        pytest.param("*\n!**/*.py", ["x/a.py", "x/y/a.py"], ["a.py"], id="a wildcard enters no folder"),
        pytest.param("*\n!src/**/*.py", ["src/a.txt", "x/a.py", "src/x/a.py"], ["src/a.py"], id="a folder it names"),
        pytest.param("*\n!src", ["x/a"], ["src/a", "src/x/a"], id="a name"),
        pytest.param(
            "x/*.txt\n!**/keep.txt", ["x/a.txt"], ["x/keep.txt", "y/a.txt"], id="a folder that is not ignored"
        ),
    ],
)
def test_builders_that_enter_few_folders(patterns: str, ignored: list[str], kept: list[str]) -> None:
    """Compared with both builders of Docker 20.10: newer BuildKits enter every folder for a wildcard."""
    ignore = parse_dockerignore(patterns).entering_few()
    assert [path for path in (*ignored, *kept) if ignore.ignores(path)] == ignored


def test_the_pattern_that_decides_is_named() -> None:
    assert parse_dockerignore("*.log\n  common/gen*  \n").decides("common/gen_table.py") == "common/gen*"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n[b", "line 2: '\\[b' is not a pattern"),
        ("!", 'line 1: "!" without'),
        ("**/a/" * 9, "more than 8 times"),
        ("a\n" * 10_001, "more than 10,000"),
    ],
)
def test_what_is_no_pattern(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_dockerignore(text)


def test_hostile_patterns_are_matched_in_bounded_time() -> None:
    ignore = parse_dockerignore("**/" * 200 + "x\n" + "*a" * 30 + "b\n" + "**/a*/" * 8 + "b")
    start = time.process_time()
    assert not ignore.ignores("/".join(["a" * 40] * 20))
    assert time.process_time() - start < 1
