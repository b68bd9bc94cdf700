"""What is tried, in order: the plain build first, and what makes the next plain build read the changed files.

Each attempt ends in a plain build: what it gives is what the user's own next build gives too.
"""

from collections.abc import Iterator

from gpudoctor.containers.rebuild.builders import Builder
from gpudoctor.containers.rebuild.steps import Step
from gpudoctor.model.record import record

_COPY = "BuildKit's own copy of the context"


@record
class Attempt:
    """Steps after which the image under the temporary tag is compared. why: what the user should know about them."""

    why: str
    steps: tuple[Step, ...]


@record
class Needs:
    """What is known about the stale image.

    stages: those that are stale.
    unseen_changes: files changed in a way that BuildKit does not see.
    copy_again: for the classic builder, the step that renews the stale COPY in its cache; None where it cannot be done.
    """

    stages: tuple[str, ...] = ()
    unseen_changes: bool = False
    copy_again: Step | None = None


def attempts(builder: Builder, tag: str, needs: Needs) -> Iterator[Attempt]:
    """Yield what to try, the least first."""
    plain = builder.build(tag)
    anew = (builder.forget_context(), plain)
    if builder.buildkit and needs.unseen_changes:
        yield Attempt(why=f"a file changed, but not its size and time: {_COPY} goes first", steps=anew)
    else:
        yield Attempt(why="", steps=(plain,))
        if builder.buildkit:
            yield Attempt(why=f"still stale: {_COPY} goes", steps=anew)
    if needs.copy_again is not None:
        yield Attempt(why="still stale: the classic builder does not see what changed", steps=(needs.copy_again, plain))
    yield Attempt(
        why="still stale: without the cache", steps=(builder.build(tag, no_cache=True, stages=needs.stages), plain)
    )
