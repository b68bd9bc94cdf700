"""What the web, the terminal and the mail put around a text is taken off."""

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.readers.text import LARGEST_BYTES, MOST_CHARACTERS, MOST_LINES, clean_text, read_text


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("alice@lab42:~/x$ nvidia-smi", "nvidia-smi"),
        ("root@098b49afe624:/# nvidia-smi", "nvidia-smi"),
        ("(base) C:\\Users\\alice\\Downloads>python run.py", "python run.py"),
        ("PS C:\\work> pip list", "pip list"),
        ("[alice@lab42 work]$ ls", "ls"),
        ("$ pip install torch", "pip install torch"),
        ("❯ conda list", "conda list"),  # noqa: RUF001
        (">>> import torch", "import torch"),
        ("In [3]: import cupy", "import cupy"),
        ("> > quoted twice", "quoted twice"),
        ("(Worker pid=12) RuntimeError: x", "RuntimeError: x"),
        ("[rank0]: RuntimeError: x", "RuntimeError: x"),
        ("      │ exit code: 1", "exit code: 1"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07text", "red text"),
        ("GPU 0： Tesla", "GPU 0: Tesla"),  # noqa: RUF001
        ("couldn‘t", "couldn't"),  # noqa: RUF001
        ("a\u200bb\u202ec", "abc"),
        ("    indented stays", "    indented stays"),
        ("|   0  Tesla V100  On |", "|   0  Tesla V100  On |"),
    ],
)
def test_decoration_goes(line: str, plain: str) -> None:
    assert clean_text(line, "x").lines == (plain,)


def test_a_wrapped_message_is_one_line() -> None:
    text = clean_text("> no kernel image is\r\n> available for\r\n>   execution", "x")
    assert text.flat == "no kernel image is available for execution"


def test_names_and_secrets_go() -> None:
    text = clean_text('export HF_TOKEN=hf_abcdefghijklmnopqrstu\nFile "/home/alice/x.py", line 1', "x")
    assert "abcdefghij" not in text.raw + text.flat
    assert "alice" not in text.raw + text.flat


def test_fences_of_markdown_go() -> None:
    assert clean_text("```\nx\n```", "x").lines == ("x",)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_encodings(encoding: str) -> None:
    assert read_text("Treiber läuft".encode(encoding), "x").flat == "Treiber läuft"


def test_broken_utf8_is_still_read() -> None:
    assert read_text(b"driver \xff\xfe 535", "x").flat.endswith("535")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (bytes(range(256)) * 40, "x.bin: no text: paste what the program printed"),
        (b"a" * (LARGEST_BYTES + 1), "x.bin: larger than 8 MiB: keep the part around the error"),
    ],
    ids=["binary", "huge"],
)
def test_what_is_no_report_is_one_line(data: bytes, line: str) -> None:
    with pytest.raises(UsageError, match=f"^{line}$"):
        read_text(data, "x.bin")


def test_the_lines_of_a_report_stay_as_they_are() -> None:
    assert clean_text("a\n\n\nb", "r").lines == ("a", "", "", "b")


def test_runs_of_empty_lines_of_a_long_text_become_one() -> None:
    assert clean_text("a" + "\n" * MOST_LINES + "b", "r").lines == ("a", "", "b")


def test_beginning_and_end_of_a_log_are_kept() -> None:
    lines = clean_text("\n".join(map(str, range(MOST_LINES * 2))), "r").lines
    assert (lines[0], lines[-1], len(lines)) == ("0", str(MOST_LINES * 2 - 1), MOST_LINES + 1)


def test_of_the_middle_of_a_long_log_what_is_new_is_kept() -> None:
    steps = [f"step {number} of many, loss 0.1" for number in range(MOST_LINES // 2)]
    lost = "NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus."
    lines = clean_text("\n".join((*steps[:15_000], lost, *steps[15_000:])), "r").lines
    assert (lines[0], lines[-1]) == (steps[0], steps[-1])
    assert [line for line in lines if "step" not in line] == ["", lost, ""]
    assert sum(map(len, lines)) < 0.6 * MOST_CHARACTERS


def test_no_more_of_a_log_of_which_all_is_new_is_read() -> None:
    lines = clean_text("\n".join(f"{chr(65 + number % 60) * (number // 60)} x" for number in range(30_000)), "r").lines
    assert 0.9 * MOST_CHARACTERS < sum(map(len, lines)) < 1.1 * MOST_CHARACTERS


@pytest.mark.parametrize("more", [0, 1])
def test_a_text_with_as_many_characters_as_are_read_stays_whole(more: int) -> None:
    text = "\n".join(["g" * 1000] * (MOST_CHARACTERS // 1000)) + "g" * more
    assert (clean_text(text, "r").raw == text) is (not more)


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        ("a VM w/o any GPU", "a VM without any GPU"),
        ("it works W/O docker", "it works without docker"),
        ("/srv/w/o here", "/srv/w/o here"),
        ("new/old w/ GPU", "new/old w/ GPU"),
    ],
)
def test_without_is_written_in_full(text: str, flat: str) -> None:
    assert clean_text(text, "x").flat == flat
