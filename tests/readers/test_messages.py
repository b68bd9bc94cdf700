"""The table of failure messages: its rows are sound, and messages become facts."""

import re
import typing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudoctor.model import SECTIONS, CudaVersion, Device, Snapshot
from gpudoctor.readers import messages
from gpudoctor.readers.report import read_texts
from gpudoctor.readers.text import clean_text
from gpudoctor.symptoms.pruning import words_of
from gpudoctor.symptoms.tables import FailureMessage, failure_messages, row_of, rows_in_question
from tests.readers import pasted

ROWS = failure_messages()

# Rows whose phrases are chosen to be rare in reports, for speed: each way of putting the message needs its own.
CHOSEN = (
    "build-tool-compiler",
    "container-nvidia-smi-fails",
    "container-nvidia-smi-works",
    "container-worked-before",
    "cudnn-dll-not-found",
    "cudnn-dll-not-found-by-name",
    "docker-not-rebuilt",
    "gpu-expected",
    "memory-short-in-words",
    "no-nvidia-gpu-reported",
    "other-gpu-named",
    "toolkit-header-missing",
    "toolkit-nvcc-missing",
)


def test_ids_are_unique() -> None:
    ids = [row.id for row in ROWS]
    assert sorted(set(ids)) == sorted(ids)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row(row: FailureMessage) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row.id)
    assert row.says
    assert row.source
    assert row.contains
    assert all(phrase == phrase.lower() and (len(phrase) > 1 or not phrase.isascii()) for phrase in row.contains)
    groups = set(row.expression().groupindex)
    decoded = {"sm": "capability", "cuda_number": "cuda", "wddm": "driver"}
    given = {decoded.get(group, group).rstrip("0123456789") for group in groups} | {"text"}
    for path, value in row.gives.items():
        section, _, field = path.partition(".")
        assert section in SECTIONS
        if section != "environment":
            kind = Device if section == "devices" else typing.get_args(typing.get_type_hints(Snapshot)[section])[0]
            assert field in kind.__dataclass_fields__, path
        if isinstance(value, str):
            assert set(re.findall(r"\{(\w+)\}", value)) <= given


@pytest.mark.parametrize("row", [row for row in ROWS if row.id in CHOSEN], ids=lambda row: row.id)
def test_each_wording_holds_a_phrase(row: FailureMessage) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(row.expression()))
    def check(text: str) -> None:
        for match in row.expression().finditer(text):
            assert any(phrase in match[0].lower() for phrase in row.contains)

    check()


@pytest.mark.parametrize("text", [*pasted.ALL.values(), "MIG", "it says cuda out of memory"])
def test_the_rows_in_question_are_those_with_a_phrase_in_the_text(text: str) -> None:
    lowered = clean_text(text, "log").lowered
    expected = [row for row in ROWS if any(phrase in lowered for phrase in row.contains)]
    assert rows_in_question(*words_of(lowered)) == expected


def test_a_message_names_what_it_names() -> None:
    text = clean_text("The NVIDIA driver on your system is too old (found version 11040). Please", "log")
    facts = messages.read(text)
    (message,) = facts["symptoms"]
    assert (message.kind, message.names, message.source) == ("torch-driver-too-old", {"cuda": "11.4"}, "log")
    assert facts["driver"].cuda_version == CudaVersion(11, 4)
    assert facts["torch_runtime"].available is False


def test_a_message_twice_is_one() -> None:
    text = clean_text("Torch not compiled with CUDA enabled\n" * 50, "log")
    kinds = [message.kind for message in messages.read(text)["symptoms"]]
    assert kinds.count("torch-not-compiled-with-cuda") == 1


def test_a_text_without_messages() -> None:
    assert messages.read(clean_text("all is well", "log")) == {"symptoms": ()}


def test_a_row_is_found_by_its_id() -> None:
    row = row_of("torch-not-compiled-with-cuda")
    assert row is not None
    assert row.library == "torch"
    assert row_of("cuinit-failed") is None


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        pytest.param("not found\nI cannot use my GPU", "not found / I cannot use my GPU", id="two short lines"),
        pytest.param("not found.\nI cannot use my GPU", "not found. I cannot use my GPU", id="punctuation says it"),
        pytest.param(
            "The library that the program needs was not found\nI cannot use my GPU",
            "not found I cannot use my GPU",
            id="a wrapped line",
        ),
        pytest.param(
            "The library that the program needs was not found\n\nI cannot use my GPU",
            "not found / I cannot use my GPU",
            id="a paragraph",
        ),
    ],
)
def test_a_quote_shows_where_a_new_line_begins(text: str, quote: str) -> None:
    symptoms = messages.read(clean_text(text, "x.txt"))["symptoms"]
    assert quote in [symptom.text for symptom in symptoms]


@pytest.mark.parametrize(
    ("cut", "quote"),
    [
        pytest.param("vailable but not wor", "available but not working", id="words at both ends"),
        pytest.param("available but", "available but", id="whole words"),
        pytest.param("is_avail", "is_available", id="a part of a name"),
    ],
)
def test_a_quote_cuts_no_word(cut: str, quote: str) -> None:
    flat = "it says available but not working; is_available"
    start = flat.find(cut)
    assert messages._whole_words(flat, start, start + len(cut)) == (flat.find(quote), quote)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("`ValueError: the widget is blue`", "ValueError: the widget is blue", id="quoted in Markdown"),
        pytest.param(
            "it hangs\nlab.BlueError: 3 is odd\nin docker", "lab.BlueError: 3 is odd", id="with words beside it"
        ),
        pytest.param("RuntimeError: CUDA error: out of memory", None, id="known"),
        pytest.param("ValueError", None, id="a name alone"),
        pytest.param("torch with GPU not found\nValueError: torch with GPU not found", None, id="quoted by people"),
    ],
)
def test_an_error_without_a_traceback(text: str, error: str | None) -> None:
    symptoms = messages.read(clean_text(text, "x.txt"))["symptoms"]
    assert [symptom.text for symptom in symptoms if symptom.kind == messages.UNKNOWN] == ([error] if error else [])


def test_a_message_of_a_program_has_no_mark_for_a_new_line() -> None:
    symptoms = messages.read(clean_text("CUDA driver version is\ninsufficient for CUDA runtime version", ""))[
        "symptoms"
    ]
    assert "CUDA driver version is insufficient for CUDA runtime version" in [symptom.text for symptom in symptoms]


def test_pip_that_the_system_forbids() -> None:
    text = "$ pip install torch\nerror: externally-managed-environment\n"
    python = read_texts([("report.txt", text.encode())]).python
    assert python is not None
    assert python.externally_managed
