"""Finding out why PyTorch cannot use the GPU, and the usual fixes."""

from __future__ import annotations

from gpudoctor.model import Python, Pytorch, Remedy
from gpudoctor.remedies.commands import python_command
from gpudoctor.remedies.fixes import fix

INITIALISE = (
    "import os, torch; print(torch.__version__, torch.version.cuda, os.environ.get('CUDA_VISIBLE_DEVICES')); "
    "torch.cuda.init(); print(torch.cuda.get_device_name(0))"
)


@fix
def ask_driver_and_pytorch(*, python: Python | None, pytorch: Pytorch) -> Remedy:
    """Return how to see whether the driver answers, and what PyTorch says."""
    hint = "; None as its CUDA version means a build without CUDA" if pytorch.build_read is None else ""
    return Remedy(
        summary=f"Check whether the driver answers, then what PyTorch says when it initialises CUDA{hint}",
        commands=("nvidia-smi", python_command(python, "-c", INITIALISE)),
    )
