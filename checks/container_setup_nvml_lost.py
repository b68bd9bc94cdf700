"""A container, seen from outside, that had the GPU and lost it."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, SeenSetup, once_per_service
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import of_kind


@check(family="container", explains=("container-setup-hides-gpu",))
def container_setup_nvml_lost(setups: tuple[SeenSetup, ...]) -> Iterator[Finding]:
    """The log of a container says that it has lost the GPU.

    Why: `systemctl daemon-reload` on the host (any package update may call it) rewrites the device rules of running
    containers and drops those that the NVIDIA runtime's hook added. NVML then says "Unknown Error".
    Exception: a container that still has the GPU, but can lose it, is container-setup-may-lose-gpu.
    Reference: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html
    """
    skip_unless(setups, "no container was checked")
    lost = [seen for seen in setups if of_kind(seen.failures, "container-nvml-unknown-error")]
    for seen in once_per_service(lost):
        failure = of_kind(seen.failures, "container-nvml-unknown-error")[0]
        said = " ".join(failure.text.split())[:120]
        summary = f"The {seen.label} has lost the GPU: its log says {said}"
        facts = (failure.fact,)
        yield Finding.error(
            seen.label, summary, facts, Fix("restart-container", name=seen.setup.name), Fix("start-container-with-cdi")
        )
