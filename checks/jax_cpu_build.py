"""The build of JAX."""

from collections.abc import Iterator

from gpudoctor.model import CpuUse, Finding, Fix
from gpudoctor.registry import check, skip_unless


@check(family="vendor", explains=("runs-on-cpu",))
def jax_cpu_build(cpu_use: CpuUse) -> Iterator[Finding]:
    """JAX is a CPU build, although a GPU is wanted.

    Why: pip install jax installs JAX for the CPU. NVIDIA GPUs need a plugin, which jax[cuda12] and jax[cuda13] install.
    Such wheels exist for Linux only, including WSL.
    Exception: if the plugin is installed, the cause is another one. AMD GPUs and Apple GPUs have their own plugins.
    Reference: https://docs.jax.dev/en/latest/installation.html
    """
    skip_unless(cpu_use.cause == "jax-cpu-build", "JAX does not compute on the CPU")
    yield Finding.error(
        "JAX",
        f"JAX is {'' if cpu_use.certain else 'probably '}a CPU build"
        f'{"" if cpu_use.certain else f" ({cpu_use.reason})"}: "{cpu_use.text[:200]}"',
        (cpu_use.fact,),
        Fix("install-jax-for-cuda"),
        Fix("use-gpu-jax"),
        certain=cpu_use.certain,
    )
