"""What a build of the project would do: read once, and compared with any number of images."""

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path

from gpudoctor.containers.builds.context import BuildContext, read_context
from gpudoctor.containers.builds.dockerfile import Dockerfile, parse_dockerfile
from gpudoctor.containers.builds.stages import (
    Base,
    Stage,
    Step,
    find_stage,
    lineage,
    needed_by,
    needed_stages,
    read_stages,
)
from gpudoctor.containers.builds.tracing import ResolvedCopy, trace
from gpudoctor.files import read_bounded
from gpudoctor.model.record import record

MAXIMUM_DOCKERFILE_BYTES = 1 << 20


@record
class Plan:
    """The instructions of a Dockerfile, and the files of a context that they copy.

    stages: all of the Dockerfile, expanded with `arguments`. target: the one that is built.
    changed_at: when the Dockerfile was last written, seconds since 1970; 0 for one inside another file.
    other_contexts: local folders that --from may name.
    """

    dockerfile: Dockerfile
    stages: tuple[Stage, ...]
    target: Stage
    context: BuildContext
    arguments: Mapping[str, str]
    changed_at: float = 0.0
    other_contexts: Mapping[str, BuildContext] = field(default_factory=dict)

    @cached_property
    def copies(self) -> tuple[ResolvedCopy, ...]:
        """Return each COPY and ADD of the target with its files."""
        return trace(self.context, self.stages, self.target, self.other_contexts)

    @property
    def root(self) -> Stage:
        """Return the first stage below the target. Its FROM names an image outside the Dockerfile."""
        return lineage(self.stages, self.target)[0]

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the steps of the stages that the target builds on, and its own."""
        return tuple(step for stage in lineage(self.stages, self.target) for step in stage.steps)

    @property
    def base(self) -> str:
        """Return the image outside the Dockerfile that the target builds on."""
        return self.root.base

    @property
    def is_base_given(self) -> bool:
        """Return whether a given build argument names the base: FROM $BASE."""
        line = next(item for item in self.dockerfile.instructions if item.line == self.root.line)
        return any(f"${name}" in line.rest or f"${{{name}" in line.rest for name in self.arguments)

    @cached_property
    def by_classic_builder(self) -> "Plan":
        """Return the plan as the classic builder runs it. It ignores a Dockerfile's own `.dockerignore`.

        Raises:
            ValueError: the `.dockerignore` is wrong; the message names file and line.
        """
        context = read_context(self.context.root) if self.context.is_own_ignore else self.context
        return replace(self, context=context.entering_few())

    @cached_property
    def by_old_buildkit(self) -> "Plan":
        """Return the plan as BuildKit of Docker before 23.0 runs it."""
        return replace(self, context=self.context.entering_few())

    @property
    def needed(self) -> tuple[Stage, ...]:
        """Return the stages that this build runs, in order."""
        return needed_by(self.stages, self.target)

    @property
    def outside_bases(self) -> frozenset[str]:
        """Return the images outside the Dockerfile that the stages of this build are based on."""
        outside = (stage.base for stage in self.needed if find_stage(self.stages[: stage.index], stage.base) is None)
        return frozenset(name for name in outside if name and name.lower() != "scratch")

    def on(self, bases: Mapping[str, Base]) -> "Plan":
        """Return the plan as these images make it: their working directories, variables and triggers.

        Raises:
            ValueError: an instruction cannot be expanded; the message names the line.
        """
        plain = Base()
        if all(base == plain for base in bases.values()):
            return self
        stages = read_stages(self.dockerfile, self.arguments, bases)
        return replace(self, stages=stages, target=stages[self.target.index])


def dockerfile_text(path: Path) -> str:
    """Return the text of a Dockerfile; ValueError if it is too large."""
    return read_bounded(path, MAXIMUM_DOCKERFILE_BYTES).decode("utf-8", "surrogateescape")


def read_plan(
    dockerfile: Path, context: Path, target: str | None, build_arguments: Mapping[str, str], text: str | None = None
) -> Plan:
    """Return the plan of a build.

    text: of the Dockerfile, if it is inside the file `dockerfile`.

    Raises:
        ValueError: the Dockerfile or `.dockerignore` is wrong; the message names file and line.
    """
    changed_at = 0.0
    if text is None:
        changed_at = dockerfile.stat().st_mtime
        text = dockerfile_text(dockerfile)
    try:
        parsed = parse_dockerfile(text)
        stages = read_stages(parsed, build_arguments)
        goal = needed_stages(stages, target)[-1]
    except ValueError as error:
        raise ValueError(f"{dockerfile}: {error}") from None
    folder = read_context(context, dockerfile)
    return Plan(
        dockerfile=parsed, stages=stages, target=goal, context=folder, arguments=build_arguments, changed_at=changed_at
    )
