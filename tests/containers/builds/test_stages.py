"""Stages, and what their COPY and ADD take from where."""

from collections.abc import Callable

import pytest

from gpudoctor.containers.builds import stages as module
from gpudoctor.containers.builds.dockerfile import parse_dockerfile
from gpudoctor.containers.builds.stages import Base, Copy, Stage, needed_stages, read_stages


def stages(text: str, **build_arguments: str) -> tuple[Stage, ...]:
    return read_stages(parse_dockerfile(text), build_arguments)


def copies(text: str, **build_arguments: str) -> list[Copy]:
    return [step.copy for stage in stages(text, **build_arguments) for step in stage.steps if step.copy is not None]


@pytest.mark.parametrize(
    ("line", "destination"),
    [
        pytest.param("COPY a /b", "/b", id="a file, or a folder that is there"),
        pytest.param("COPY a /b/", "/b/", id="a folder"),
        pytest.param("COPY a b", "/app/b", id="relative to WORKDIR"),
        pytest.param("COPY a .", "/app/", id="WORKDIR itself"),
        pytest.param("COPY a ../x/", "/x/", id="out of WORKDIR"),
        pytest.param("COPY a ../../../x", "/x", id="not out of the image"),
        pytest.param("COPY a b /c", "/c/", id="several sources"),
    ],
)
def test_destination(line: str, destination: str) -> None:
    (copy,) = copies(f"FROM scratch\nWORKDIR /app\n{line}\n")
    assert copy.destination == destination


def test_workdir_is_relative_to_the_one_before() -> None:
    (copy,) = copies("FROM scratch\nWORKDIR /a\nWORKDIR b\nCOPY x .\n")
    assert copy.destination == "/a/b/"


def test_a_stage_goes_on_where_its_base_ended() -> None:
    (copy,) = copies("FROM scratch AS Base\nWORKDIR /app\nENV D=data\nFROM base\nCOPY x $D/\n")
    assert copy.destination == "/app/data/"


@pytest.mark.parametrize(
    ("lines", "given", "source"),
    [
        pytest.param("ARG S=a", {}, "a", id="default"),
        pytest.param("ARG S=a", {"S": "b"}, "b", id="given"),
        pytest.param("ARG S", {}, "", id="unset"),
        pytest.param("", {"S": "b"}, "", id="not declared"),
        pytest.param("ARG S=a\nENV S=c", {"S": "b"}, "c", id="ENV wins"),
        pytest.param("ENV S two words", {}, "two words", id="older ENV"),
        pytest.param("ENV T=\"a b\" S='c d'", {}, "c d", id="quoted ENV"),
        pytest.param("ENV S=a\nENV S=b T=$S\nENV S=$T", {}, "a", id="values from before the line"),
        pytest.param("ARG http_proxy\nENV S=$HTTP_PROXY", {"HTTP_PROXY": "p"}, "p", id="predefined"),
    ],
)
def test_variables(lines: str, given: dict[str, str], source: str) -> None:
    (copy,) = copies(f"FROM scratch\n{lines}\nCOPY x$S /y\n", **given)
    assert copy.sources == (f"x{source}",)


def test_an_argument_from_before_the_first_stage_must_be_declared_again() -> None:
    text = "ARG V=1\nFROM base:$V AS a\nCOPY x$V /\nFROM a\nARG V\nCOPY y$V /\n"
    assert [stage.base for stage in stages(text, V="2")] == ["base:2", "a"]
    assert [copy.sources for copy in copies(text, V="2")] == [("x",), ("y2",)]


def test_triggers_run_in_the_stage_that_goes_on() -> None:
    text = "FROM scratch AS a\nWORKDIR /app\nONBUILD COPY x y/\nFROM a AS b\nWORKDIR /other\nCOPY z .\n"
    first, second = stages(text)
    assert [step.instruction.onbuild for step in first.steps] == [False, True]
    assert [step.copy.destination for step in second.steps if step.copy is not None] == ["/app/y/", "/other/"]


def test_flags_of_a_copy() -> None:
    (copy,) = copies("FROM scratch\nARG D=dev\nCOPY --from=$D --chmod=755 --parents --exclude=*.md --exclude=t a /b/\n")
    assert (copy.origin, copy.chmod, copy.keeps_parents, copy.excludes) == ("dev", "755", True, ("*.md", "t"))


def test_a_here_document_is_expanded_and_keeps_its_quotes() -> None:
    (copy,) = copies('FROM scratch\nENV N=1\nCOPY <<a.sh /app/\necho "$N"\na.sh\n')
    assert copy.heredocs[0].content == 'echo "1"\n'


