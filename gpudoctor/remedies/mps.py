"""PyTorch on Apple's MPS."""

from __future__ import annotations

from gpudoctor.model import Python, Remedy
from gpudoctor.remedies.commands import python_command
from gpudoctor.remedies.fixes import fix

REFERENCE = "https://docs.pytorch.org/docs/stable/notes/mps.html"
SHOW = "import torch, platform; print(torch.__version__, platform.mac_ver()[0], torch.backends.mps.is_available())"


@fix
def check_mps(python: Python | None, *, summary: str) -> Remedy:
    """Return the advice with the command that shows what MPS depends on."""
    return Remedy(summary=summary, commands=(python_command(python, "-c", SHOW),), reference=REFERENCE)


@fix
def use_mps(python: Python | None) -> Remedy:
    """Return what takes CUDA's place on a Mac."""
    return check_mps(
        python,
        summary="Use the device mps in place of cuda (torch.device('mps'), --device mps) on Apple silicon; builds for "
        "macOS have no CUDA. A Mac with an Intel processor uses cpu, and so does a container on any Mac, for it "
        "reaches no GPU: outside of the container mps works",
    )


@fix
def install_arm64_torch(python: Python | None) -> Remedy:
    """Return how to install the build of PyTorch that has MPS."""
    return Remedy(
        summary="Install PyTorch's wheel for macOS on arm64, which has MPS",
        commands=(
            python_command(python, "-m", "pip", "install", "--force-reinstall", "torch"),
            python_command(python, "-c", "import torch; print(torch.backends.mps.is_available())"),
        ),
        reference=REFERENCE,
    )


@fix
def update_macos(python: Python | None) -> Remedy:
    """Return how to get a macOS that offers the device."""
    return Remedy(
        summary="Update macOS (PyTorch 2.9 and newer need macOS 14), and run outside a virtual machine",
        commands=("sw_vers", python_command(python, "-c", "import torch; print(torch.ones(1, device='mps'))")),
        needs=("reboot",),
        reference=REFERENCE,
    )


@fix
def upgrade_torch(python: Python | None, *, summary: str) -> Remedy:
    """Return how to update PyTorch and its companions to the newest release."""
    return Remedy(
        summary=summary,
        commands=(
            python_command(python, "-m", "pip", "install", "--upgrade", "torch", "torchvision", "torchaudio"),
            python_command(python, "-c", "import torch; print(torch.__version__)"),
        ),
    )
