"""CUDA libraries that a program asked for and did not get, by what it said."""

from __future__ import annotations

from gpudoctor.conclusions.error_codes import runtime_texts
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import CupyRuntime, Symptom, TorchRuntime

# Those that name the library.
NAMED = (
    *("cuda-library-missing", "cuda-library-missing-by-name", "cuda-dll-missing", "cuda-dll-missing-by-name"),
    *("cuda-library-not-loaded", "cuda-library-not-loaded-by-jax", "cuda-builtins-missing"),
)
# TensorFlow's summary, which says something where nothing else names a library.
SUMMARY = "cuda-libraries-not-loaded-by-tensorflow"


def missing_library(
    symptoms: tuple[Symptom, ...] | None, torch_runtime: TorchRuntime | None, cupy_runtime: CupyRuntime | None
) -> tuple[str, Symptom] | None:
    """Return the message that a CUDA library cannot be opened, unless another check is for it.

    A library that PyTorch or CuPy itself misses, or bitsandbytes looks for, is a question of that package.
    """
    if reported(symptoms, "bitsandbytes*", "bnb-*"):
        return None
    own = " ".join(text for _, text in runtime_texts(torch_runtime, cupy_runtime))
    for fact, message in reported(symptoms, *NAMED):
        if message.names["library"] not in own:
            return fact, message
    told = reported(symptoms, SUMMARY)
    return told[0] if told and not reported(symptoms, "cudnn-*", "libcuda-*") else None
