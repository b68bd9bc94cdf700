import io

import click
import pytest

from gpudoctor.reporters.terminal import encodable, paint, progress, use_color, width


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "expected"),
    [
        pytest.param(Terminal(), {"TERM": "xterm"}, True, id="terminal"),
        pytest.param(Terminal(), {"TERM": "dumb"}, False, id="dumb terminal"),
        pytest.param(io.StringIO(), {"TERM": "xterm"}, False, id="file"),
        pytest.param(Terminal(), {"NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param(Terminal(), {"NO_COLOR": ""}, True, id="NO_COLOR empty"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "1"}, True, id="FORCE_COLOR"),
        pytest.param(io.StringIO(), {"CLICOLOR_FORCE": "1"}, True, id="CLICOLOR_FORCE"),
        pytest.param(io.StringIO(), {"CLICOLOR_FORCE": "0"}, False, id="CLICOLOR_FORCE=0"),
        pytest.param(Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, id="NO_COLOR wins"),
    ],
)
def test_use_color(stream: io.StringIO, environ: dict[str, str], expected: bool) -> None:
    assert use_color(stream, environ) is expected


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("60", 60),
        ("1", 1),
        ("400", 100),
        ("00060", 60),
        ("000060", 80),
        ("0", 80),
        ("", 80),
        ("-5", 80),
        ("many", 80),
        ("²", 80),
        ("9" * 5000, 80),
    ],
)
def test_width_of_a_stream_without_terminal(columns: str, expected: int) -> None:
    assert width({"COLUMNS": columns}, io.StringIO()) == expected


def test_the_option_of_a_command_wins_over_the_environment() -> None:
    with click.Context(click.Command("diff"), color=None) as context:
        assert use_color(Terminal(), {"FORCE_COLOR": "1"})
        context.color = False
        assert not use_color(Terminal(), {"FORCE_COLOR": "1"})


def test_paint() -> None:
    assert paint("error", "error", color=True) == "\x1b[31merror\x1b[0m"
    assert paint("error", "error", color=False) == "error"


def test_encodable() -> None:
    assert encodable("41 °C", "utf-8") == "41 °C"
    assert encodable("41 °C", "ascii") == r"41 \xb0C"
    assert encodable("41 °C", None) == r"41 \xb0C"


def test_progress_is_taken_away_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with progress("Looking ...", stream):
        assert stream.getvalue() == "\r\x1b[KLooking ..."
    assert stream.getvalue().endswith("Looking ...\r\x1b[K")


def test_progress_shows_one_text_in_place_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    with progress("Looking ...", stream) as show:
        show("batch 8\n" + "x" * 100)
    last = stream.getvalue().split("\r\x1b[K")[2]
    assert last == r"batch 8\n" + "x" * 30, "one line, no wider than the terminal"


def test_progress_is_silent_if_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with progress("Looking ...", stream) as show:
        show("batch 8")
    assert stream.getvalue() == ""
