"""Writes gpudoctor/data/word_weights.json from tests/triage/words_of_reports.json: `python -m tests.learn_words`.

    python -m tests.learn_words [--add FILE] [--folds N]

--add: first adds reports from a JSON file, a list of [["torch-cpu-build", other causes that are as good], "the text"];
an empty cause is a machine on which nothing is wrong. Only words are kept. --folds: prints how often the cause of a
report is the first, and among the first three, if the other parts of N are learned from; this writes nothing.
It needs torch.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gpudoctor.readers.text import read_text
from gpudoctor.readers.vocabulary import words_in

REPORTS = Path(__file__).parent / "triage" / "words_of_reports.json"
TABLE = Path(__file__).parents[1] / "gpudoctor" / "data" / "word_weights.json"
ABOUT = (
    "How much each word of a report speaks for and against a cause: the logarithm of a multinomial logistic "
    "regression, learned from reports with a confirmed cause by `python -m tests.learn_words`. `start` is a cause's "
    "weight without any word; each word has its weights by the number of the cause; '#' is a number. An empty cause: "
    "nothing is wrong."
)
SOURCE = "words of public issue threads whose cause was confirmed, and of reports written for the tests"
LEAST_REPORTS = 10
"""Reports that a word must be in: a rarer one is a name, or chance."""
LEAST_KEPT = 3
"""Reports that a word must be in to be kept for later."""
ALSO = 0.3
"""Weight of a second cause that is as good an answer."""
SHRINK = 1.0
"""How strongly the weights are pulled to zero (L2)."""
LEAST_WEIGHT = 0.1

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


class Weights:
    """What is learned: the causes, the words, and a weight for each pair."""

    def __init__(self, reports: Sequence[Report]) -> None:
        import torch

        seen = Counter(word for report in reports for word in report["words"].split())
        self.words = sorted(word for word, count in seen.items() if count >= LEAST_REPORTS)
        self.causes = sorted({cause for report in reports for cause in (report["cause"], *report["also"])})
        number = {word: column for column, word in enumerate(self.words)}
        rows = torch.zeros(len(reports), len(number) + 1, dtype=torch.float64)
        wanted = torch.zeros(len(reports), len(self.causes), dtype=torch.float64)
        for row, report in enumerate(reports):
            rows[row, [number[word] for word in report["words"].split() if word in number]] = 1
            for cause in (report["cause"], *report["also"]):
                weight = 1 if cause == report["cause"] else ALSO
                wanted[row, self.causes.index(cause)] += weight / (1 + ALSO * len(report["also"]))
        rows[:, -1] = 1
        weights = torch.zeros(rows.shape[1], len(self.causes), dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([weights], max_iter=150, line_search_fn="strong_wolfe")

        def loss() -> Any:
            optimizer.zero_grad()
            error = torch.nn.functional.cross_entropy(rows @ weights, wanted, reduction="sum")
            value = error + SHRINK * (weights[:-1] ** 2).sum()
            value.backward()
            return value

        optimizer.step(loss)
        self.table = weights.detach()

    def ranked(self, words: str) -> list[str]:
        """Return the causes for a report's words, the likeliest first."""
        number = {word: row for row, word in enumerate(self.words)}
        known = [number[word] for word in words.split() if word in number]
        scores = (self.table[known].sum(0) + self.table[-1]).tolist()
        return [cause for _, cause in sorted(zip(scores, self.causes, strict=True), reverse=True)]

    def write(self, path: Path, reports: int) -> None:
        """Write the table, a line for each word."""
        rows = []
        for row, word in enumerate(self.words):
            weights = {str(n): round(w, 1) for n, w in enumerate(self.table[row].tolist()) if abs(w) >= LEAST_WEIGHT}
            if weights:
                rows.append(f"  {json.dumps(word, ensure_ascii=False)}: {json.dumps(weights, separators=(',', ':'))}")
        head = {
            "as_of": datetime.date.today().isoformat(),
            "about": f"{ABOUT} {reports:,} reports.",
            "sources": {"reports": SOURCE},
            "causes": self.causes,
            "start": [round(weight, 2) for weight in self.table[-1].tolist()],
        }
        text = json.dumps(head, indent=1)[:-2] + ',\n "words": {\n' + ",\n".join(rows) + "\n }\n}\n"
        path.write_text(text, encoding="utf-8")


def share_found(reports: Sequence[Report], folds: int) -> tuple[float, float]:
    """Return the shares of sick reports whose cause is first, and among three, by what the other reports teach."""
    first = three = sick = 0
    for fold in range(folds):
        learned = Weights([report for row, report in enumerate(reports) if row % folds != fold])
        for report in reports[fold::folds]:
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
    Weights(reports).write(TABLE, len(reports))
    print(f"wrote {TABLE.name}: {math.ceil(TABLE.stat().st_size / 1000)} kB")


if __name__ == "__main__":
    main()
