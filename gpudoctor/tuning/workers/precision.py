"""One precision on one device: autocast, gradient scaling, the switches of TF32.

| name | forward pass and loss | optimiser | TF32 |
| --- | --- | --- | --- |
| fp32 | float32 | as it is | off, in matrix products and in cuDNN: strict |
| tf32 | float32 | as it is | on, in both |
| bf16 | autocast to bfloat16 | as it is | off: what autocast leaves in float32 is strict |
| fp16 | autocast to float16 | gradients scaled, on CUDA | off |
| fp64 | as it is: whoever compares makes model and batch double | as it is | off |

Nothing is imported before it is needed: arrays are tuned if there is no torch, and the other way round.
"""

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gpudoctor.model.tuning import COMPLEX_PRECISIONS, PRECISIONS

REFERENCE = "fp64"
BASELINES = ("fp32", "complex128")
"""The precisions in which every workload must work: of torch, and of CuPy and NumPy."""

AUTOCAST_TYPES = {"bf16": "bfloat16", "fp16": "float16"}
"""Names of the dtypes in torch."""

INITIAL_SCALE = 2.0**10
"""GradScaler's own, 2**16, is above the largest float16 (65504): the first gradients of a small batch overflow, and the
optimiser skips those steps. Its state, and the memory of it, would then come later than the warm-up believes."""


def make_precision(name: str, device: str) -> "Precision":
    """Return the precision `name` on `device` ("cuda:0", "cpu", "mps").

    Raises:
        ValueError: there is no precision of that name.
    """
    if name in COMPLEX_PRECISIONS:
        return Precision(name)
    if name in (*PRECISIONS, REFERENCE):
        return TorchPrecision(name, device)
    raise ValueError(f"no precision is called {name!r}: there are {', '.join((*PRECISIONS, *COMPLEX_PRECISIONS))}")


class Precision:
    """One precision on one device, as a workload uses it; by itself one of CuPy or NumPy.

    name: a workload of arrays makes them of the dtype of this name.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context for the forward pass and the loss: autocast for bf16 and fp16, nothing for the others."""
        return nullcontext()

    def backward(self, loss: Any, optimizer: Any) -> None:  # noqa: ARG002  arrays know no gradients
        """Compute the gradients (scaled for fp16), let the optimiser step, and clear the gradients.

        Raises:
            TypeError: the workload computes with arrays.
        """
        raise TypeError(f"a workload in {self.name} has no gradients: return the outputs from step")

    def apply_switches(self) -> None:
        """Switch TF32 on or off in this process, for good; done before the workload is built."""


class TorchPrecision(Precision):
    """A precision of workloads in torch. scaler: torch's GradScaler for fp16 on CUDA; None for the others."""

    def __init__(self, name: str, device: str) -> None:
        super().__init__(name)
        self.scaler = _gradient_scaler() if name == "fp16" and device.startswith("cuda") else None
        self._device_type = device.partition(":")[0]

    def autocast(self) -> AbstractContextManager[Any]:
        import torch

        if self.name not in AUTOCAST_TYPES:
            return nullcontext()
        dtype = getattr(torch, AUTOCAST_TYPES[self.name])
        return torch.autocast(self._device_type, dtype=dtype)  # type: ignore[no-any-return,unused-ignore]

    def backward(self, loss: Any, optimizer: Any) -> None:
        if self.scaler is None:
            loss.backward()
            optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.step(optimizer)
            self.scaler.update()
        optimizer.zero_grad(set_to_none=True)

    def apply_switches(self) -> None:
        """Set matrix products and cuDNN, whatever they were before.

        Done by the older API alone, which every release has and which torch.compile reads; the newer one of torch 2.9
        makes it fail there (https://github.com/pytorch/pytorch/issues/166387).
        """
        import torch

        allowed = self.name == "tf32"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch 2.9 and 2.10 advise the newer API
            torch.set_float32_matmul_precision("high" if allowed else "highest")
            torch.backends.cudnn.allow_tf32 = allowed
            _overrule_program(torch.backends, allowed)


def _overrule_program(backends: Any, allowed: bool) -> None:
    """Set convolutions and RNNs by the newer API if the program itself has set `torch.backends.fp32_precision`.

    The older API leaves "none" there for "off", which inherits the program's "tf32". Ran so in torch 2.13; the state
    after this can be read by both APIs.
    """
    inherited = {getattr(owner, "fp32_precision", "none") for owner in (backends, backends.cudnn)}
    if inherited == {"none"}:
        return
    for operations in (backends.cudnn.conv, backends.cudnn.rnn):
        operations.fp32_precision = "tf32" if allowed else "ieee"


def _gradient_scaler() -> Any:
    """Return a new GradScaler. torch.amp has it since torch 2.3; torch.cuda.amp's gives a warning since 2.4."""
    import torch

    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", init_scale=INITIAL_SCALE)
    return torch.cuda.amp.GradScaler(init_scale=INITIAL_SCALE)
