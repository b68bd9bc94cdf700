"""The build of JAX."""

from collections.abc import Iterator

from gpudoctor.model import CpuUse, Finding, Fix
from gpudoctor.registry import check, skip_unless


@check(family="vendor", explains=("runs-on-cpu",))
def jax_cpu_build(cpu_use: CpuUse) -> Iterator[Finding]:
    """JAX is the build for the CPU, and a GPU is wanted.

    Why: pip install jax gives a JAX for the CPU. What runs it on NVIDIA GPUs is a plugin that jax[cuda12] and
    jax[cuda13] bring; there are such wheels for Linux only, WSL included.
    Exception: with the plugin installed the cause is another one. AMD GPUs and Apple GPUs have their own plugins.
    Reference: https://docs.jax.dev/en/latest/installation.html
    """
    skip_unless(cpu_use.cause == "jax-cpu-build", "JAX does not compute on the CPU")
    yield Finding.error(
        "JAX",
        f"JAX is {'' if cpu_use.certain else 'probably '}the build for the CPU"
        f'{"" if cpu_use.certain else f" ({cpu_use.reason})"}: "{cpu_use.text[:200]}"',
        (cpu_use.fact,),
        Fix("install-jax-for-cuda"),
        Fix("use-gpu-jax"),
        certain=cpu_use.certain,
    )
