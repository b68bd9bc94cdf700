"""The history of an image beside a Dockerfile, as both builders write it."""

from __future__ import annotations

import pytest

from gpudoctor.containers.builds.dockerfile import parse_dockerfile
from gpudoctor.containers.builds.stages import read_stages
from gpudoctor.containers.images.history import (
    HistoryMatch,
    entries_of,
    match_history,
    setting_asked_for,
    setting_written,
)

NOP = "/bin/sh -c #(nop) "
BASE = ["/bin/sh -c #(nop) ADD file:1 in / ", '/bin/sh -c #(nop)  CMD ["sh"]']


def laid(
    dockerfile: str,
    *history: str,
    arguments: dict[str, str] | None = None,
    comment: str = "",
    base_known: bool = False,
) -> HistoryMatch:
    """Return how the Dockerfile lies beside a history, which is given from the oldest line to the newest."""
    stages = read_stages(parse_dockerfile(f"FROM base\n{dockerfile}"), arguments or {})
    lines = [*BASE, *history]
    comments = [*("" for _ in BASE), *(comment for _ in history)]
    answer = [
        {"CreatedBy": line, "Created": 100 + number, "Comment": comments[number]} for number, line in enumerate(lines)
    ]
    entries = entries_of(reversed(answer))
    return match_history(entries, stages, stages[-1], entries[: len(BASE)] if base_known else None)


@pytest.mark.parametrize(
    ("dockerfile", "classic", "buildkit"),
    [
        pytest.param("RUN a  b", "/bin/sh -c a  b", "RUN /bin/sh -c a  b # buildkit", id="RUN"),
        pytest.param('RUN ["a", "b c"]', "a b c", "RUN a b c # buildkit", id="RUN as a list"),
        pytest.param("COPY a.py b/ /x/", f"{NOP}COPY multi:12 in /x/ ", "COPY a.py b/ /x/ # buildkit", id="COPY"),
        pytest.param(
            "COPY --chown=1:1 a /x",
            f"{NOP}COPY --chown=1:1file:1 in /x ",
            "COPY --chown=1:1 a /x # buildkit",
            id="flag",
        ),
        pytest.param("ADD a.py b/ /x/", f"{NOP}ADD multi:12 in /x/ ", "ADD a.py b/ /x/ # buildkit", id="ADD"),
        pytest.param(
            "ADD --chown=1:1 --link a /x",
            f"{NOP}ADD --chown=1:1file:1 in /x ",
            "ADD --chown=1:1 --link a /x # buildkit",
            id="ADD with flags",
        ),
        pytest.param("WORKDIR /app/", f"{NOP}WORKDIR /app/", "WORKDIR /app/", id="WORKDIR"),
        pytest.param("ENV A=1 B='x y'", f"{NOP} ENV A=1 B=x y", "ENV A=1 B=x y", id="ENV"),
        pytest.param("ENV A x y", f"{NOP} ENV A=x y", "ENV A=x y", id="ENV of the older form"),
        pytest.param("ENV PATH=$PATH:/x", f"{NOP} ENV PATH=/bin:/x", "ENV PATH=/bin:/x", id="ENV of the base"),
        pytest.param("USER a", f"{NOP} USER a", "USER a", id="USER"),
        pytest.param('CMD ["a", "b"]', f'{NOP} CMD ["a" "b"]', 'CMD ["a" "b"]', id="CMD"),
    ],
)
def test_what_both_builders_write_fits(dockerfile: str, classic: str, buildkit: str) -> None:
    assert laid(dockerfile, classic).fits
    assert laid(dockerfile, buildkit, comment="buildkit.dockerfile.v0").fits


@pytest.mark.parametrize(
    ("dockerfile", "history", "arguments"),
    [
        pytest.param("ARG V=1\nRUN a $V", [f"{NOP} ARG V=1", "|1 V=2 /bin/sh -c a $V"], {"V": "2"}, id="an argument"),
        pytest.param(
            "ARG V\nRUN /bin/sh -c hi", [f"{NOP} ARG V", "|1 V=/bin/sh -c no /bin/sh -c /bin/sh -c hi"], {}, id="a trap"
        ),
        pytest.param(
            'SHELL ["/bin/sh", "-ec"]\nRUN a',
            ["/bin/sh -ec #(nop)  SHELL [/bin/sh -ec]", "/bin/sh -ec a"],
            {},
            id="SHELL",
        ),
        pytest.param(
            "RUN a", ["/bin/sh -c a", f"{NOP} LABEL made=by command line"], {}, id="labels of the command line"
        ),
        pytest.param("LABEL a=1\nRUN a", ["/bin/sh -c a"], {}, id="labels that are not written"),
    ],
)
def test_what_makes_no_difference(dockerfile: str, history: list[str], arguments: dict[str, str]) -> None:
    assert laid(dockerfile, *history, arguments=arguments).fits


