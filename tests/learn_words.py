"""Writes the networks of words, gpudoctor/data/*_weights.json, from the words of reports in tests/triage/.

    python -m tests.learn_words [--add FILE] [--folds N] [causes|concern]

--add: first adds reports from a JSON file, a list of [["torch-cpu-build", other causes that are as good], "the text"];
an empty cause is an author who has no fault now. Only words are kept. --folds: prints how often the cause of a report
is the first, and among the first three, if the other parts of N are learned from, or how well the concern is
recognised; this writes nothing. It needs torch.
"""

from __future__ import annotations

import argparse
import base64
import datetime
import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpudoctor.conclusions.concern import PROBABLE
from gpudoctor.readers.text import read_text
from gpudoctor.readers.vocabulary import phrases_in, words_in

FOLDER = Path(__file__).parent / "triage"
DATA = Path(__file__).parents[1] / "gpudoctor" / "data"
ABOUT = (
    "{what}, learned from reports with a confirmed cause by `python -m tests.learn_words`: a network with one hidden "
    "layer. Each word has its weights to the hidden units, each answer its weights from them: signed bytes in base64, "
    "to be multiplied by `word_unit` and `answer_unit`. '#' is a number. {empty} {reports:,} reports."
)
SOURCE = "words of public issue threads whose cause was confirmed, and of reports written for the tests"
BATCH = 64
LEAST_KEPT = 3
"""Reports that a word must be in to be kept for later."""
ALSO = 0.3
"""Weight of a second cause that is as good an answer."""
FAULT = "fault"
Report = dict[str, Any]


class Lesson(NamedTuple):
    """What a network learns.

    reports, table: the files. words: the words of a text in lower case. hidden, of_teachers: hidden units of the
    network that is kept, and of those that it learns from. teachers: how many. passes: how often each report is
    learned from. least: reports that a word must be in: a rarer one is a name, or chance. what, empty: for the table's
    description.
    """

    reports: Path
    table: Path
    words: Callable[[str], frozenset[str]]
    hidden: int
    of_teachers: int
    teachers: int
    passes: int
    least: int
    what: str
    empty: str

    def bag(self, text: str) -> list[str]:
        """Return the words of a pasted text as gpudoctor reads it."""
        return sorted(self.words(read_text(text.encode(), "report").lowered))

    def causes(self, causes: Sequence[str]) -> list[str]:
        """Return what is to be answered to a report with these causes."""
        return [FAULT if causes[0] else ""] if self is CONCERN else list(causes)

    def known(self) -> list[Report]:
        """Return the reports that are kept."""
        reports: list[Report] = []
        if self.reports.exists():
            reports = json.loads(self.reports.read_text(encoding="utf-8"))["reports"]
        return reports

    def keep(self, reports: Sequence[Report]) -> None:
        """Write the words of reports."""
        rows = ",\n".join("  " + json.dumps(report, ensure_ascii=False) for report in reports)
        about = "The words of reports whose cause is known, in alphabetical order; see tests/learn_words.py."
        self.reports.write_text(f'{{\n "about": "{about}",\n "reports": [\n{rows}\n ]\n}}\n', encoding="utf-8")


CAUSES = Lesson(
    FOLDER / "words_of_reports.json", DATA / "word_weights.json", words_in,
    hidden=64, of_teachers=256, teachers=5, passes=30, least=5,
    what="What the words of a report say about its cause", empty="An empty cause: nothing is wrong.",
)  # fmt: skip
CONCERN = Lesson(
    FOLDER / "phrases_of_reports.json", DATA / "concern_weights.json", phrases_in,
    hidden=8, of_teachers=64, teachers=5, passes=20, least=4,
    what="What words, and words with their neighbours, say about whether an author has a fault now",
    empty="An empty answer: no fault.",
)  # fmt: skip


def add(lesson: Lesson, reports: list[Report], rows: Iterable[tuple[Sequence[str], str]]) -> list[Report]:
    """Return the reports with those of `rows`, without words that are rare in all of them."""
    found = [{**report, "words": report["words"].split()} for report in reports]
    answers = ((lesson.causes(causes), text) for causes, text in rows)
    found += [{"cause": causes[0], "also": causes[1:], "words": lesson.bag(text)} for causes, text in answers]
    seen = Counter(word for report in found for word in report["words"])
    for report in found:
        report["words"] = " ".join(word for word in report["words"] if seen[word] >= LEAST_KEPT)
    return found


