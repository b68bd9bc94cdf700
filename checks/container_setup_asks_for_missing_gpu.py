"""A container, seen from outside, that asks for a GPU by a number that its host does not have."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, SeenSetup, once_per_service
from gpudoctor.registry import check, skip_unless


@check(
    family="container",
    explains=(
        *("container-setup-driver-capabilities-missing", "container-setup-hides-gpu"),
        *("container-setup-image-needs-newer-driver", "container-setup-nvml-lost"),
    ),
)
def container_setup_asks_for_missing_gpu(setups: tuple[SeenSetup, ...]) -> Iterator[Finding]:
    """A container or service asks for a GPU that its host does not have.

    Why: GPU numbers start at 0. The engine refuses to start a container that asks for a number beyond the last GPU:
    "unknown device".
    Exception: a GPU named by its UUID, or one of another host, is not compared.
    Reference: https://docs.docker.com/engine/containers/gpu/
    """
    skip_unless(setups, "no container was checked")
    for seen in once_per_service(seen for seen in setups if seen.missing_gpu is not None):
        missing = seen.missing_gpu
        if missing is not None:
            summary = f"The {seen.label} asks for the GPU {missing.name}, which its host does not have"
            facts = (missing.fact,)
            yield Finding.error(
                seen.label, summary, facts, Fix("list-gpus-of-host"), Fix("give-container-gpu", setup=seen.setup)
            )
