"""The history of an image compared with the Dockerfile: does it fit, and when did each instruction run?

Each builder writes a line for each instruction, in its own way. What one writes is turned into a key, and so is
the instruction; then the two lists are laid side by side. Buildah, which builds for Podman, writes as the classic
builder does, but the instructions as they are in the Dockerfile, and of an ARG the names of all that are declared.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from gpudoctor.containers.builds.dockerfile import Instruction
from gpudoctor.containers.builds.stages import Stage, Step, lineage
from gpudoctor.model.record import record

SETTINGS = ("EXPOSE", "HEALTHCHECK", "SHELL", "STOPSIGNAL", "USER", "VOLUME")
"""They change no file by themselves; but the commands after USER and SHELL are others, and so is the container."""

LABELS = ("LABEL", "MAINTAINER")
"""The command line of a build may add labels of its own, which the classic builder writes too."""

_PORTS = re.compile(r"(\d+)(?:-(\d+))?(?:/([a-z]+))?")
_TEST = re.compile(r"&\{\[(.*)\](?: \"[^\"]*\")+ '.*'\}", re.DOTALL)
_NOP = re.compile(r"[^#]*#\(nop\)\s+")
_FLAGS_OF_RUN = re.compile(r"(/bin/sh -c )(?:--\S+\s+)+")
_ARGUMENTS = re.compile(r"\|(\d+)((?: [A-Za-z_]\w*=.*?)*?) (?=/|\S+ -\S*c )")
_AS_WRITTEN = re.compile(r"[^#]*#\(nop\) (?:WORKDIR [^/]|(?!COPY |ADD |WORKDIR )\S)")
"""An entry of Buildah: the classic builder has two spaces before most instructions, and resolves WORKDIR.

Source: stage_executor.go of github.com/containers/buildah, getCreatedBy.
"""


@record
class Entry:
    """One line of an image's history.

    created_at: seconds since 1970; a step out of the cache keeps the time at which it first ran.
    """

    text: str
    created_at: int
    by_buildkit: bool = False


@record
class HistoryMatch:
    """How the Dockerfile compares with the history.

    entries: line and text of an instruction → its entry, for those that are found.
    differing: lines of instructions that are not in the history.
    additional: what the history has and the Dockerfile has not.
    own: the entries that were compared with the Dockerfile. before: those of the image that it builds on.
    builder: "classic", "buildkit" or "buildah".
    """

    entries: Mapping[tuple[int, str], Entry]
    differing: tuple[int, ...] = ()
    additional: tuple[str, ...] = ()
    own: tuple[Entry, ...] = ()
    before: tuple[Entry, ...] = ()
    builder: str = "classic"

    def entry(self, instruction: Instruction) -> Entry | None:
        """Return the entry of the instruction; None if it is not found."""
        return self.entries.get((instruction.line, instruction.text))

    @property
    def fits(self) -> bool:
        """Return whether the image was built from these instructions."""
        return not self.differing and not self.additional


def entries_of(history: Iterable[Mapping[str, Any]]) -> tuple[Entry, ...]:
    """Return the entries of the engine's answer, the oldest first; an import and a squash say nothing of theirs."""
    entries = []
    for item in history:
        text = str(item.get("CreatedBy") or "")
        if not text.strip():
            continue
        by_buildkit = text.endswith("# buildkit") or str(item.get("Comment") or "").startswith("buildkit")
        entries.append(Entry(text=text, created_at=int(item.get("Created") or 0), by_buildkit=by_buildkit))
    return tuple(reversed(entries))