MANY = """
FROM scratch AS base
FROM base AS build
FROM scratch AS docs
FROM scratch AS dev
COPY --from=docs a /a
FROM base AS prod
COPY --from=build x /x
COPY --from=3 y /y
COPY --from=image:tag z /z
"""


@pytest.mark.parametrize(
    ("target", "needed"),
    [(None, "base build docs dev prod"), ("build", "base build"), ("DEV", "docs dev"), ("0", "base")],
)
def test_needed_stages(target: str | None, needed: str) -> None:
    assert " ".join(stage.name for stage in needed_stages(stages(MANY), target)) == needed


def test_an_unknown_target() -> None:
    with pytest.raises(ValueError, match="no stage 'test' in the Dockerfile: it has base, build, docs, dev, prod"):
        needed_stages(stages(MANY), "test")


def test_what_cannot_be_expanded_is_named_with_its_line() -> None:
    with pytest.raises(ValueError, match=r"line 3: \$\{V/a\} is not supported"):
        stages("FROM scratch\nARG V\nCOPY ${V/a} /\n")


def test_a_copy_without_destination() -> None:
    with pytest.raises(ValueError, match="line 2: COPY needs a source and a destination"):
        stages("FROM scratch\nCOPY a\n")


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("written", [str.upper, str.lower])
def test_a_proxy_needs_no_arg(name: str, written: Callable[[str], str]) -> None:
    (copy,) = copies(f"FROM scratch\nCOPY x${written(name)} /y\n", **{written(name): "p"})
    assert copy.sources == ("xp",)


@pytest.mark.parametrize(
    ("flag", "keeps"),
    [("--parents", True), ("--parents=true", True), ("--parents=1", True), ("--parents=false", False), ("", False)],
)
def test_parents_are_kept(flag: str, keeps: bool) -> None:
    (copy,) = copies(f"FROM scratch\nCOPY {flag} a/x /y/\n")
    assert copy.keeps_parents is keeps


@pytest.mark.parametrize(
    ("line", "value"), [("ENV S", None), ("ENV S=a", "a"), ("ENV S a", "a"), ("ENV S a=b", "a=b"), ("ENV S=a b", None)]
)
def test_the_two_forms_of_env(line: str, value: str | None) -> None:
    text = f"FROM scratch\n{line}\nCOPY x$S /y\n"
    if value is None:
        with pytest.raises(ValueError, match="line 2: ENV: no = in '(S|b)'"):
            copies(text)
    else:
        assert copies(text)[0].sources == (f"x{value}",)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ENV A=$V", ("A=x",)),
        ("EXPOSE $V", ("x",)),
        ("LABEL A=$V", ("A=x",)),
        ("STOPSIGNAL $V", ("x",)),
        ("USER $V:${V}", ("x:x",)),
        ("VOLUME $V /b", ("x", "/b")),
        ('VOLUME ["$V"]', ("x",)),
        ("CMD echo $V", ("echo", "$V")),
        ("ENTRYPOINT $V", ("$V",)),
    ],
)
def test_where_variables_are_replaced(line: str, words: tuple[str, ...]) -> None:
    (stage,) = read_stages(parse_dockerfile(f"FROM scratch\nARG V=x\n{line}\n"), {})
    assert stage.steps[-1].words == words


@pytest.mark.parametrize(
    ("destination", "path"),
    [
        (".", "/app/"),
        ("..", "/"),
        ("./", "/app/"),
        ("./.", "/app/"),
        ("x/..", "/app/"),
        ("x", "/app/x"),
        ("/y/", "/y/"),
        ("...", "/app/..."),
    ],
)
def test_where_a_copy_ends(destination: str, path: str) -> None:
    (stage,) = read_stages(parse_dockerfile(f"FROM scratch\nWORKDIR /app\nCOPY a {destination}\nCOPY a b /c\n"), {})
    assert [step.copy.destination for step in stage.steps if step.copy is not None] == [path, "/c/"]


def test_the_instructions_that_a_base_adds_stand_at_the_line_of_its_name() -> None:
    first = parse_dockerfile("# a comment\nFROM base\n").instructions[0]
    found = module._triggers_of(Base(triggers=("COPY a /", "RUN make")), first)
    assert [(item.name, item.rest, item.line) for item in found] == [("COPY", "a /", 2), ("RUN", "make", 2)]
    assert module._triggers_of(Base(), first) == ()