@pytest.mark.parametrize(
    ("dockerfile", "history"),
    [
        pytest.param("ARG V=1\nARG W", ["ARG V", "ARG V W"], id="ARG: all names so far, no default"),
        pytest.param("ARG V", ["ARG "], id="ARG that has no value"),
        pytest.param("ENV A=1 B='x y'", ["ENV A=1 B='x y'"], id="ENV with its quotes"),
        pytest.param("ENV A x y\nenv B=$A/z", ["ENV A x y", "env B=$A/z"], id="ENV, nothing expanded"),
        pytest.param("ARG D=/x\nCOPY a.py $D/", ["ARG D", "COPY file:1 in $D/ "], id="COPY, nothing expanded"),
        pytest.param("WORKDIR /app/\nWORKDIR sub", ["WORKDIR /app/", "WORKDIR sub"], id="WORKDIR, nothing resolved"),
        pytest.param('CMD ["a", "b"]', ['CMD ["a", "b"]'], id="CMD"),
        pytest.param("copy a /x\ncmd a", ["COPY file:1 in /x ", "cmd a"], id="names as they are written"),
    ],
)
def test_what_buildah_writes_fits(dockerfile: str, history: list[str]) -> None:
    assert laid(dockerfile, *(f"{NOP}{line}" for line in history)).fits


@pytest.mark.parametrize(
    ("run", "written"),
    [
        pytest.param('RUN ["a", "b c"]', '/bin/sh -c ["a", "b c"]', id="a list"),
        pytest.param("RUN --mount=type=cache,target=/x a", "/bin/sh -c --mount=type=cache,target=/x a", id="flags"),
        pytest.param("RUN a  \\\n b", "/bin/sh -c a   b", id="continued"),
        pytest.param("RUN a", "|2 V=1 2 W=x /bin/sh -c a", id="arguments"),
    ],
)
def test_a_run_of_buildah_fits(run: str, written: str) -> None:
    assert laid(f"ARG V\nARG W\n{run}", f"{NOP}ARG V", f"{NOP}ARG V W", written).fits


@pytest.mark.parametrize(
    ("dockerfile", "written"),
    [
        pytest.param("ENV A=2", "ENV A=1", id="ENV"),
        pytest.param("WORKDIR other", "WORKDIR sub", id="WORKDIR"),
        pytest.param("CMD b", "CMD a", id="CMD"),
    ],
)
def test_what_differs_from_buildah_is_reported(dockerfile: str, written: str) -> None:
    assert laid(dockerfile, f"{NOP}{written}").differing == (2,)


@pytest.mark.parametrize(
    ("dockerfile", "history", "differing"),
    [
        pytest.param("RUN a\nRUN c", ["/bin/sh -c a", "/bin/sh -c b"], (3,), id="changed"),
        pytest.param("RUN a\nRUN b", ["/bin/sh -c a"], (3,), id="added at the end"),
        pytest.param("ENV A=2", [f"{NOP} ENV A=1"], (2,), id="another value"),
        pytest.param("ARG V=2\nRUN a", [f"{NOP} ARG V=1", "|1 V=1 /bin/sh -c a"], (2,), id="another default"),
        pytest.param("COPY a /y", [f"{NOP}COPY file:1 in /x "], (2,), id="another destination"),
        pytest.param("USER b", [f"{NOP} USER a"], (2,), id="another setting"),
        pytest.param("LABEL a=2", [f"{NOP} LABEL a=1"], (2,), id="another label"),
        pytest.param(
            'CMD ["a"]', [f'{NOP} CMD ["/bin/sh" "-c" "a"]'], (2,), id="a command that needs no shell any more"
        ),
        pytest.param("CMD a", [f'{NOP} CMD ["a"]'], (2,), id="a command that needs a shell by now"),
    ],
)
def test_what_differs(dockerfile: str, history: list[str], differing: tuple[int, ...]) -> None:
    found = laid(dockerfile, *history)
    assert not found.fits
    assert set(differing) <= set(found.differing)


def test_an_instruction_that_was_taken_out_is_additional() -> None:
    assert laid("RUN a\nRUN c", "/bin/sh -c a", "/bin/sh -c b", "/bin/sh -c c").additional == ("/bin/sh -c b",)


def test_the_first_instruction_was_taken_out_above_a_known_base() -> None:
    history = ("/bin/sh -c a", "/bin/sh -c b")
    assert laid("RUN b", *history, base_known=True).additional == ("/bin/sh -c a",)
    assert laid("RUN a\nRUN b", *history, base_known=True).fits


def test_an_import_shows_nothing() -> None:
    assert entries_of([{"CreatedBy": "", "Created": 1, "Comment": "Imported from -"}]) == ()


def test_each_instruction_has_its_time() -> None:
    found = laid("RUN a\nRUN a", "/bin/sh -c a", "/bin/sh -c a")
    times = [found.entries[(line, "RUN a")].created_at for line in (2, 3)]
    assert times == [102, 103]


