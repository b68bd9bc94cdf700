"""Whatever a text holds, it ends in a diagnosis or in one clear line: no traceback, no raw control character."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudoctor.engine.runner import run_checks
from gpudoctor.errors import GpudoctorError
from gpudoctor.model import Outcome, Report, Snapshot
from gpudoctor.model.codec import from_json, to_json
from gpudoctor.readers.report import READERS, Reader, read_texts
from gpudoctor.readers.text import clean_text
from gpudoctor.reporters import json_report, table
from gpudoctor.reporters.terminal import Screen
from tests.own_checks import own_checks
from tests.readers import pasted

SECONDS = 20.0  # generous, for a busy machine: the longest takes 2 s on a quiet one
TEXTS = sorted(pasted.ALL.items())


def diagnose(*texts: str) -> Report | None:
    """Return the report on the texts, None where they were refused in one line."""
    try:
        snapshot = read_texts([(f"text-{n}", text.encode("utf-8", "surrogatepass")) for n, text in enumerate(texts)])
    except GpudoctorError as error:
        line = str(error)
    else:
        return run_checks(own_checks(), snapshot)
    assert line.isprintable()
    return None


def assert_sound(report: Report | None) -> None:
    if report is None:
        return
    assert [r.check_id for r in report.results if r.outcome is Outcome.CRASHED] == []
    screen = table.render(report, screen=Screen(width=80))
    assert all(character.isprintable() or character == "\n" for character in screen)
    assert all(command.isprintable() for command in commands(report))
    json_report.render(report)
    assert from_json(Snapshot, to_json(report.snapshot)) == report.snapshot


def commands(report: Report) -> Iterator[str]:
    for finding in report.findings:
        for remedy in finding.remedies:
            yield from remedy.commands


@pytest.mark.parametrize("name", pasted.ALL)
def test_each_kind_is_known(name: str) -> None:
    report = diagnose(pasted.ALL[name])
    assert report is not None
    assert_sound(report)


def test_all_in_one_file() -> None:
    assert_sound(diagnose("\n\n".join(pasted.ALL.values())))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_mutated_report(data: st.DataObject) -> None:
    _, text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 6))):
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, min(len(text), begin + 40)))
        text = text[:begin] + data.draw(st.text(max_size=12)) + text[end:]
    assert_sound(diagnose(text))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_report_whose_numbers_are_others(data: st.DataObject) -> None:
    _, text = data.draw(st.sampled_from(TEXTS))
    old = data.draw(st.sampled_from("0123456789.:|+-"))
    new = data.draw(st.text("0123456789.+-eEN/A'\"$;`|()\x1b", max_size=8))
    assert_sound(diagnose(text.replace(old, new, data.draw(st.integers(1, 50)))))


@settings(max_examples=25, deadline=None)
@given(pieces=st.lists(st.sampled_from(TEXTS), min_size=2, max_size=4), cuts=st.lists(st.integers(0, 2000), min_size=4))
def test_pieces_of_several_reports(pieces: list[tuple[str, str]], cuts: list[int]) -> None:
    assert_sound(diagnose("\n".join(text[: cut + 20] for (_, text), cut in zip(pieces, cuts, strict=False))))


@pytest.mark.parametrize("reader", READERS, ids=[reader.name for reader in READERS])
@settings(max_examples=15, deadline=None)
@given(text=st.text(max_size=400))
def test_a_reader_of_any_text(reader: Reader, text: str) -> None:
    assert isinstance(reader._replace(signs=()).read(clean_text(text, "text")), dict)


@pytest.mark.parametrize(
    "text",
    [
        "| NVIDIA-SMI " + "9" * 300_000,
        "torch==" + "1." * 150_000,
        "GPU 0: " * 100_000,
        "\n" * 1_000_000,
        "| " * 300_000,
        "PyTorch version: " + "(" * 300_000,
        "RuntimeError: " * 50_000,
        "CUDA out of memory. Tried to allocate " * 50_000,
        "<gpu>" * 200_000,
        "<?xml version='1.0'?><nvidia_smi_log>" + "<a>" * 100_000,
        '[{"name": "torch", "version": ' * 50_000,
        "[" * 500_000,
        "{" * 500_000 + '"gpudoctor/snapshot/1"',
        "export A=" + "$(" * 500_000,
        "NVRM: Xid (PCI:0000:02:00): 79, " * 30_000,
        "x" * 8_000_000,
        " " * 2_000_000,
        "undefined symbol: " + "_" * 300_000,
    ],
    ids=lambda text: text[:20].strip() or "spaces",
)
def test_a_huge_text_is_quick(text: str) -> None:
    began = time.process_time()
    assert_sound(diagnose(text))
    assert time.process_time() - began < SECONDS


ENTITIES = """<?xml version="1.0"?>
<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa">%s]>
<nvidia_smi_log><driver_version>&z;</driver_version></nvidia_smi_log>"""


def test_entities_of_xml_are_not_expanded() -> None:
    names = "abcdefghijklmnopqrstuvwxyz"
    bomb = "".join(f'<!ENTITY {new} "{("&" + old + ";") * 10}">' for old, new in pairwise(names))
    began = time.process_time()
    assert_sound(diagnose(ENTITIES % bomb))
    assert_sound(diagnose(ENTITIES % '<!ENTITY z SYSTEM "file:///etc/passwd">'))
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize(
    "version", ["2.1; touch pwned", "2.1$(touch pwned)", "2.1`touch pwned`", "2.1' && touch pwned '", "2.1\x1b[2Jpwned"]
)
def test_shell_characters_in_a_version_run_nothing(version: str) -> None:
    text = f"PyTorch version: {version}\nIs CUDA available: False\nCUDA used to build PyTorch: None\n"
    report = diagnose(text + "Torch not compiled with CUDA enabled\ntorch==" + version)
    assert report is not None
    assert_sound(report)
    for command in commands(report):
        assert not [mark for mark in ("; touch", "$(touch", "`touch", "&& touch") if mark in unquoted(command)]


def unquoted(command: str) -> str:
    """Return what a shell would not take as text: outside of single quotes."""
    return "".join(command.split("'")[::2])