class Network:
    """What is learned: the words, the causes, and a network from the first to the second.

    A small network imitates the mean of several large ones, which is right more often than each of them.
    """

    def __init__(self, lesson: Lesson, reports: Sequence[Report], teachers: int | None = None) -> None:
        import torch

        self.lesson = lesson
        teachers = teachers or lesson.teachers
        seen = Counter(word for report in reports for word in report["words"].split())
        self.words = sorted(word for word, count in seen.items() if count >= lesson.least)
        self.causes = sorted({cause for report in reports for cause in (report["cause"], *report["also"])})
        self._number = {word: column for column, word in enumerate(self.words)}
        rows = torch.stack([self._row(report["words"]) for report in reports])
        wanted = torch.zeros(len(reports), len(self.causes))
        for row, report in enumerate(reports):
            for cause in (report["cause"], *report["also"]):
                weight = 1 if cause == report["cause"] else ALSO
                wanted[row, self.causes.index(cause)] += weight / (1 + ALSO * len(report["also"]))
        large = [self._learned(rows, lambda _, batch: wanted[batch], lesson.of_teachers, n) for n in range(teachers)]

        def mean(shown: Any, _: Any) -> Any:
            with torch.no_grad():
                return sum(torch.softmax(network(shown), 1) for network in large) / len(large)

        self.network = self._learned(rows, mean, lesson.hidden, teachers)

    def _row(self, words: str) -> Any:
        import torch

        row = torch.zeros(len(self.words))
        row[[self._number[word] for word in words.split() if word in self._number]] = 1
        return row

    def _learned(self, rows: Any, wanted: Callable[[Any, Any], Any], hidden: int, seed: int) -> Any:
        """Return a network that gives the wanted shares, also if words are missing, as in a shorter report."""
        import torch

        torch.manual_seed(seed)
        forgetful = hidden == self.lesson.of_teachers
        network = torch.nn.Sequential(
            torch.nn.Linear(rows.shape[1], hidden),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.5 if forgetful else 0.0),
            torch.nn.Linear(hidden, len(self.causes)),
        )
        optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.1)
        steps = self.lesson.passes * math.ceil(len(rows) / BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
        for _ in range(self.lesson.passes):
            for batch in torch.randperm(len(rows)).split(BATCH):
                kept = torch.full((len(batch), 1), 0.8) if forgetful else torch.rand(len(batch), 1) / 2 + 0.5
                shown = rows[batch] * (torch.rand(len(batch), rows.shape[1]) < kept)
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(network(shown), wanted(shown, batch)).backward()
                optimizer.step()
                schedule.step()
        return network.eval()

    def ranked(self, words: str) -> list[str]:
        """Return the causes for a report's words, the likeliest first."""
        scores = self.network(self._row(words)).tolist()
        return [cause for _, cause in sorted(zip(scores, self.causes, strict=True), reverse=True)]

    def probability(self, words: str, cause: str) -> float:
        """Return how probable a cause is for a report's words."""
        import torch

        return float(torch.softmax(self.network(self._row(words)), 0)[self.causes.index(cause)])

    def write(self, reports: int) -> None:
        """Write the table, a line for each word and each answer."""
        first, last = self.network[0], self.network[3]
        by_word, word_unit = _in_bytes(first.weight.detach().T)
        by_answer, answer_unit = _in_bytes(last.weight.detach())
        head = {
            "as_of": datetime.date.today().isoformat(),
            "about": ABOUT.format(what=self.lesson.what, empty=self.lesson.empty, reports=reports),
            "sources": {"reports": SOURCE},
            "word_unit": word_unit,
            "answer_unit": answer_unit,
            "hidden_start": [round(start, 4) for start in first.bias.tolist()],
            "start": [round(start, 4) for start in last.bias.tolist()],
        }
        rows = {"answers": zip(self.causes, by_answer, strict=True), "words": zip(self.words, by_word, strict=True)}
        tables = [
            f' "{name}": {{\n'
            + ",\n".join(f"  {json.dumps(key, ensure_ascii=False)}: {json.dumps(row)}" for key, row in pairs)
            + "\n }"
            for name, pairs in rows.items()
        ]
        self.lesson.table.write_text(
            json.dumps(head, indent=1)[:-2] + ",\n" + ",\n".join(tables) + "\n}\n", encoding="utf-8"
        )


def _in_bytes(weights: Any) -> tuple[list[str], float]:
    """Return each row as signed bytes in base64, and what a byte of 1 stands for."""
    unit = float(weights.abs().max()) / 127
    rows = (weights / unit).round().int().tolist()
    return [base64.b64encode(array("b", row).tobytes()).decode() for row in rows], unit


def folded(lesson: Lesson, folds: int) -> Iterable[tuple[Report, Network]]:
    """Yield each report, and what is learned from the other parts.

    A fold is a run of reports: those that were added together are left out together.
    """
    reports = lesson.known()
    for fold in range(folds):
        begin, end = (len(reports) * n // folds for n in (fold, fold + 1))
        learned = Network(lesson, [*reports[:begin], *reports[end:]], teachers=2)
        yield from ((report, learned) for report in reports[begin:end])


def share_found(folds: int) -> str:
    """Return how often the cause of a sick report is the first, and among three, by what the other reports teach."""
    first = three = sick = 0
    for report, learned in folded(CAUSES, folds):
        if report["cause"]:
            right = {report["cause"], *report["also"]}
            ranked = [cause for cause in learned.ranked(report["words"]) if cause][:3]
            sick, first, three = sick + 1, first + (ranked[0] in right), three + bool(right & {*ranked})
    return f"{sick:,} sick reports: cause first in {first / sick:.1%}, among three in {three / sick:.1%}"


def share_recognised(folds: int) -> str:
    """Return how often an author without a fault is recognised, and how often one with a fault is taken for one."""
    told: dict[str, list[bool]] = {"": [], FAULT: []}
    for report, learned in folded(CONCERN, folds):
        told[report["cause"]].append(learned.probability(report["words"], "") > PROBABLE)
    recognised, mistaken = (f"{sum(told[answer]) / len(told[answer]):.1%}" for answer in ("", FAULT))
    return f"{len(told['']):,} without a fault: {recognised}; {len(told[FAULT]):,} others: {mistaken}"


def main() -> None:
    """Learn, or measure what is learned."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=Path)
    parser.add_argument("--folds", type=int)
    parser.add_argument("lesson", nargs="?", choices=("causes", "concern"))
    options = parser.parse_args()
    chosen = {"causes": [CAUSES], "concern": [CONCERN], None: [CAUSES, CONCERN]}[options.lesson]
    for lesson in chosen:
        reports = lesson.known()
        if options.add:
            reports = add(lesson, reports, json.loads(options.add.read_text(encoding="utf-8")))
            lesson.keep(reports)
        if options.folds:
            print((share_recognised if lesson is CONCERN else share_found)(options.folds))
        else:
            Network(lesson, reports).write(len(reports))
            print(f"wrote {lesson.table.name}: {math.ceil(lesson.table.stat().st_size / 1000)} kB")


if __name__ == "__main__":
    main()
