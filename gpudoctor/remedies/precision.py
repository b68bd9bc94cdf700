"""What to do about a precision that does not work."""

from __future__ import annotations

from gpudoctor.model import Python, Remedy, System
from gpudoctor.remedies.commands import python_command
from gpudoctor.remedies.fixes import fix
from gpudoctor.remedies.variables import set_variable

SHOW = "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"


@fix
def check_torch_for_bf16(*, python: Python | None) -> Remedy:
    """Return how to see why bf16 is refused on a GPU that has it."""
    return Remedy(
        summary="Look whether PyTorch sees the GPU, and is 1.10 or newer with CUDA 11 or newer: the program "
        "refuses bf16 where either is missing; until then use float16 (fp16=True, --dtype half)",
        commands=(python_command(python, "-c", SHOW),),
    )


@fix
def run_model_on_gpu(*, python: Python | None) -> Remedy:
    """Return how to see whether a model can run on the GPU instead of the CPU."""
    return Remedy(
        summary="Run the model on the GPU, after a look whether PyTorch sees one",
        commands=(python_command(python, "-c", SHOW),),
    )


@fix
def forbid_tf32(*, system: System | None) -> Remedy:
    """Return how to forbid TF32 for every program."""
    return set_variable(
        system=system,
        name="NVIDIA_TF32_OVERRIDE",
        value="0",
        summary="Forbid TF32 in all of NVIDIA's libraries, whatever the program sets (in TensorFlow alone: "
        "tf.config.experimental.enable_tensor_float_32_execution(False))",
    )
