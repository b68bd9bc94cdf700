"""The build arguments that an image was built with, as far as its history tells, beside those that are given."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpudoctor.containers.builds.plan import Plan
from gpudoctor.containers.images.history import Entry, HistoryMatch

MAXIMUM_SHOWN = 60
"""Characters of a value that are shown."""

_SECRET = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)


def differing_arguments(fit: HistoryMatch, plan: Plan) -> tuple[str, ...]:
    """Return the given arguments that had another value: "V: 1 in the image, 2 asked for".

    Both builders write the arguments that a RUN may read before its command: |2 V=1 W=2 /bin/sh -c ...
    """
    given = {name: value for name, value in plan.arguments.items() if name in _declared(plan)}
    return _told(_differing(given, fit.own), given)


def differing_defaults(fit: HistoryMatch, plan: Plan, built_at: float) -> tuple[str, ...]:
    """Return the arguments that are not given, and of which the Dockerfile had another default when it was built.

    BuildKit writes `ARG V=1` with the value that V had. That may have been given, too: it tells of another default
    only where the Dockerfile was written after the build.
    """
    if plan.changed_at <= built_at:
        return ()
    defaults = {name: value for name, value in _declared(plan).items() if name not in plan.arguments}
    written = (re.fullmatch(r"ARG (\w+)=(.*)", entry.text, re.DOTALL) for entry in fit.own if entry.by_buildkit)
    had = ((item[1], item[2]) for item in written if item is not None)
    return _told(((name, value) for name, value in had if defaults.get(name, value) != value), defaults)


def _told(differing: Iterable[tuple[str, str]], wanted: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        f"{name}: {_shown(name, value)} in the image, {_shown(name, wanted[name])} asked for"
        for name, value in sorted(dict(differing).items())
    )


def _declared(plan: Plan) -> dict[str, str]:
    stages = plan.stages[plan.root.index : plan.target.index + 1]
    return {name: value for stage in stages for name, value in stage.arguments.items()}


def _differing(given: Mapping[str, str], entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        text = re.sub(r"^RUN ", "", entry.text)
        if not text.startswith("|"):
            continue
        for name, value in given.items():
            told = re.search(
                rf"^\|\d+ (?:.*? )??{re.escape(name)}=(.*?)(?= [A-Za-z_]\w*=| /\S+ -\S*c )", text, re.DOTALL
            )
            if told is not None and told[1] != value and f" {name}={value} " not in text:
                yield name, told[1]


def _shown(name: str, value: str) -> str:
    return "***" if _SECRET.search(name) else repr(value[:MAXIMUM_SHOWN])
