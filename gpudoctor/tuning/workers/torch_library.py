"""What a trial asks of torch: seeds, switches, the layout of memory, compilation, and the count of operations."""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpudoctor.model.tuning import Settings
from gpudoctor.tuning.workers.library import BLOCK, Library, Unsupported, map_leaves
from gpudoctor.tuning.workers.precision import AUTOCAST_TYPES, make_precision
from gpudoctor.tuning.workload import Workload


class TorchLibrary(Library):
    """torch, in a process that it has to itself."""

    def __init__(self, device_name: str) -> None:
        self._device_name = device_name
        self._threads = torch.get_num_threads()
        self._model: Any = None
        """A weak reference to the model that was converted."""

    def prepare(self, precision: str, settings: Settings) -> Any:
        """Set TF32, cudnn.benchmark and the threads; return the precision."""
        made = make_precision(precision, self._device_name)
        made.apply_switches()
        torch.backends.cudnn.benchmark = settings.cudnn_benchmark
        torch.set_num_threads(settings.threads or self._threads)
        return made

    def arrange(self, workload: Workload, settings: Settings) -> None:
        """Convert the model to channels_last and compile it, in place if torch can."""
        if not settings.channels_last and not settings.compile:
            return
        model = getattr(workload, "model", None)
        if not isinstance(model, torch.nn.Module):
            raise Unsupported("the workload has no attribute model that is a torch.nn.Module")
        if settings.channels_last:
            if all(parameter.dim() != 4 for parameter in model.parameters()):
                raise Unsupported("the model has no four-dimensional weights, so channels_last changes nothing")
            model.to(memory_format=torch.channels_last)
            self._model = weakref.ref(model)
        if settings.compile:
            if isinstance(model, _optimized_module()) or getattr(model, "_compiled_call_impl", None) is not None:
                raise Unsupported("the workload compiles its model itself")
            if not hasattr(model, "compile"):
                raise Unsupported(f"torch {torch.__version__} has no Module.compile()")
            torch._dynamo.reset()
            _frames().clear()
            if type(model).forward.__module__.startswith("torch.nn."):
                setattr(workload, "model", torch.compile(model))  # noqa: B010 - in place nothing is compiled: Dynamo skips torch's own frames
            else:
                model.compile()

    def require_effect(self, settings: Settings) -> None:
        if settings.compile and not _frames()["ok"]:
            raise Unsupported("torch.compile compiled no frame of the step")
        if settings.channels_last and not any(map(_is_channels_last, self._parameters())):
            raise Unsupported("the step does not keep the weights in channels_last")
        if settings.cudnn_benchmark and not torch.backends.cudnn.benchmark:
            raise Unsupported("the workload itself turns cudnn.benchmark off")
        if settings.threads and torch.get_num_threads() != settings.threads:
            raise Unsupported(f"the workload itself sets the threads to {torch.get_num_threads()}")

    def _parameters(self) -> Sequence[Any]:
        model = self._model() if self._model else None
        return () if model is None else tuple(model.parameters())

    def arranged(self, batch: Any, settings: Settings) -> Any:
        """Return the batch with its images in channels_last."""
        return map_leaves(_in_channels_last, batch) if settings.channels_last else batch

    def flops(self, step: Callable[[], object]) -> float | None:
        """Return what is counted in one step; None on MPS, whose RNNs and attention nothing counts."""
        return None if self._device_name == "mps" else count(step)

    def item_bytes(self, precision: str) -> int:
        return 2 if precision in AUTOCAST_TYPES else 4

    def matrix(self, precision: str, size: int) -> Any:
        """Return it in the dtype itself for bf16 and fp16: autocast would time its conversions too."""
        dtype = getattr(torch, AUTOCAST_TYPES.get(precision, "float32"))
        return torch.randn(size, size, device=self._device_name).to(dtype)

    def vector(self, count: int) -> Any:
        block = torch.randn(min(count, BLOCK), device=self._device_name)
        return block.repeat(-(-count // BLOCK))[:count]


def _frames() -> Any:
    """Return how many frames Dynamo has compiled, under "ok".

    Reference: `counters` of torch/_dynamo/utils.py of torch 2.13.
    """
    from torch._dynamo.utils import counters

    return counters["frames"]


def _optimized_module() -> Any:
    """Return the class of what torch.compile() returns for a module; no class for torch before 2.0."""
    dynamo = getattr(torch, "_dynamo", None)
    return () if dynamo is None else dynamo.OptimizedModule


def _is_channels_last(parameter: Any) -> bool:
    return parameter.dim() == 4 and bool(parameter.is_contiguous(memory_format=torch.channels_last))


def _in_channels_last(leaf: Any) -> Any:
    is_image = isinstance(leaf, torch.Tensor) and leaf.dim() == 4
    return leaf.to(memory_format=torch.channels_last) if is_image else leaf


Shape = Sequence[int]


def count(step: Callable[[], object]) -> float | None:
    """Return the floating-point operations of one step, two for a multiply-add; None if nothing in it is counted.

    torch's FlopCounterMode knows matrix products, convolutions, and attention on GPUs. What it takes for nothing is
    added here: the RNNs of cuDNN, MIOpen and oneDNN, and the attention of the CPU.
    Reference: torch/utils/flop_counter.py of torch 2.13.

    Raises:
        ImportError: torch before 2.0 has no FlopCounterMode.
    """
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False, custom_mapping=_further_formulas()) as counter:
        step()
    return float(counter.get_total_flops()) or None


def _further_formulas() -> dict[Any, Callable[..., int]]:
    """Return the formulas by operation, of those that this torch has. They are given shapes in place of tensors."""
    from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count

    formulas: dict[str, Callable[..., int]] = {
        "_cudnn_rnn": _rnn,
        "_cudnn_rnn_backward": _rnn_backward,
        "miopen_rnn": _rnn,
        "miopen_rnn_backward": _rnn_backward,
        "mkldnn_rnn_layer": lambda inputs, *weights, **_: _rnn(inputs, weights[:2]),
        "mkldnn_rnn_layer_backward": lambda inputs, *weights, **_: _rnn_backward(inputs, weights[:2]),
        "_scaled_dot_product_flash_attention_for_cpu": lambda *shapes, **_: sdpa_flop_count(*shapes[:3]),
        "_scaled_dot_product_flash_attention_for_cpu_backward": lambda *shapes, **_: sdpa_backward_flop_count(
            *shapes[:4]
        ),
    }
    return {getattr(torch.ops.aten, name): it for name, it in formulas.items() if hasattr(torch.ops.aten, name)}


def _rnn(inputs: Shape, weights: Sequence[Shape], *_: Any, **__: Any) -> int:
    """Each weight meets each time step of each sample once; biases have one dimension."""
    return 2 * math.prod(inputs[:-1]) * sum(math.prod(weight) for weight in weights if len(weight) == 2)


def _rnn_backward(inputs: Shape, weights: Sequence[Shape], *_: Any, **__: Any) -> int:
    return 2 * _rnn(inputs, weights)  # the gradients of the inputs, and those of the weights
