"""What a change gained: two reports of `gpudoctor run` as JSON, compared."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpudoctor.model.record import record
from gpudoctor.privacy import mask_document
from gpudoctor.reporters.quantities import duration, significant
from gpudoctor.reporters.run_words import PARTS
from gpudoctor.reporters.text import wrap
from gpudoctor.untrusted import clean
from gpudoctor.watching.watched import SCHEMA

DIFF_SCHEMA = "gpudoctor/run-diff/1"
_SHOWN_FROM = 0.02
_FAMILY = "gpudoctor/run/"
_BEGIN = re.compile(rb'\s*\{\s*"schema"\s*:\s*"gpudoctor/run/')


@record
class RunComparison:
    """Two runs. gained: how many times faster a step is; None if a run has no steps. parts: milliseconds of a step."""

    step_ms: tuple[float | None, float | None]
    gained: float | None
    seconds: tuple[float, float]
    parts: Mapping[str, tuple[float, float]]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    stayed: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether a finding is new or gone, or a step takes another time by 2 % or more."""
        return bool(self.gone or self.new) or (self.gained is not None and abs(self.gained - 1) >= _SHOWN_FROM)


def load(text: bytes) -> dict[str, Any] | None:
    """Return a report of gpudoctor run; None if the text is something else.

    Raises:
        ValueError: it is one that cannot be read: damaged, or of a newer gpudoctor.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        if _BEGIN.match(text):
            raise ValueError(f"a report of gpudoctor run that is cut off or damaged: {error}") from None
        return None
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith(_FAMILY):
        return None
    if schema != SCHEMA:
        raise ValueError(f"its schema is {clean(schema, 60)}, this gpudoctor reads {SCHEMA}")
    if not isinstance(document.get("findings"), list):
        raise ValueError("a damaged report of gpudoctor run: it has no findings")
    return dict(document)


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> RunComparison:
    """Return what differs between two reports. What is no number in them counts as unknown."""
    first, second = _steps(before), _steps(after)
    durations = _number(first.get("step_ms")), _number(second.get("step_ms"))
    ids = [[str(f.get("check")) for f in run["findings"] if isinstance(f, dict)] for run in (before, after)]
    old, new = dict.fromkeys(ids[0]), dict.fromkeys(ids[1])
    return RunComparison(
        step_ms=durations,
        gained=durations[0] / durations[1] if durations[0] and durations[1] else None,
        seconds=(_number(before.get("elapsed_seconds")) or 0.0, _number(after.get("elapsed_seconds")) or 0.0),
        parts={
            name: ((_number(first.get(part)) or 0.0) * durations[0], (_number(second.get(part)) or 0.0) * durations[1])
            for part, name in PARTS.items()
            if durations[0] and durations[1]
        },
        gone=tuple(check for check in old if check not in new),
        new=tuple(check for check in new if check not in old),
        stayed=tuple(check for check in new if check in old),
    )


def render_json(found: RunComparison) -> str:
    """Return the comparison as one JSON object."""
    names = ("step_ms", "gained", "seconds", "parts", "gone", "new", "stayed", "differs")
    document = {"schema": DIFF_SCHEMA, **{name: getattr(found, name) for name in names}}
    return json.dumps(mask_document(document), indent=2, allow_nan=False) + "\n"


def render_table(found: RunComparison, width: int) -> str:
    """Return the comparison as text for a screen."""
    return "\n".join(line for sentence in _sentences(found) for line in wrap(sentence, width, "", "  ")) + "\n"


def _sentences(found: RunComparison) -> Iterator[str]:
    before, after = found.step_ms
    if found.gained is None or before is None or after is None:
        old, new = map(duration, found.seconds)
        yield f"The program ran for {new} instead of {old}. The steps are unknown."
    else:
        times = found.gained if found.gained >= 1 else 1 / found.gained
        word = "faster" if found.gained >= 1 else "slower"
        same = abs(found.gained - 1) < _SHOWN_FROM
        old, new = significant(before), significant(after)
        gain = "no difference" if same else f"{significant(times)} times {word}"
        yield f"A step takes {new} ms: {gain}." if old == new else f"A step takes {new} ms instead of {old} ms: {gain}."
        for name, (was, now) in found.parts.items():
            if abs(now - was) >= _SHOWN_FROM * before:
                yield f"  {name}: {significant(now)} ms instead of {significant(was)} ms"
    for title, ids in (("Fixed", found.gone), ("New", found.new), ("Still there", found.stayed)):
        if ids:
            yield f"{title}: {', '.join(clean(check) for check in ids)}"


def _steps(run: Mapping[str, Any]) -> Mapping[str, Any]:
    steps = run.get("steps")
    return steps if isinstance(steps, dict) else {}


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value >= 0 else None
