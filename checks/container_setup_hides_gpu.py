"""A container, seen from outside, that hides the GPU it gets."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, SeenSetup, once_per_service
from gpudoctor.registry import check, skip_unless

VARIABLE = "CUDA_VISIBLE_DEVICES"
HIDDEN = ("", "-1")


@check(family="container")
def container_setup_hides_gpu(setups: tuple[SeenSetup, ...]) -> Iterator[Finding]:
    """A container or service has the GPU, but its CUDA_VISIBLE_DEVICES hides it.

    Why: with an empty value or -1 CUDA finds no device, although nvidia-smi in the container shows the GPU.
    Exception: a container without the GPU hides nothing, and an image that is not started is not checked.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    skip_unless(setups, "no container was checked")
    hiding = [
        seen
        for seen in setups
        if seen.gpu_access and seen.setup.kind != "image" and seen.setup.environment.get(VARIABLE) in HIDDEN
    ]
    for seen in once_per_service(hiding):
        value = seen.setup.environment[VARIABLE]
        summary = f'The {seen.label} has the GPU, but its {VARIABLE}="{value}" hides it'
        facts = (seen.fact("environment"),)
        yield Finding.error(seen.label, summary, facts, Fix("show-container-its-gpu", setup=seen.setup))
