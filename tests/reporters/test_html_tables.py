"""The tables of the tuning report as HTML, cell by cell."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from gpudoctor.reporters.tuning_html import render
from tests.reporters import tunings

TABLES = {
    "precisions": """
        precision | verdict | batch size | step, ms | images/s | peak memory, GiB | TFLOP/s | % of ceiling | \
% of datasheet | error
        fp32 | ok | 128 | 76.0 ± 0.4 | 1,684 | 18.7 | 41.4 | 71 | 50 | < 0.001 %
        tf32 | ok | 128 | 45.0 ± 0.2 | 2,843 | 18.7 | 69.9 | 89 | 85 | 0.033 %
        bf16 | best | 192 | 40.2 ± 0.2 | 4,779 | 14.3 | 118 | 74 | 71 | 0.26 %
        fp16 | unsafe | 192 | 41.0 ± 0.2 | 4,688 | 14.3 | 115 | - | 70 | not finite""",
    "runners-up": """
        precision | batch size | images/s | why it lost
        bf16 | 256 | 4,965 | gains 0.8 %, less than the noise
        tf32 | 128 | 2,842 | bf16 is 1.8 times as fast
        fp16 | 192 | 4,690 | its numerics failed""",
    "switches": """
        switch | step, ms | gain, % | verdict | why
        channels_last | 40.2 | 8.1 | kept | +8.1 %
        compile | 40.2 | 1.2 | not kept | +1.2 %, not above 2.0 %""",
    "numerics": """
        precision | reference | outputs | gradients | loss | steps compared | matrix product | verdict
        fp32 | fp64 | < 0.001 % | < 0.001 % | - | - | - | safe
        tf32 | fp64 | 0.030 % | 0.033 % | - | - | 0.029 % | safe
        bf16 | fp64 | 0.24 % | 0.26 % | 0.12 % | 20 | - | safe
        fp16 | fp64 | 0.034 % | not finite | - | 20 | - | unsafe: gradients are not finite in 7 of 20 steps""",
    "transfers": """
        memory of the host | GB/s
        pageable | 6.20
        pageable, non_blocking | 6.30
        pinned | 24.1
        pinned, non_blocking | 24.8""",
    "loading": """
        workers | samples/s | % of a step waiting
        0 | 812.0 | 84
        8 | 6,120 | 3.0""",
    "measurements": """
        precision | batch size | step, ms | steps timed | per second | peak memory, GiB | predicted, GiB | \
clock, MHz | remarks
        fp32 | 4 | 9.16 ± 0.05 | 9 | 436.9 | 1.7 | 1.8 | 2,520 |
        fp32 | 192 | - | - | - | - | 25.0 | - | out-of-memory: CUDA out of memory: tried to allocate 2.00 GiB""",
}


def cells(text: str) -> list[list[tuple[str, ...]]]:
    """Return the rows of each table of a page, each with the texts of its cells."""

    def words(cell: str) -> str:
        return html.unescape(re.sub(r"<[^>]*>", "", cell)).replace("\u2013", "-")

    rows = [re.findall(r"<tr.*?</tr>", table, re.DOTALL) for table in re.findall(r"<table.*?</table>", text, re.DOTALL)]
    return [
        [tuple(map(words, re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.DOTALL))) for row in table] for table in rows
    ]


@pytest.fixture(scope="module")
def shown() -> dict[str, list[tuple[str, ...]]]:
    return dict(zip(TABLES, cells(render(tunings.GPU)), strict=True))


@pytest.mark.parametrize("name", TABLES)
def test_every_cell(shown: dict[str, list[tuple[str, ...]]], name: str) -> None:
    expected = [tuple(cell.strip() for cell in line.split("|")) for line in TABLES[name].strip().splitlines()]
    found = shown[name]
    if name == "measurements":
        found = [row for row in found if row[:2] in (("precision", "batch size"), ("fp32", "4"), ("fp32", "192"))]
    assert found == expected


@pytest.mark.parametrize("name", TABLES)
def test_numbers_are_to_the_right(name: str) -> None:
    table = re.findall(r"<table.*?</table>", render(tunings.GPU), re.DOTALL)[list(TABLES).index(name)]
    columns = [re.findall(r'class="([^"]*)"', row) for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)]
    assert all(column == columns[0] for column in columns[1:]) or name == "precisions"
    words = (
        "precision",
        "reference",
        "verdict",
        "switch",
        "memory of the host",
        "workers",
        "why",
        "why it lost",
        "remarks",
    )
    head = [cell.strip() for cell in TABLES[name].strip().splitlines()[0].split("|")]
    assert [cell in words for cell in head] == ["number" not in kind for kind in columns[0]]


def test_what_was_not_compared_follows_the_verdict() -> None:
    fp32, *others = tunings.GPU.numerics
    tuning = replace(tunings.GPU, numerics=(replace(fp32, not_compared=("losses", "gradients")), *others))
    assert cells(render(tuning))[3][1][-1] == "safe (losses; gradients)"
