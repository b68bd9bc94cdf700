"""Two snapshots: which facts differ, and which findings are new or fixed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpudoctor.model import Finding, Report, Snapshot
from gpudoctor.model.codec import to_json
from gpudoctor.model.record import record

SCHEMA = "gpudoctor/diff/1"

# Readings of the moment: they differ between any two looks at one machine and are no change.
MOMENTARY = {
    *("taken_at", "reports", "words", "processes", "memory_used_bytes"),
    *("power_draw_watts", "clock_sm_mhz", "throttle_reasons", "performance_state"),
    *("utilization_percent", "temperature_celsius", "pcie_generation", "relative_error"),
}
_NAMED_BY = ("nvml_index", "kind", "name", "path", "soname", "number", "precision", "library", "address")


@record
class Change:
    """A fact that differs. `None` means an unknown value, or something that is missing."""

    fact: str
    before: Any
    after: Any


@record
class Comparison:
    """What differs between two snapshots.

    changes: facts that both know, with different values, and what only one of them lists, such as a package.
    one_sided: facts that only one of them knows.
    gone, come, stayed: findings, by check and subject.
    """

    changes: tuple[Change, ...]
    one_sided: tuple[Change, ...]
    gone: tuple[Finding, ...]
    come: tuple[Finding, ...]
    stayed: tuple[Finding, ...]

    @property
    def differs(self) -> bool:
        """Whether a fact that both know, or a finding, differs."""
        return bool(self.changes or self.gone or self.come)


def compare(before: Report, after: Report) -> Comparison:
    """Return what differs between the reports of two snapshots."""
    old, new = _facts(before.snapshot), _facts(after.snapshot)
    lists = {
        fact.partition("[")[0] for fact in (*old, *new) if "[" in fact
    }  # members show what is missing from an empty one
    differing = [
        Change(fact=fact, before=old.get(fact), after=new.get(fact))
        for fact in dict.fromkeys([*old, *new])
        if old.get(fact) != new.get(fact) and fact not in lists
    ]
    changes = [change for change in differing if _both_looked(change, before.snapshot, after.snapshot)]
    was = {(finding.check_id, finding.subject) for finding in before.findings}
    is_now = {(finding.check_id, finding.subject) for finding in after.findings}
    return Comparison(
        changes=tuple(changes),
        one_sided=tuple(change for change in differing if change not in changes),
        gone=tuple(f for f in before.findings if (f.check_id, f.subject) not in is_now),
        come=tuple(f for f in after.findings if (f.check_id, f.subject) not in was),
        stayed=tuple(f for f in after.findings if (f.check_id, f.subject) in was),
    )


def _both_looked(change: Change, before: Snapshot, after: Snapshot) -> bool:
    """Return whether both snapshots answer: by a value each, or, of lists, by having looked."""
    if change.before is not None and change.after is not None:
        return True
    listing, bracket, _ = change.fact.partition("[")
    return bool(bracket) and all(_has(snapshot, listing) for snapshot in (before, after))


def _has(snapshot: Snapshot, listing: str) -> bool:
    value: Any = snapshot
    for step in listing.split("."):
        value = getattr(value, step, None)
    return value is not None


def _facts(snapshot: Snapshot) -> dict[str, Any]:
    """Return dotted path → value; members of a list are named by their identity: "python.packages[torch]"."""
    return dict(_flat("", {k: v for k, v in to_json(snapshot).items() if k not in MOMENTARY}))


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        inside = path.endswith("variables")
        for name, item in value.items():
            if name not in MOMENTARY:
                yield from _flat(f"{path}[{name}]" if inside else f"{path}.{name}".lstrip("."), item)
    elif isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(i, Mapping) for i in value):
        for name, item in zip(_member_names(value), value, strict=True):
            yield from _flat(f"{path}[{name}]", item)
    else:
        yield path, value


def _member_names(items: Sequence[Any]) -> list[str]:
    """Return the identity of each member; its index without one. Messages of one kind are numbered."""
    for key in _NAMED_BY:
        names = [str(item.get(key)) for item in items if isinstance(item, Mapping) and key in item]
        if len(set(names)) == len(items):
            return names
    if all(isinstance(item, Mapping) and "kind" in item for item in items):
        kinds = [str(item["kind"]) for item in items]
        repeated = [kinds[:position].count(kind) for position, kind in enumerate(kinds)]
        return [f"{kind} {earlier + 1}" if earlier else kind for kind, earlier in zip(kinds, repeated, strict=True)]
    return [str(number) for number in range(len(items))]
