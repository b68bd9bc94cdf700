"""The stages of a Dockerfile: which of them an image is built from, and what each COPY and ADD takes from where."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from gpudoctor.containers.builds.dockerfile import Dockerfile, Heredoc, Instruction, parse_dockerfile
from gpudoctor.containers.builds.expansion import expand
from gpudoctor.model.record import record

EXPANDED = ("ENV", "EXPOSE", "LABEL", "STOPSIGNAL", "USER", "VOLUME")
"""Instructions without a command in which variables are replaced, in addition to WORKDIR, COPY and ADD."""

PREDEFINED = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY")
"""Build arguments that need no ARG, in either case. Source: the Dockerfile reference, "Predefined ARGs"."""


@record
class Copy:
    """One COPY or ADD with everything expanded.

    sources: as written: paths and patterns of the context (or of `origin`), URLs, names of here-documents.
    destination: absolute path in the image, "/" at its end if it names a folder.
    origin: the stage or image that --from names; "" for the build context.
    """

    instruction: Instruction
    stage: str
    sources: tuple[str, ...]
    destination: str
    origin: str = ""
    chmod: str = ""
    excludes: tuple[str, ...] = ()
    keeps_parents: bool = False
    heredocs: tuple[Heredoc, ...] = ()


@record
class Step:
    """One instruction of a stage as the builder sees it.

    words: its arguments as written, expanded if the builder expands them; a command is left as it is.
    copy: what it copies, for COPY and ADD.
    names_unset: it names a variable that is set nowhere here: what it expands to in an image may be something else.
    """

    instruction: Instruction
    words: tuple[str, ...]
    copy: Copy | None = None
    names_unset: bool = False


@record
class Base:
    """What a stage inherits from the image in its FROM.

    triggers: the instructions behind ONBUILD in the image, in their order.
    """

    directory: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    triggers: tuple[str, ...] = ()


@record
class Stage:
    """One stage: from FROM to the next.

    index: from 0. name: of `AS name`; the index as text if it has none.
    base: the image or stage of FROM, expanded.
    arguments: values of the ARGs that are declared in it.
    """

    index: int
    name: str
    base: str
    line: int
    steps: tuple[Step, ...]
    arguments: Mapping[str, str]


def read_stages(
    dockerfile: Dockerfile, build_arguments: Mapping[str, str], bases: Mapping[str, Base] | None = None
) -> tuple[Stage, ...]:
    """Return the stages in their order, expanded with `build_arguments`.

    bases: of images outside the Dockerfile, by their names in FROM; one that is not there is taken for `scratch`.

    Raises:
        ValueError: an instruction cannot be expanded; the message names the line.
    """
    return tuple(_Reader(dockerfile, build_arguments, bases or {}).stages())


def needed_stages(stages: tuple[Stage, ...], target: str | None) -> tuple[Stage, ...]:
    """Return the target stage (the last one without a target) after every stage that it is built from or copies from.

    Raises:
        ValueError: there is no such stage.
    """
    wanted = stages[-1] if target is None else find_stage(stages, target)
    if wanted is None:
        names = ", ".join(stage.name for stage in stages)
        raise ValueError(f"no stage {target!r} in the Dockerfile: it has {names}")
    return needed_by(stages, wanted)


def needed_by(stages: tuple[Stage, ...], wanted: Stage) -> tuple[Stage, ...]:
    """Return the stage after every stage that it is built from or copies from."""
    needed: dict[int, Stage] = {}
    waiting = [wanted]
    while waiting:
        stage = waiting.pop()
        if stage.index in needed:
            continue
        needed[stage.index] = stage
        before = stages[: stage.index]
        origins = (step.copy.origin for step in stage.steps if step.copy is not None)
        found = (find_stage(before, name) for name in (stage.base, *origins) if name)
        waiting.extend(other for other in found if other is not None)
    return tuple(needed[index] for index in sorted(needed))


def lineage(stages: tuple[Stage, ...], stage: Stage) -> tuple[Stage, ...]:
    """Return the stages that `stage` builds on, the first one (on an image outside) first, and `stage` itself."""
    before = find_stage(stages[: stage.index], stage.base)
    return (stage,) if before is None else (*lineage(stages, before), stage)


def find_stage(stages: tuple[Stage, ...], name: str) -> Stage | None:
    """Return the stage that `--from`, FROM or a target calls `name`: a later one of the same name hides an earlier."""
    named = (stage for stage in reversed(stages) if name.lower() in (stage.name.lower(), str(stage.index)))
    return next(named, None)


class _Reader:
    """Walks the instructions, keeping the variables and the working directory of each stage."""

    def __init__(self, dockerfile: Dockerfile, build_arguments: Mapping[str, str], bases: Mapping[str, Base]) -> None:
        self._dockerfile = dockerfile
        self._given = build_arguments
        self._bases = bases
        self._global = _predefined(build_arguments)
        self._ends: dict[str, tuple[dict[str, str], str]] = {}  # of each stage by name: its ENV and working directory
        self._triggers: dict[str, tuple[Instruction, ...]] = {}  # of each stage by name: what is behind ONBUILD

    def stages(self) -> Iterator[Stage]:
        instructions = self._dockerfile.instructions
        starts = [number for number, item in enumerate(instructions) if item.name == "FROM" and not item.onbuild]
        for instruction in instructions[: starts[0]]:
            if instruction.name == "ARG":
                self._declare(instruction, self._global, self._global)
        for index, (start, end) in enumerate(zip(starts, [*starts[1:], len(instructions)], strict=True)):
            yield self._stage(index, instructions[start], instructions[start + 1 : end])

    def _stage(self, index: int, first: Instruction, others: tuple[Instruction, ...]) -> Stage:
        words = [self._expand(first, word, self._global) for word in first.words]
        name = words[2].lower() if len(words) == 3 and words[1].upper() == "AS" else str(index)
        base = words[0] if words else ""
        outside = self._bases.get(base, Base())
        environment, directory = self._ends.get(base.lower(), (outside.environment, outside.directory))
        self._environment, self._directory = dict(environment), directory
        self._arguments = _predefined(self._given)
        triggers = self._triggers[base.lower()] if base.lower() in self._ends else _triggers_of(outside, first)
        triggered = tuple(replace(instruction, onbuild=False) for instruction in triggers)
        steps = tuple(self._step(instruction, name) for instruction in (*triggered, *others))
        own_triggers = tuple(instruction for instruction in others if instruction.onbuild)
        self._triggers[name] = self._triggers[str(index)] = own_triggers
        self._ends[name] = self._ends[str(index)] = (self._environment, self._directory)
        declared = {key: value for key, value in self._arguments.items() if key not in _predefined(self._given)}
        return Stage(index=index, name=name, base=base, line=first.line, steps=steps, arguments=declared)

    def _step(self, instruction: Instruction, stage: str) -> Step:
        if instruction.onbuild:
            return Step(instruction=instruction, words=instruction.words)
        if instruction.name == "ARG":
            self._declare(instruction, self._arguments, self._variables())
        elif instruction.name == "WORKDIR":
            path = self._expand(instruction, instruction.rest, self._variables())
            self._directory = posixpath.normpath(posixpath.join(self._directory, path))
            return Step(instruction=instruction, words=(self._directory,))
        elif instruction.name in ("COPY", "ADD"):
            words = tuple(self._expand(instruction, word, self._variables()) for word in instruction.words)
            return Step(instruction=instruction, words=words, copy=self._copy(instruction, words, stage))
        elif instruction.name in EXPANDED:
            return self._setting(instruction)
        return Step(instruction=instruction, words=instruction.words)

    def _setting(self, instruction: Instruction) -> Step:
        """Return the step of an instruction that sets something, with its variables replaced."""
        variables = self._variables()
        named = re.findall(r"\$\{?([A-Za-z_]\w*)", instruction.rest)  # also those that an escape makes plain text
        names_unset = not {*named} <= {*variables}
        if instruction.name in ("ENV", "LABEL"):
            assigned = self._assignments(instruction)
            words = tuple(f"{name}={value}" for name, value in assigned.items())
            self._environment.update(assigned if instruction.name == "ENV" else {})
        else:
            plain = instruction.words if instruction.is_json else self._words(instruction.rest)
            words = tuple(self._expand(instruction, word, variables) for word in plain)
        return Step(instruction=instruction, words=words, names_unset=names_unset)

    def _copy(self, instruction: Instruction, words: tuple[str, ...], stage: str) -> Copy:
        variables = self._variables()
        if len(words) < 2:
            raise ValueError(f"line {instruction.line}: {instruction.name} needs a source and a destination")
        *sources, destination = words
        is_folder = destination.endswith("/") or posixpath.basename(destination) in (".", "..")
        path = posixpath.normpath(posixpath.join(self._directory, destination))
        flags = {name: self._expand(instruction, value, variables) for name, value in instruction.flags}
        return Copy(
            instruction=instruction,
            stage=stage,
            sources=tuple(sources),
            destination=f"{path.rstrip('/')}/" if is_folder or len(sources) > 1 else path,
            origin=flags.get("from", ""),
            chmod=flags.get("chmod", ""),
            excludes=tuple(self._expand(instruction, v, variables) for n, v in instruction.flags if n == "exclude"),
            keeps_parents=flags.get("parents", "false") in ("", "true", "1"),
            heredocs=tuple(self._expanded(instruction, heredoc) for heredoc in instruction.heredocs),
        )

    def _expanded(self, instruction: Instruction, heredoc: Heredoc) -> Heredoc:
        if not heredoc.expands:
            return heredoc
        content = self._expand(instruction, heredoc.content, self._variables(), keep_quotes=True)
        return Heredoc(name=heredoc.name, content=content, expands=False)

    def _declare(self, instruction: Instruction, arguments: dict[str, str], variables: Mapping[str, str]) -> None:
        """Take in an ARG: the argument given for it, else its default, else the value from before the first FROM."""
        for word in self._words(instruction.rest):
            name, equals, default = word.partition("=")
            if name in self._given:
                arguments[name] = self._given[name]
            elif equals:
                arguments[name] = self._expand(instruction, default, variables)
            elif name in self._global:
                arguments[name] = self._global[name]

    def _assignments(self, instruction: Instruction) -> dict[str, str]:
        """Return what an ENV sets: NAME=value pairs, or the older form `ENV NAME the rest is the value`."""
        words = self._words(instruction.rest)
        variables = self._variables()
        if len(words) > 1 and "=" not in words[0]:
            name, value = instruction.rest.split(maxsplit=1)
            return {name: self._expand(instruction, value, variables)}
        if bad := next((word for word in words if "=" not in word), None):
            raise ValueError(f"line {instruction.line}: {instruction.name}: no = in {bad[:80]!r}")
        pairs = (word.partition("=") for word in words)
        return {name: self._expand(instruction, value, variables) for name, _, value in pairs}

    def _words(self, text: str) -> list[str]:
        """Return `text` split at white space outside quotes; the quotes stay, for `expand` to take away."""
        return _shell_words(text, self._dockerfile.escape)

    def _variables(self) -> dict[str, str]:
        return {**self._arguments, **self._environment}  # ENV wins over ARG

    def _expand(
        self, instruction: Instruction, word: str, variables: Mapping[str, str], *, keep_quotes: bool = False
    ) -> str:
        try:
            return expand(word, variables, self._dockerfile.escape, keep_quotes=keep_quotes)
        except ValueError as error:
            raise ValueError(f"line {instruction.line}: {error}") from None


def _triggers_of(base: Base, first: Instruction) -> tuple[Instruction, ...]:
    """Return the instructions behind ONBUILD of the image that `first`, a FROM, names; they get its line number."""
    if not base.triggers:
        return ()
    text = "\n".join(("FROM scratch", *(f"ONBUILD {trigger}" for trigger in base.triggers)))
    return tuple(replace(item, line=first.line) for item in parse_dockerfile(text).instructions[1:])


def _predefined(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name.upper() in PREDEFINED}


def _shell_words(text: str, escape: str) -> list[str]:
    words: list[str] = []
    word, quote, escaped = "", "", False
    for character in text:
        if escaped:
            escaped = False
        elif character == escape and quote != "'":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character.isspace():
            words.extend([word] if word else [])
            word = ""
            continue
        word += character
    return [*words, word] if word else words
