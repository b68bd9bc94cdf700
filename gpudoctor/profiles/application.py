"""A profile in a program: its values, the context of its precision, and PyTorch's switches set by it."""

import os
import sys
import warnings
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

from gpudoctor.model.profile import ALLOCATOR_VARIABLES, FILE_NAME, Profile
from gpudoctor.parsers.profile_variables import THREADS_VARIABLE
from gpudoctor.profiles.env_file import read_profile
from gpudoctor.tuning.workers.precision import Precision, TorchPrecision, make_precision


def load_profile(path: str | os.PathLike[str] | None = None) -> "LoadedProfile":
    """Return the profile in the file; ./gpudoctor.env by default.

    Raises:
        UsageError: there is none, or it cannot be read.
    """
    return LoadedProfile(read_profile(Path(FILE_NAME if path is None else path)))


class LoadedProfile:
    """A profile for a program to run with. profile: everything that the file says."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def __repr__(self) -> str:
        return f"LoadedProfile({self.profile!r})"

    @property
    def batch_size(self) -> int:
        """The batch size to run with."""
        return self.profile.batch_size

    @property
    def max_batch_size(self) -> int | None:
        """The largest batch size that is safe in memory; None if it is unknown."""
        return self.profile.max_batch_size

    @property
    def precision(self) -> str:
        """The precision: "fp32", "tf32", "bf16", "fp16", "complex64" or "complex128"."""
        return self.profile.precision

    @property
    def device(self) -> str:
        """The device as PyTorch names it: "cuda:0", "cpu", "mps"."""
        return self.profile.device

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context for the forward pass and the loss: torch.autocast for bf16 and fp16, else nothing."""
        return self._switches.autocast()

    def backward(self, loss: Any, optimizer: Any) -> None:
        """Compute the gradients, scaled for fp16 on CUDA, let the optimiser step, and clear the gradients."""
        self._switches.backward(loss, optimizer)

    def apply(self) -> "LoadedProfile":
        """Set PyTorch's switches as measured, and return the profile.

        Sets TF32 (on for tf32, else off), torch.backends.cudnn.benchmark, the number of threads and the allocator.
        What belongs to the program is left to it: compile, channels_last, the DataLoader's workers. For a profile of
        arrays (complex64, complex128) there is nothing to set.
        """
        if not isinstance(self._switches, TorchPrecision):
            return self
        self._set_allocator()
        import torch

        self._switches.apply_switches()
        torch.backends.cudnn.benchmark = self.profile.cudnn_benchmark
        threads = self.profile.frameworks.get(THREADS_VARIABLE)
        if threads is not None:
            torch.set_num_threads(int(threads))
        return self

    @cached_property
    def _switches(self) -> Precision:
        """The precision, as the tuner's own trials run under it."""
        return make_precision(self.precision, self.device)

    def _set_allocator(self) -> None:
        """Set the variable of the allocator, which PyTorch reads when CUDA is first used; warn if that is over."""
        for name in ALLOCATOR_VARIABLES:
            value = self.profile.frameworks.get(name)
            if value is None or os.environ.get(name) == value:
                continue
            torch = sys.modules.get("torch")
            if torch is not None and torch.cuda.is_initialized():
                warnings.warn(
                    f"{name}={value} has no effect, because CUDA is already in use. Call apply() earlier, or start the "
                    "program with the profile in its environment",
                    RuntimeWarning,
                    stacklevel=3,
                )
            else:
                os.environ[name] = value
