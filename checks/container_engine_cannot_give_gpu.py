"""The container engine, and the containers seen from outside that ask it for the GPU."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, SeenSetup, once_per_service
from gpudoctor.model.record import record
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms.answers import answers

CDI = "container-cdi-unresolvable"
WRITE_CDI = (Fix("write-cdi-specification-for-docker"),)
NAMED = 5  # containers that a summary names


@check(
    family="container",
    explains=(
        *("container-setup-asks-for-missing-gpu", "container-setup-driver-capabilities-missing"),
        "container-setup-without-gpu",
    ),
)
def container_engine_cannot_give_gpu(setups: tuple[SeenSetup, ...]) -> Iterator[Finding]:
    """A container or service asks for the GPU, but its engine cannot give it one.

    Why: without the NVIDIA Container Toolkit, `docker run --gpus all` ends with "could not select device driver" and
    `--runtime=nvidia` with "unknown or invalid runtime name". A CDI device needs its specification.
    Exception: a running container has what it asked for. There is one finding per engine, not per container.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
    """
    skip_unless(setups, "no container was checked")
    problems = {seen.path: problem for seen in setups if (problem := _problem_of(seen)) is not None}
    affected = [seen for seen in setups if seen.path in problems]
    firsts = {problems[seen.path].kind: seen for seen in reversed(affected)}
    for seen in once_per_service(seen for seen in affected if seen in firsts.values()):
        problem = problems[seen.path]
        same = {other.label for other in affected if problems[other.path].kind == problem.kind} - {seen.label}
        also = f" (and so the {', the '.join(sorted(same)[:NAMED])})" if same else ""
        yield Finding.error("container engine", f"{problem.text}{also}", problem.facts, *problem.fixes)


@record
class _Problem:
    """Why the engine gives a container no GPU. kind: of the failure message with which an engine says so."""

    kind: str
    text: str
    facts: tuple[str, ...]
    fixes: tuple[Fix, ...]


def _problem_of(seen: SeenSetup) -> _Problem | None:
    """Return what the engine said when it started the container, else what it lacks for it."""
    for failure in seen.failures:
        for answer in answers((failure,), "nvidia-container-toolkit-missing"):
            said = " ".join(failure.text.split())[:120]
            return _Problem(
                kind=failure.kind,
                text=f"{answer.summary}: the {seen.label} did not start ({said})",
                facts=(failure.fact,),
                fixes=WRITE_CDI if failure.kind == CDI else answer.fixes,
            )
    lack = seen.engine_lack
    if lack is None:
        return None
    fixes = WRITE_CDI if lack.kind == CDI else (Fix("let-engine-use-gpu"),)
    return _Problem(kind=lack.kind, text=lack.text, facts=lack.facts, fixes=fixes)
