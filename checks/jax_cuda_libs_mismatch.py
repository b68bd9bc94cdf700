"""The CUDA libraries that JAX finds against those it was built with."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Finding, Python, Severity, Symptom, System
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies import install_packages, unset_variable

INSTALL = "https://docs.jax.dev/en/latest/installation.html#nvidia-gpu"


@check(family="cuda", explains=("cuda-libs-conflict",))
def jax_cuda_libs_mismatch(
    symptoms: tuple[Symptom, ...] | None = None, python: Python | None = None, system: System | None = None
) -> Iterator[Finding]:
    """JAX finds a CUDA library that is older than the one it was built with.

    Why: JAX then leaves the GPU alone: "Found cuBLAS version 120103, but JAX was built against version 120205, which is
    newer". Mostly LD_LIBRARY_PATH leads to an older toolkit, or another framework has pinned NVIDIA's wheels.
    Exception: cuDNN is for cudnn-missing-or-mismatch.
    Reference: https://docs.jax.dev/en/latest/installation.html#nvidia-gpu
    """
    told = reported(symptoms, "jax-library-outdated")
    skip_unless(told, "JAX reports no CUDA library that is too old")
    fact, message = told[0]
    name, loaded, built_with = (message.names[key] for key in ("name", "loaded", "built_with"))
    major = _major(name, built_with)
    yield Finding(
        severity=Severity.ERROR,
        summary=f"JAX was built with {name} {built_with} and finds {loaded}",
        subject="JAX",
        facts=(fact,),
        remedies=(
            install_packages(
                python=python,
                requirements=("--upgrade", f"jax[cuda{major}]"),
                summary=f"Install JAX with the CUDA libraries it needs, as wheels (nvidia-*-cu{major})",
                verify="import jax; print(jax.devices())",
            ),
            unset_variable(
                system=system,
                name="LD_LIBRARY_PATH",
                summary="Remove LD_LIBRARY_PATH, where it is set: the libraries of its folders come before the wheels",
            ),
        ),
        details=dict(message.names),
    )


# Their major versions count one less than CUDA's: cuFFT 11 belongs to CUDA 12.
ONE_LESS = ("cuFFT", "cuSOLVER")


def _major(name: str, number: str) -> int:
    """Return the CUDA major version of 12020 (CUDA 12.2) and 120205 (cuBLAS 12.2.5), of those with wheels of JAX."""
    major = int(number[:2]) + (1 if name in ONE_LESS else 0)
    return 13 if major == 13 else 12
