"""No failure message of the tables, alone or beside a harmless nvidia-smi table, lets a machine be called healthy.

`every_text.json` has a text for each row, made from its pattern. What each leads to is compared with `every_row.json`;
`python -m tests.symptoms.test_every_row` writes both again, and their difference is what to look at.
"""

from __future__ import annotations

import json
import re
import string
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Outcome, Report, Snapshot
from gpudoctor.readers.report import read_texts
from gpudoctor.symptoms.matching import recognise
from gpudoctor.symptoms.tables import FailureMessage, failure_messages
from gpudoctor.symptoms.validity import why_invalid
from tests.own_checks import own_checks

PARSER: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
CHECKS = own_checks()
ROWS = [row for row in failure_messages() if not row.facts]
TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4090        On  |   00000000:01:00.0 Off |                  Off |
|  0%   38C    P8             12W /  450W |       2MiB /  24564MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
"""
"""What nvidia-smi prints on a machine on which nothing is wrong."""
BESIDE = {"alone": "", "beside": TABLE}
FILE, TEXTS = Path(__file__).parent / "every_row.json", Path(__file__).parent / "every_text.json"
EXAMPLES = {
    "nvidia-smi-other-than-driver": "NVIDIA-SMI 470.82.01 Driver Version: 550.54.15 CUDA Version: N/A",
    "nix-libcuda-told": "on NixOS the program cannot find libcuda",
    "guess-two-pynvml": "it crashes, with pynvml 11.5 and nvidia-ml-py 12.5 installed",
    "guess-service-unseen": "the cron job finds no GPU, in my shell it works",
    "guess-amd-devices-hidden": "HIP_VISIBLE_DEVICES=1 with a single GPU, no GPU is found",
    "guess-fast-when-cool": "after ten minutes it is slow, and fast again when it has cooled down",
    "guess-power-limit-lowered": "the power limit is 100 W instead of 320 W, and training is slower",
    "guess-half-gives-nan": "with --precision half the evaluation is -nan, --precision single is ok",
    "guess-conda-old-toolkit": "conda install pytorch cudatoolkit=9.0 -c pytorch, and the program only offers the CPU",
    "compose-start-without-gpu": "without the deploy block of docker compose the container does not see the GPU",
    "guess-compose-without-gpu": "compose: no GPU is found, nothing in it is about the GPU",
    "fp16-nan-reported": "with fp16 the loss is NaN",
    "gpu-used-by-llama-bench": "| CUDA       |  99 |         pp512 |      5021.55 ± 10.40 |",
    "uv-no-version": "there are no versions of torchvision{sys_platform == 'linux'}==0.30.0",
    "layers-on-gpu": "load_tensors: offloaded 33/33 layers to GPU",
    "cuda-lost-after-suspend": "CUDA always fails after I suspend the laptop",
    "guess-driver-after-windows-update": "the GPU is missing after the windows update",
    "guess-driver-updated": "the nvidia driver was updated, and now CUDA fails",
    "pip-newest-versions": "(from versions: 1.0, 1.1, 1.2) ERROR: No matching distribution found for torch==2.9",
    "python-interpreters-differ": "which python: /usr/bin/python3 and where the job runs: /opt/conda/bin/python3.11",
    "torch-differs-by-program": "torch.cuda.is_available() is False in the notebook and True in the terminal",
}
"""Texts of rows for whose pattern none can be made."""
OTHERS = "\u2019\u201c\u201d\u00b7\u2014\u2026\u2502\u0430\u0435\u0432"
"""Characters apart from ASCII that patterns name."""


def text_of(row: FailureMessage) -> str:
    """Return a text in which the row recognises its message."""
    assert row.id in texts(), "a new row: run python -m tests.symptoms.test_every_row"
    return texts()[row.id]


@cache
def texts() -> dict[str, str]:
    content: dict[str, str] = json.loads(TEXTS.read_text(encoding="utf-8"))
    return content


def made_text(row: FailureMessage) -> str:
    """Return a text that the row's pattern matches."""
    if row.id in EXAMPLES:
        return EXAMPLES[row.id]
    tried: list[str] = []
    pattern = PARSER.parse(row.pattern, re.IGNORECASE | re.ASCII)
    for take in range(8):
        for phrase in row.contains:
            made = "".join(example(pattern, take, phrase))
            for text in (made, f"{made} {phrase}", f"{phrase} {made}", phrase):
                tried.append(text)
                if is_recognised(row, " ".join(text.split())):
                    return text
    raise AssertionError(f"no text for {row.id}: write one into EXAMPLES; tried {tried[:4]}")


