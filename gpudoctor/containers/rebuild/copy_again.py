"""Renew one COPY in the cache of the classic builder, and nothing before it.

That cache is the images themselves: of the images that an instruction made of the same parent, the newest is taken.
So the stale COPY runs once more, without the cache, on the layer before it; the next plain build starts from
there. A changed argument would not do: the build after it would go back to the older image.
"""

import json

from gpudoctor.containers.builds.context import TooLarge
from gpudoctor.containers.builds.plan import Plan
from gpudoctor.containers.builds.stages import Stage, Step, needed_stages
from gpudoctor.containers.engines import APIClient
from gpudoctor.containers.images.facts import ImageFacts
from gpudoctor.containers.project_images import is_changed
from gpudoctor.containers.rebuild.builders import DockerBuilder
from gpudoctor.containers.rebuild.steps import BuildFailed, Progress
from gpudoctor.model.record import record


@record
class CopyAgain:
    """The step. tag: a temporary one, for the stages."""

    api: APIClient
    builder: DockerBuilder
    tag: str

    def __str__(self) -> str:
        return "# repeats the stale COPY with --no-cache, in a temporary Dockerfile FROM the layer before it"

    def run(self, progress: Progress) -> None:
        """Look at each stage that copies from the context, and run its first stale COPY again.

        Raises:
            BuildFailed: a build did not succeed, or an image cannot be looked at.
        """
        from docker.errors import DockerException

        try:
            whole = self.builder.subject.plan()
            for stage in needed_stages(whole.stages, self.builder.subject.target):
                if any(map(_from_context, stage.steps)):
                    self.builder.build_text(self.tag, self._text_up_to(stage, whole)).run(progress)
                    self._renew(stage, self.builder.subject.plan(str(stage.index)), progress)
        except (DockerException, OSError, ValueError, TooLarge) as error:
            raise BuildFailed(f"the stages cannot be compared: {error}", progress.last_lines) from None

    def _text_up_to(self, stage: Stage, plan: Plan) -> str:
        """Return the Dockerfile up to the end of the stage: --target takes no stage without a name."""
        lines = self.builder.subject.dockerfile.read_text(encoding="utf-8").splitlines(keepends=True)
        after = plan.stages[stage.index + 1 :]
        return "".join(lines[: after[0].line - 1] if after else lines)

    def _renew(self, stage: Stage, plan: Plan, progress: Progress) -> None:
        """Carry out the first stale COPY of the stage again; those after it have a new parent then."""
        facts = ImageFacts(self.api, self.tag, plan)
        stale = {item.line for item in facts.instructions() if is_changed(item)}
        copies = filter(_from_context, facts.plan.stages[stage.index].steps)
        first = next((step for step in copies if step.instruction.line in stale), None)
        parent = None if first is None else self._parent(facts, first)
        text = None if first is None else _written(first)
        if parent is not None and text is not None:
            self.builder.copy_again(self.tag, parent, text).run(progress)

    def _parent(self, facts: ImageFacts, step: Step) -> str | None:
        """Return the image before the COPY; None if the engine does not have it."""
        entry = facts.fit.entry(step.instruction)
        place = next((number for number, item in enumerate(facts.entries) if item is entry), None)
        if place is None:
            return None
        ids = [str(item.get("Id") or "") for item in self.api.history(facts.id)][::-1]
        before = "scratch" if place == 0 else ids[place - 1]
        return before if before == "scratch" or before.startswith("sha256:") else None


def _from_context(step: Step) -> bool:
    return step.copy is not None and not step.copy.origin


def _written(step: Step) -> str | None:
    """Return the COPY with every variable replaced; None if a builder would read that in another way."""
    flags = [f"--{name}={value}" if value else f"--{name}" for name, value in step.instruction.flags]
    if any(character in text for text in (*step.words, *flags) for character in "$\\"):
        return None
    return " ".join([step.instruction.name, *flags, json.dumps(step.words)])
