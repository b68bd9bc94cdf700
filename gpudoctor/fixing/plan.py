"""The plan: which findings are fixed, by which of their remedies, and what that changes in the environment."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpudoctor.errors import UsageError
from gpudoctor.fixing.actions import Action, Kind, actions_of, kind_of
from gpudoctor.fixing.environment import Inventory, broken_requirements
from gpudoctor.fixing.installers import Installer, name_of
from gpudoctor.fixing.programs import Refused
from gpudoctor.fixing.project_files import FileEdit
from gpudoctor.fixing.refusals import refuse_environment
from gpudoctor.fixing.resolution import Change, Resolution
from gpudoctor.model import Finding, Remedy, Report, Severity
from gpudoctor.model.record import record

_CHANGES_ENVIRONMENT = (
    r"\b(?:pip|conda) (?:un)?install\b|\bconda remove\b|^(?:uv|poetry|pdm|pixi) (?:add|remove|reinstall)\b"
)


@record
class Step:
    """One remedy: the same object that the check prints. check: the id of its finding, "" for an install."""

    check: str
    remedy: Remedy
    kind: Kind
    actions: tuple[Action, ...] = ()


@record
class Plan:
    """The steps, in order.

    resolution: what the environment steps do together; None if there is none, or if it was refused.
    edits: of the project's files, if they were asked for.
    later: ids of findings whose steps wait for a step that gpudoctor does not run.
    why: why it is refused; "" if it is not.
    """

    steps: tuple[Step, ...]
    resolution: Resolution | None = None
    edits: tuple[FileEdit, ...] = ()
    later: tuple[str, ...] = ()
    why: str = ""

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return what changes in the environment."""
        return self.resolution.changes if self.resolution is not None else ()

    def changes_of(self, step: Step) -> Iterator[Change]:
        """Yield the changes of a step: those that it names, and of what nobody names those of the last step."""
        environment = [other for other in self.steps if other.actions]
        for change in self.changes:
            owners = [other for other in environment if change.name in _names(other.actions)]
            if step is (owners[:1] or environment[-1:])[0]:
                yield change


def choose(report: Report, names: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings to fix: the root cause, or those that are named and are there."""
    if names:
        return tuple(finding for finding in report.findings if finding.check_id in names)
    return tuple(f for f in report.findings if f.caused_by is None and f.severity is not Severity.INFO)[:1]


def steps_of(findings: Iterable[Finding], python: str) -> tuple[Step, ...]:
    """Return a step for each finding: its first remedy that changes the environment, else the best one."""
    return tuple(dict.fromkeys(_step(finding, python) for finding in findings))


def services_without_gpu(findings: Iterable[Finding], report: Report) -> tuple[str, ...]:
    """Return the services of a compose file that are found to need the GPU and to get none."""
    setups = report.snapshot.containers.setups or () if report.snapshot.containers is not None else ()
    facts = (fact for f in findings if f.check_id == "container-setup-without-gpu" for fact in f.facts)
    numbers = (int(match[1]) for fact in facts if (match := re.match(r"containers\.setups\[(\d+)\]", fact)))
    return tuple(dict.fromkeys(filter(None, (setups[number].service for number in numbers if number < len(setups)))))


def _step(finding: Finding, python: str) -> Step:
    able = [remedy for remedy in finding.remedies if kind_of(remedy, python) == "environment"]
    nothing = Remedy(summary=f"gpudoctor has no command for this: {finding.summary}")
    return step_of(finding.check_id, (*able, *finding.remedies, nothing)[0], python)


def step_of(check: str, remedy: Remedy, python: str) -> Step:
    """Return the step that carries out a remedy."""
    kind = kind_of(remedy, python)
    return Step(check=check, remedy=remedy, kind=kind, actions=actions_of(remedy, python) if kind != "system" else ())


def tool_of(steps: Sequence[Step]) -> str:
    """Return the project's tool that makes the changes; "" if what installs wheels does."""
    return steps[0].actions[0].tool if steps and steps[0].actions else ""


def make_plan(steps: Sequence[Step], inventory: Inventory, installer: Installer) -> Plan:
    """Return the plan for these steps. A refusal is part of it. Nothing is changed."""
    tool = tool_of(steps)
    until = next((n for n, step in enumerate(steps) if not step.actions or step.actions[0].tool != tool), len(steps))
    now, waiting = tuple(steps[:until]), tuple(steps[until:])
    later = tuple(step.check for step in waiting[1:] if step.actions)
    shown = (*now, *(step for step in waiting if step.check not in later))
    commands = [command for step in steps for command in step.remedy.commands]
    try:
        if any(re.search(_CHANGES_ENVIRONMENT, command) for step in shown for command in step.remedy.commands):
            refuse_environment(inventory, commands, tool if now else "")
        actions = _merged(now)
        resolution = installer.resolve(actions) if actions else None
        if resolution is not None:
            _refuse_broken(inventory, resolution.versions)
    except Refused as error:
        return Plan(steps=shown, later=later, why=str(error))
    return Plan(steps=shown, resolution=resolution, later=later)


def _merged(steps: Sequence[Step]) -> list[Action]:
    """Return the actions of all steps. Raises Refused: two of them ask for different versions of a package."""
    actions: list[Action] = []
    asked: dict[str, tuple[str, str]] = {}
    for step in steps:
        for action in step.actions:
            for requirement in action.requirements:
                text, check = asked.setdefault(name_of(requirement), (requirement, step.check))
                if text != requirement:
                    raise Refused(
                        f"{check} asks for {text}, and {step.check} asks for {requirement}: fix one of them at a time"
                    )
            if action not in actions:
                actions.append(action)
    return actions


def _refuse_broken(inventory: Inventory, versions: Mapping[str, str | None]) -> None:
    before = {name: inventory.version_of(name) for name in versions if inventory.version_of(name)}
    new = sorted(broken_requirements(inventory, versions) - broken_requirements(inventory, before))
    if new:
        name = new[0].split(" ", 1)[0]
        raise Refused(f"{'; '.join(new)}: update or uninstall {name} first, or choose a version that fits it")


def _names(actions: Sequence[Action]) -> set[str]:
    return {
        *(name_of(requirement) for action in actions for requirement in action.requirements),
        *(re.sub(r"[-_.]+", "-", name).lower() for action in actions for name in action.removes),
    }


def check_names(names: Sequence[str], known: Iterable[str]) -> None:
    """Refuse a name that is not the id of a check. Raises UsageError."""
    from difflib import get_close_matches

    ids = sorted(known)
    for name in names:
        if name not in ids:
            near = get_close_matches(name, ids, n=1)
            raise UsageError(
                f"no check is called {name!r}: {f'did you mean {near[0]}?' if near else 'gpudoctor list shows them'}"
            )
