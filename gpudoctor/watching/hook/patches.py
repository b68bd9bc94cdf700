"""Patches torch, once, right after it has been imported; they are never taken back while the program runs."""

from __future__ import annotations

from typing import Any

from .closer_look import CloserLook
from .loaders import patch_loaders
from .passes import patch_passes
from .patching import Patching
from .recorder import Recorder
from .tensors import patch_tensors
from .torch_facts import TorchFacts


def install(torch: Any, recorder: Recorder) -> Patching:
    """Patch torch so that `recorder` hears of loaders, copies, synchronisation, clones, passes and steps."""
    # PyTorch that names a CUDA version and was built without CUDA computes on the CPU what it says the GPU does.
    recorder.stand_in = bool(torch.version.cuda) and not torch.backends.cuda.is_built()
    patching = Patching(torch, recorder)
    facts = TorchFacts(torch, patching.places)
    patch_loaders(patching)
    patch_tensors(patching)
    patch_passes(patching, facts)
    recorder.look = CloserLook(patching)
    recorder.facts["torch"] = str(torch.__version__)
    recorder.ask = facts
    return patching
