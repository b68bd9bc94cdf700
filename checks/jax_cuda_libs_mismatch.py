"""The CUDA libraries that JAX finds against those it was built with."""

from collections.abc import Iterator

from gpudoctor.model import Finding
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import Symptoms
from gpudoctor.symptoms.answers import answers


@check(family="cuda", explains=("cuda-libs-conflict", "jax-cpu-build", "runs-on-cpu"))
def jax_cuda_libs_mismatch(symptoms: Symptoms = None) -> Iterator[Finding]:
    """JAX finds a CUDA library that is older than the one it was built with, or a CUDA plugin of another version.

    Why: JAX then does not use the GPU: "Found cuBLAS version 120103, but JAX was built against version 120205, which is
    newer". Usually LD_LIBRARY_PATH contains an older toolkit, or another framework has pinned NVIDIA's wheels.
    Exception: cudnn-missing-or-mismatch checks cuDNN.
    Reference: https://docs.jax.dev/en/latest/installation.html#nvidia-gpu
    """
    found = answers(symptoms, "jax-cuda-libs-mismatch")
    skip_unless(found, "JAX reports no CUDA library that is too old")
    yield from found
