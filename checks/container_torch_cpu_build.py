"""PyTorch's build in a container that is seen from outside."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, SeenSetup, Severity, once_per_image
from gpudoctor.registry import check, skip_unless


@check(family="container")
def container_torch_cpu_build(setups: tuple[SeenSetup, ...]) -> Iterator[Finding]:
    """PyTorch in a container or image is built without CUDA, and the container is meant to use the GPU.

    Why: everything in it runs on the CPU, and .to("cuda") fails with "Torch not compiled with CUDA enabled". The CPU
    build is from the index whl/cpu, or from a requirements.txt that names it.
    Exception: a CPU build is right in a container that does not ask for the GPU and is not made for CUDA.
    Reference: https://pytorch.org/get-started/locally/
    """
    skip_unless(setups, "no container was checked")
    found = [
        seen
        for seen in setups
        if seen.setup.torch is not None and seen.setup.torch.build == "cpu" and (seen.gpu_access or seen.gpu_intent)
    ]
    for seen in once_per_image(found, rank=_severity):
        why, fact = "it asks for the GPU", seen.fact("environment" if seen.gpu_access == "runtime" else "gpu_requests")
        if not seen.gpu_access and seen.gpu_intent is not None:
            why, fact = seen.gpu_intent.words, seen.gpu_intent.fact
        version = seen.setup.torch.version if seen.setup.torch is not None else None
        summary = f"PyTorch {version} in the {seen.label} is built without CUDA, and {why}"
        facts = (seen.fact("torch"), fact)
        yield Finding.of(_severity(seen), seen.label, summary, facts, Fix("install-torch-in-image", setup=seen.setup))


def _severity(seen: SeenSetup) -> Severity:
    return Severity.ERROR if seen.gpu_access or seen.host_has_gpu else Severity.WARNING