def match_history(
    entries: Sequence[Entry], stages: Sequence[Stage], target: Stage, below: Sequence[Entry] | None = None
) -> HistoryMatch:
    """Return how the instructions of `target`, and of the stages that it builds on, compare with the history's end.

    below: the history of the image that it builds on; None if that is unknown.
    """
    asked_for = [step for stage in lineage(tuple(stages), target) for step in stage.steps]
    builder = _builder_of(entries[max(0, len(entries) - len(asked_for)) :])
    steps = [step for step in asked_for if step.instruction.name not in LABELS]
    if builder == "buildkit":
        steps = [step for step in steps if not step.instruction.onbuild]
    elif builder == "buildah":
        steps = [replace(step, words=step.instruction.words, names_unset=False) for step in steps]
    reader = _EntryReader(steps, builder)
    written = [(entry, key) for entry, key in ((entry, reader.key(entry)) for entry in entries) if key not in LABELS]
    start = max(0, len(written) - len(steps))
    if below is not None:
        start = sum(1 for entry in below if _name_of(entry) not in LABELS)
    wanted, there = [_key(step, builder) for step in steps], [key for _, key in written[start:]]
    found: dict[tuple[int, str], Entry] = {}
    differing: list[int] = []
    additional: list[str] = []
    for tag, begin, end, first, last in SequenceMatcher(None, wanted, there, autojunk=False).get_opcodes():
        mine, theirs = steps[begin:end], [entry for entry, _ in written[start + first : start + last]]
        if tag == "equal" or (tag == "replace" and _may_be_same(mine, theirs)):
            pairs = list(zip(mine, theirs, strict=True))
            found.update(((step.instruction.line, step.instruction.text), entry) for step, entry in pairs)
            differing += [step.instruction.line for step, entry in pairs if not _has_value(step, entry)]
        else:
            differing += [step.instruction.line for step in mine]
            additional += [entry.text for entry in theirs]
    if builder != "buildah":
        differing += _differing_labels(asked_for, entries)
    before = tuple(entry for entry, _ in written[:start])
    own = tuple(entry for entry, _ in written[start:])
    return HistoryMatch(
        entries=found, differing=tuple(differing), additional=tuple(additional), before=before, own=own, builder=builder
    )


def _differing_labels(steps: Sequence[Step], entries: Sequence[Entry]) -> list[int]:
    """Return the lines of the labels that the history has not, if it has as many."""
    labels = [step for step in steps if step.instruction.name in LABELS and not step.instruction.onbuild]
    written = [setting_written("LABEL", _written(entry)) for entry in entries if _name_of(entry) in LABELS]
    if len(written) < len(labels):
        return []
    return [step.instruction.line for step in labels if not step.names_unset and _setting(step) not in written]


def _setting(step: Step) -> str:
    return setting_asked_for(step.instruction.name, step.words, step.instruction.rest)


def _builder_of(own: Sequence[Entry]) -> str:
    """Return which builder wrote these entries; what is below them may come from another one."""
    if own and own[-1].by_buildkit:
        return "buildkit"
    return "buildah" if any(_AS_WRITTEN.match(entry.text) for entry in own) else "classic"


def _may_be_same(steps: Sequence[Step], entries: Sequence[Entry]) -> bool:
    """Return whether they differ only in what builders write of here-documents: each version in a way of its own."""
    if len(steps) != len(entries):
        return False
    pairs = zip(steps, entries, strict=True)
    return all(step.instruction.heredocs and step.instruction.name == _name_of(entry) for step, entry in pairs)


def _key(step: Step, builder: str) -> str:
    """Return what the instruction and its entry in the history have in common."""
    name, words = step.instruction.name, step.words
    if step.instruction.onbuild:
        return "ONBUILD"
    if name in SETTINGS or (name == "ARG" and builder == "buildah"):
        return name
    if name in ("ARG", "ENV"):
        return f"{name} {_first_name(step.instruction.rest)}"
    if step.copy is not None:
        whole = builder == "buildkit" and not step.copy.heredocs
        return _plain(f"{name} {' '.join(words if whole else words[-1:])}")
    if name in ("RUN", "CMD", "ENTRYPOINT"):
        return f"{name} {_command_of(step)}"
    return _plain(f"{name} {' '.join(words)}")


def _command_of(step: Step) -> str:
    return _plain(" ".join(step.words) if step.instruction.is_json else step.instruction.rest)


def _first_name(rest: str) -> str:
    return re.split(r"[\s=]", rest, maxsplit=1)[0]


def _has_value(step: Step, entry: Entry) -> bool:
    """Return whether the entry has the value that an instruction without a file has now, as far as it is given.

    BuildKit writes the value that an ARG had, which the user may have given; Buildah writes what is not expanded.
    """
    name, written = step.instruction.name, _written(entry)
    as_written = not entry.by_buildkit and _AS_WRITTEN.match(entry.text) is not None
    if step.names_unset or (as_written and name != "ENV") or (entry.by_buildkit and name == "ARG"):
        return True
    if name in SETTINGS:
        return _setting(step) == setting_written(name, written)
    if name == "ARG":
        return "$" in step.instruction.rest or _plain(written) == _plain(step.instruction.text[len("ARG") :])
    is_same = _plain(written) == _plain(" ".join(step.words))
    if name in ("CMD", "ENTRYPOINT"):  # of a command line, the entry has its shell too
        return is_same is step.instruction.is_json
    return is_same if name == "ENV" else True


