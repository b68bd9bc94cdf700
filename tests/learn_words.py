"""Writes gpudoctor/data/word_weights.json from tests/triage/words_of_reports.json: `python -m tests.learn_words`.

    python -m tests.learn_words [--add FILE] [--folds N]

--add: first adds reports from a JSON file, a list of [["torch-cpu-build", other causes that are as good], "the text"];
an empty cause is a machine on which nothing is wrong. Only words are kept. --folds: prints how often the cause of a
report is the first, and among the first three, if the other parts of N are learned from; this writes nothing.
It needs torch.
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
from typing import Any

from gpudoctor.readers.text import read_text
from gpudoctor.readers.vocabulary import words_in

REPORTS = Path(__file__).parent / "triage" / "words_of_reports.json"
TABLE = Path(__file__).parents[1] / "gpudoctor" / "data" / "word_weights.json"
ABOUT = (
    "What the words of a report say about its cause, learned from reports with a confirmed cause by `python -m "
    "tests.learn_words`: a network with one hidden layer. Each word has its weights to the hidden units, each cause "
    "its weights from them: signed bytes in base64, to be multiplied by `word_unit` and `cause_unit`. '#' is a number. "
    "An empty cause: nothing is wrong."
)
SOURCE = "words of public issue threads whose cause was confirmed, and of reports written for the tests"
HIDDEN, HIDDEN_OF_TEACHERS = 64, 256
"""Hidden units of the network that is kept, and of those that it learns from."""
TEACHERS = 5
PASSES = 30
"""How often each report is learned from."""
BATCH = 64
LEAST_REPORTS = 5
"""Reports that a word must be in: a rarer one is a name, or chance."""
LEAST_KEPT = 3
"""Reports that a word must be in to be kept for later."""
ALSO = 0.3
"""Weight of a second cause that is as good an answer."""
Report = dict[str, Any]


def bag(text: str) -> list[str]:
    """Return the words of a pasted text as gpudoctor reads it."""
    return sorted(words_in(read_text(text.encode(), "report").lowered))


def add(reports: list[Report], rows: Iterable[tuple[Sequence[str], str]]) -> list[Report]:
    """Return the reports with those of `rows`, without words that are rare in all of them."""
    found = [{**report, "words": report["words"].split()} for report in reports]
    found += [{"cause": causes[0], "also": list(causes[1:]), "words": bag(text)} for causes, text in rows]
    seen = Counter(word for report in found for word in report["words"])
    for report in found:
        report["words"] = " ".join(word for word in report["words"] if seen[word] >= LEAST_KEPT)
    return found


class Network:
    """What is learned: the words, the causes, and a network from the first to the second.

    A small network imitates the mean of several large ones, which is right more often than each of them.
    """

    def __init__(self, reports: Sequence[Report], teachers: int = TEACHERS) -> None:
        import torch

        seen = Counter(word for report in reports for word in report["words"].split())
        self.words = sorted(word for word, count in seen.items() if count >= LEAST_REPORTS)
        self.causes = sorted({cause for report in reports for cause in (report["cause"], *report["also"])})
        self._number = {word: column for column, word in enumerate(self.words)}
        rows = torch.stack([self._row(report["words"]) for report in reports])
        wanted = torch.zeros(len(reports), len(self.causes))
        for row, report in enumerate(reports):
            for cause in (report["cause"], *report["also"]):
                weight = 1 if cause == report["cause"] else ALSO
                wanted[row, self.causes.index(cause)] += weight / (1 + ALSO * len(report["also"]))
        large = [self._learned(rows, lambda _, batch: wanted[batch], HIDDEN_OF_TEACHERS, n) for n in range(teachers)]

        def mean(shown: Any, _: Any) -> Any:
            with torch.no_grad():
                return sum(torch.softmax(network(shown), 1) for network in large) / len(large)

        self.network = self._learned(rows, mean, HIDDEN, teachers)

    def _row(self, words: str) -> Any:
        import torch

        row = torch.zeros(len(self.words))
        row[[self._number[word] for word in words.split() if word in self._number]] = 1
        return row

    def _learned(self, rows: Any, wanted: Callable[[Any, Any], Any], hidden: int, seed: int) -> Any:
        """Return a network that gives the wanted shares, also if words are missing, as in a shorter report."""
        import torch

        torch.manual_seed(seed)
        forgetful = hidden == HIDDEN_OF_TEACHERS
        network = torch.nn.Sequential(
            torch.nn.Linear(rows.shape[1], hidden),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.5 if forgetful else 0.0),
            torch.nn.Linear(hidden, len(self.causes)),
        )
        optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.1)
        steps = PASSES * math.ceil(len(rows) / BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
        for _ in range(PASSES):
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

    def write(self, path: Path, reports: int) -> None:
        """Write the table, a line for each word and each cause."""
        first, last = self.network[0], self.network[3]
        by_word, word_unit = _in_bytes(first.weight.detach().T)
        by_cause, cause_unit = _in_bytes(last.weight.detach())
        head = {
            "as_of": datetime.date.today().isoformat(),
            "about": f"{ABOUT} {reports:,} reports.",
            "sources": {"reports": SOURCE},
            "word_unit": word_unit,
            "cause_unit": cause_unit,
            "hidden_start": [round(start, 4) for start in first.bias.tolist()],
            "start": [round(start, 4) for start in last.bias.tolist()],
        }
        rows = {"causes": zip(self.causes, by_cause, strict=True), "words": zip(self.words, by_word, strict=True)}
        tables = [
            f' "{name}": {{\n'
            + ",\n".join(f"  {json.dumps(key, ensure_ascii=False)}: {json.dumps(row)}" for key, row in pairs)
            + "\n }"
            for name, pairs in rows.items()
        ]
        path.write_text(json.dumps(head, indent=1)[:-2] + ",\n" + ",\n".join(tables) + "\n}\n", encoding="utf-8")


def _in_bytes(weights: Any) -> tuple[list[str], float]:
    """Return each row as signed bytes in base64, and what a byte of 1 stands for."""
    unit = float(weights.abs().max()) / 127
    rows = (weights / unit).round().int().tolist()
    return [base64.b64encode(array("b", row).tobytes()).decode() for row in rows], unit


def share_found(reports: Sequence[Report], folds: int) -> tuple[float, float]:
    """Return the shares of sick reports whose cause is first, and among three, by what the other reports teach.

    A fold is a run of reports: those that were added together are left out together.
    """
    first = three = sick = 0
    for fold in range(folds):
        begin, end = (len(reports) * n // folds for n in (fold, fold + 1))
        learned = Network([*reports[:begin], *reports[end:]], teachers=2)
        for report in reports[begin:end]:
            if report["cause"]:
                right = {report["cause"], *report["also"]}
                ranked = [cause for cause in learned.ranked(report["words"]) if cause][:3]
                sick, first, three = sick + 1, first + (ranked[0] in right), three + bool(right & {*ranked})
    return first / sick, three / sick


def main() -> None:
    """Learn, or measure what is learned."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=Path)
    parser.add_argument("--folds", type=int)
    options = parser.parse_args()
    reports: list[Report] = json.loads(REPORTS.read_text(encoding="utf-8"))["reports"] if REPORTS.exists() else []
    if options.add:
        reports = add(reports, json.loads(options.add.read_text(encoding="utf-8")))
        rows = ",\n".join("  " + json.dumps(report, ensure_ascii=False) for report in reports)
        about = "The words of reports whose cause is known, in alphabetical order; see tests/learn_words.py."
        REPORTS.write_text(f'{{\n "about": "{about}",\n "reports": [\n{rows}\n ]\n}}\n', encoding="utf-8")
    if options.folds:
        first, three = share_found(reports, options.folds)
        shares = f"cause first in {first:.1%}, among three in {three:.1%}"
        print(f"{len(reports):,} reports, {options.folds} folds: {shares}")
        return
    Network(reports).write(TABLE, len(reports))
    print(f"wrote {TABLE.name}: {math.ceil(TABLE.stat().st_size / 1000)} kB")


if __name__ == "__main__":
    main()