def is_recognised(row: FailureMessage, text: str) -> bool:
    return any(phrase in text.lower() for phrase in row.contains) and row.expression().search(text) is not None


def example(pattern: Sequence[Any], take: int, phrase: str) -> Iterator[str]:
    """Yield the parts of a text that the parsed pattern matches.

    take: which of several alternatives is taken, and how often what repeats is repeated. phrase: for free text.
    """
    for operator, argument in pattern:
        yield from part(str(operator), argument, take, phrase)


def part(operator: str, argument: Any, take: int, phrase: str) -> Iterator[str]:
    if operator == "LITERAL":
        yield chr(argument)
    elif operator == "ANY":
        yield " " if take < 4 else "x"
    elif operator == "NOT_LITERAL":
        yield next(c for c in "x1 " if ord(c) != argument)
    elif operator == "IN":
        yield one_of(argument, take)
    elif operator in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = argument
        for _ in range(max(least, min(int(most), 1 if take % 2 == 0 else 0))):
            yield from example(inner, take, phrase)
    elif operator == "SUBPATTERN":
        yield from example(argument[-1], take, phrase)
    elif operator == "ATOMIC_GROUP":
        yield from example(argument, take, phrase)
    elif operator == "BRANCH":
        yield from example(argument[1][take // 2 % len(argument[1])], take, phrase)
    elif operator == "ASSERT":
        yield from example(argument[1], take, phrase) if argument[0] > 0 else ()


def one_of(choices: Sequence[Any], take: int) -> str:
    allowed = [c for c in ("8x .a-" if take < 4 else " .0a-x") + string.printable + OTHERS if fits(choices, c)]
    if not allowed:
        raise AssertionError(f"name a character that {choices} allows in OTHERS")
    return allowed[take // 2 % min(len(allowed), 2)]


def fits(choices: Sequence[Any], character: str) -> bool:
    found = False
    for operator, argument in choices:
        name = str(operator)
        if name == "LITERAL":
            found |= ord(character) == argument
        elif name == "RANGE":
            found |= argument[0] <= ord(character) <= argument[1]
        elif name == "CATEGORY":
            found |= category(str(argument), character)
    return found != any(str(operator) == "NEGATE" for operator, _ in choices)


def category(name: str, character: str) -> bool:
    kinds = {
        "DIGIT": character.isdigit(),
        "SPACE": character.isspace(),
        "WORD": character.isalnum() or character == "_",
    }
    return kinds[name.rpartition("_")[2]] != ("_NOT_" in name)


def diagnosed(text: str) -> Report:
    return run_checks(CHECKS, read_texts([("report.txt", text.encode())]))


def decided(report: Report) -> list[Any]:
    """Return the findings with their first commands; without one the commands to run next and the possible causes."""
    if report.triage is not None:
        return [[step.command for step in report.triage.next_steps], [cause.check for cause in report.triage.possible]]
    return [
        [
            found.check_id,
            str(found.severity),
            found.caused_by or "",
            *(m.commands[0] for m in found.remedies if m.commands),
        ]
        for found in report.findings
    ]


@cache
def recorded() -> dict[str, list[Any]]:
    content: dict[str, list[Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


def shows_that_it_works(row: FailureMessage) -> bool:
    """Return whether the message says that a program uses the GPU, or that a framework sees one."""
    return row.role == "works" or (row.role == "context" and "torch_runtime.available" in row.gives)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_no_message_is_called_healthy(row: FailureMessage) -> None:
    for way, beside in BESIDE.items():
        report = diagnosed(f"{beside}\n{text_of(row)}\n")
        assert [result.reason for result in report.results if result.outcome is Outcome.CRASHED] == []
        if not shows_that_it_works(row):
            assert report.verdict != "healthy"
        if report.verdict == "unknown":
            assert report.triage is not None
            assert 1 <= len(report.triage.next_steps) <= 2
        assert decided(report) == recorded()[f"{row.id} {way}"]


@pytest.mark.parametrize("row", [row for row in failure_messages() if row.facts], ids=lambda row: row.id)
def test_no_message_in_a_fact_is_called_healthy(row: FailureMessage) -> None:
    section, _, field = row.facts[0].partition(".")
    report = run_checks(CHECKS, snapshot_with(**{section: {field: text_of(row)}}))
    assert [result.reason for result in report.results if result.outcome is Outcome.CRASHED] == []
    assert row.id in {symptom.kind for symptom in report.snapshot.symptoms or ()}
    assert report.verdict != "healthy"


RENAMED = {"sm": "capability", "cuda_number": "cuda", "wddm": "driver"}


def snapshot_with(*symptoms: dict[str, Any], **sections: Any) -> Snapshot:
    document = {"schema": "gpudoctor/snapshot/1", "contradictions": [], "symptoms": symptoms, **sections}
    return read_texts([("machine.json", json.dumps(document).encode())])


@pytest.mark.parametrize("row", [row for row in failure_messages() if "(?P<" in row.pattern], ids=lambda r: r.id)
def test_a_snapshot_file_in_which_names_are_wrong_is_no_crash(row: FailureMessage) -> None:
    groups = {group.rstrip("0123456789") for group in row.expression().groupindex}
    for wrong in (None, "", "x"):
        names = {} if wrong is None else {RENAMED.get(group, group): wrong for group in groups}
        snapshot = snapshot_with({"kind": row.id, "text": "x", "library": row.library, "names": names})
        if row.id not in {symptom.kind for symptom in snapshot.symptoms or ()}:
            refused = [report.detail.split()[0] for report in snapshot.reports if report.section == "symptoms"]
            assert refused == [row.id]
            continue
        report = run_checks(CHECKS, snapshot)
        assert [result.reason for result in report.results if result.outcome is Outcome.CRASHED] == []
        if not shows_that_it_works(row):
            assert report.verdict != "healthy"


@pytest.mark.parametrize("part", range(4))
def test_what_the_matcher_finds_is_valid_when_it_is_read_again(part: int) -> None:
    for row in ROWS[part::4]:
        found = [symptom for _, symptom in recognise(" ".join(text_of(row).split()))]
        assert row.id in {symptom.kind for symptom in found}
        assert {why_invalid(symptom) for symptom in found} == {""}, row.id


def test_a_failure_whose_names_are_wrong_stays_a_failure_and_is_reported() -> None:
    works = {"available": True, "device_count": 1}
    failure = {"kind": "nvrtc-architecture-option", "text": "invalid value for --gpu-architecture", "library": "nvrtc"}
    report = run_checks(CHECKS, snapshot_with(failure, torch_runtime=works))
    assert report.verdict == "unknown"
    assert [symptom.kind for symptom in report.snapshot.symptoms or ()] == ["unknown-error"]
    assert [r.detail for r in report.snapshot.reports if r.section == "symptoms"] == [
        "nvrtc-architecture-option names no capability: left out"
    ]
    assert run_checks(CHECKS, snapshot_with(torch_runtime=works)).verdict == "healthy"


if __name__ == "__main__":
    made = [f"{json.dumps(row.id)}: {json.dumps(made_text(row))}" for row in failure_messages()]
    TEXTS.write_text("{\n" + ",\n".join(made) + "\n}\n", encoding="utf-8")
    lines = []
    for row in ROWS:
        for way, beside in BESIDE.items():
            report = diagnosed(f"{beside}\n{text_of(row)}\n")
            lines.append(f"{json.dumps(f'{row.id} {way}')}: {json.dumps(decided(report))}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
