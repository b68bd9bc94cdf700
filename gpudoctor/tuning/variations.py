"""A second dimension: the same tuning for several values of a parameter, such as the length of a sequence."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import Tuning, Variation

MOST_VALUES = 16


def parse_vary(text: str | None) -> list[dict[str, int]]:
    """Return the parameters of each tuning of NAME=A,B,C, in ascending order; one without any if there is no text.

    Raises:
        UsageError: it is not of that form.
    """
    if text is None:
        return [{}]
    name, sign, listed = text.partition("=")
    if not (sign and name.isidentifier() and re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", listed)):
        raise UsageError(f"--vary {text}: write NAME=A,B,C with whole numbers, such as sequence=128,512")
    values = tuple(sorted({int(value) for value in listed.split(",")}))
    if values[0] < 1 or len(values) > MOST_VALUES:
        raise UsageError(f"--vary {text}: give 1 to {MOST_VALUES} values, each at least 1")
    return [{name: value} for value in values]


def file_of(path: Path, parameters: Mapping[str, int]) -> Path:
    """Return where the tuning of these parameters is kept: next to `path`, as "tuning-sequence-512.json"."""
    return path.with_stem("-".join([path.stem, *(f"{name}-{value}" for name, value in parameters.items())]))


def combined(tunings: Sequence[Tuning]) -> Tuning:
    """Return the last tuning, of the largest value, with what is recommended for each value.

    What fits at the largest value fits at the smaller ones, so that a program may run all of them with it.
    """
    last = tunings[-1]
    if len(tunings) == 1:
        return last
    variations = tuple(
        Variation(
            parameters=tuning.workload.parameters, recommendation=tuning.recommendation, interrupted=tuning.interrupted
        )
        for tuning in tunings
    )
    early = next((tuning.interrupted for tuning in tunings if tuning.interrupted), None)
    elapsed = sum(tuning.elapsed_seconds for tuning in tunings)
    return replace(last, variations=variations, interrupted=early, elapsed_seconds=round(elapsed, 3))