def _name_of(entry: Entry) -> str:
    return _said(entry).partition(" ")[0].upper()


def _written(entry: Entry) -> str:
    """Return what the entry says after the name of the instruction."""
    return _said(entry).partition(" ")[2]


def _said(entry: Entry) -> str:
    return _NOP.sub("", entry.text).removesuffix("# buildkit").strip()


class _EntryReader:
    """Reads keys out of entries. The commands of the Dockerfile show where the build arguments before one end."""

    def __init__(self, steps: Sequence[Step], builder: str) -> None:
        self._builder = builder
        set_here = (" ".join(step.words) for step in steps if step.instruction.name == "SHELL")
        self._shells = tuple(_plain(shell) for shell in ("/bin/sh -c", "cmd /S /C", *set_here))
        runs = {_command_of(step): step for step in steps if step.instruction.name == "RUN"}
        self._commands = sorted(runs, key=len, reverse=True)

    def key(self, entry: Entry) -> str:
        text = _said(entry)
        name, _, rest = text.partition(" ")
        if text == entry.text.strip() and not entry.by_buildkit:
            name, rest = "RUN", text  # the classic builder writes nothing but the command
        name = name.upper()
        if name in SETTINGS or name in LABELS or name == "ONBUILD":
            return name
        if name == "ARG" and self._builder == "buildah":
            return name
        if name in ("ARG", "ENV"):
            return f"{name} {_first_name(rest)}"
        if name in ("COPY", "ADD"):
            return _plain(f"{name} {_copied(rest, by_buildkit=entry.by_buildkit)}")
        if name == "WORKDIR" and self._builder != "buildah":
            return _plain(f"{name} {rest.rstrip('/') or '/'}")
        if name in ("RUN", "CMD", "ENTRYPOINT"):
            return f"{name} {self._command(rest)}"
        return _plain(f"{name} {rest}")

    def _command(self, rest: str) -> str:
        """Return the command without the build arguments, the shell and (as Buildah writes) the flags before it."""
        rest = _FLAGS_OF_RUN.sub(r"\1", rest, count=1)
        plain = _plain(rest)
        if rest.startswith("|"):
            known = (command for command in self._commands if plain.endswith(command))
            return next(known, self._without_shell(_plain(_ARGUMENTS.sub("", rest, count=1))))
        return self._without_shell(plain)

    def _without_shell(self, plain: str) -> str:
        return next((plain.removeprefix(shell) for shell in self._shells if plain.startswith(shell)), plain)


def _copied(rest: str, *, by_buildkit: bool) -> str:
    """Return sources and destination of a COPY: of the classic builder the destination alone, after hashes."""
    if not by_buildkit:
        return rest.rpartition(" in ")[2]
    return re.sub(r"^(--\S+ )+", "", rest)


def setting_asked_for(name: str, words: Sequence[str], rest: str) -> str:
    """Return the setting that the instruction `name` with these words makes. rest: all that follows its flags."""
    if name == "EXPOSE":
        return _ports(" ".join(words))
    if name != "HEALTHCHECK" or rest.upper() == "NONE":
        return _plain(" ".join(words))
    test = rest.partition(" ")[2].strip()  # after CMD
    return _plain(f"{'CMD' if test.startswith('[') else 'CMD-SHELL'} {test}")


def setting_written(name: str, text: str) -> str:
    """Return the setting in `text`, which follows the name of the instruction in the history."""
    if name == "EXPOSE":
        return _ports(text)
    if name == "HEALTHCHECK":
        return _plain(_TEST.sub(r"\1", text))
    return _plain(text)


def _ports(text: str) -> str:
    """Return the ports one by one: 80-82, or map[80/tcp:{} 81/tcp:{} 82/tcp:{}]."""
    found: set[str] = set()
    for first, last, protocol in _PORTS.findall(text.lower()):
        found.update(f"{port}/{protocol or 'tcp'}" for port in range(int(first), min(int(last or first), 65535) + 1))
    return " ".join(sorted(found))


def _plain(text: str) -> str:
    """Return `text` without white space, quotes, brackets and commas: builders write lists each in a way of its own."""
    return re.sub(r"[\s\"'\[\],\\]+", "", text)