def test_what_stands_before_is_the_base() -> None:
    assert [entry.text for entry in laid("RUN a", "/bin/sh -c a").before] == BASE


@pytest.mark.parametrize(
    ("instruction", "written"),
    [
        pytest.param("USER a b", "a b", id="USER"),
        pytest.param("STOPSIGNAL SIGINT", "SIGINT", id="STOPSIGNAL"),
        pytest.param("VOLUME /a /b", "[/a /b]", id="VOLUME"),
        pytest.param("SHELL /bin/sh -ec", "[/bin/sh -ec]", id="SHELL"),
        pytest.param("EXPOSE 80 443/udp 9000-9001", "443/udp 80 9000-9001", id="EXPOSE of the classic builder"),
        pytest.param(
            "EXPOSE 80 443/udp 9000-9001",
            "map[443/udp:{} 80/tcp:{} 9000/tcp:{} 9001/tcp:{}]",
            id="EXPOSE of BuildKit",
        ),
        pytest.param("EXPOSE 80 443/udp", "[80/tcp 443/udp]", id="EXPOSE of newer BuildKits"),
        pytest.param("HEALTHCHECK NONE", '&{["NONE"] "0s" "0s" "0s" \'\\x00\'}', id="no HEALTHCHECK"),
        pytest.param(
            'HEALTHCHECK CMD ["true", "x y"]', '&{["CMD" "true" "x y"] "5s" "0s" "0s" \'\\x02\'}', id="HEALTHCHECK"
        ),
        pytest.param(
            "HEALTHCHECK CMD curl -f http://x || exit 1",
            '&{["CMD-SHELL" "curl -f http://x || exit 1"] "0s" "0s" "0s" "0s" \'\\t\'}',
            id="HEALTHCHECK of a shell",
        ),
    ],
)
def test_one_setting_is_one_text(instruction: str, written: str) -> None:
    name, _, rest = instruction.partition(" ")
    assert setting_asked_for(name, rest.split(), rest) == setting_written(name, written)


@pytest.mark.parametrize(
    ("instruction", "written"),
    [
        pytest.param("USER a", "b", id="USER"),
        pytest.param("EXPOSE 80", "map[80/udp:{}]", id="another protocol"),
        pytest.param("EXPOSE 80-82", "map[80/tcp:{} 82/tcp:{}]", id="a port less"),
        pytest.param("HEALTHCHECK NONE", '&{["CMD" "true"] "0s" "0s" "0s" \'\\x00\'}', id="no HEALTHCHECK any more"),
        pytest.param("HEALTHCHECK CMD true", '&{["CMD" "true"] "0s" "0s" "0s" \'\\x00\'}', id="another form"),
    ],
)
def test_another_setting_is_another_text(instruction: str, written: str) -> None:
    name, _, rest = instruction.partition(" ")
    assert setting_asked_for(name, rest.split(), rest) != setting_written(name, written)


@pytest.mark.parametrize(
    ("dockerfile", "written", "fits"),
    [
        pytest.param("RUN <<EOF\nmake\nEOF", "RUN /bin/sh -c <<EOF (make) # buildkit", True, id="in another way"),
        pytest.param("RUN <<EOF\nmake\nEOF", "COPY a /b # buildkit", False, id="another instruction"),
        pytest.param("RUN make", "RUN /bin/sh -c <<EOF (make) # buildkit", False, id="no here-document"),
    ],
)
def test_here_documents_are_written_in_several_ways(dockerfile: str, written: str, fits: bool) -> None:
    assert laid(dockerfile, written, comment="buildkit.dockerfile.v0").fits is fits


@pytest.mark.parametrize(
    ("instruction", "same", "other"),
    [
        ("EXPOSE 80", "EXPOSE map[80/tcp:{}]", "EXPOSE map[81/tcp:{}]"),
        (
            "HEALTHCHECK CMD true",
            'HEALTHCHECK &{["CMD-SHELL" "true"] "0s" "0s" "0s" \'\\x00\'}',
            'HEALTHCHECK &{["CMD-SHELL" "false"] "0s" "0s" "0s" \'\\x00\'}',
        ),
        ('SHELL ["/bin/bash", "-c"]', "SHELL [/bin/bash -c]", "SHELL [/bin/sh -c]"),
        ("STOPSIGNAL SIGINT", "STOPSIGNAL SIGINT", "STOPSIGNAL SIGTERM"),
        ("USER ann", "USER ann", "USER bob"),
        ("VOLUME /x", "VOLUME [/x]", "VOLUME [/y]"),
    ],
)
def test_a_setting_of_another_value_is_no_additional_step(instruction: str, same: str, other: str) -> None:
    for written, differing in ((same, ()), (other, (2,))):
        found = laid(instruction, f"{NOP} {written}")
        assert (found.differing, found.additional) == (differing, ())
