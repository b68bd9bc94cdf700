"""How many floating-point operations a step takes, as torch's FlopCounterMode counts them: two for a multiply-add.

It knows matrix products, convolutions, and attention on GPUs. What it takes for nothing is added here: the RNNs of
cuDNN, MIOpen and oneDNN, and the attention of the CPU. Reference: torch/utils/flop_counter.py of torch 2.13.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

Shape = Sequence[int]


def count(step: Callable[[], object]) -> float | None:
    """Return the operations of one step; None where nothing in it is counted.

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
        "mkldnn_rnn_layer": _rnn_layer,
        "mkldnn_rnn_layer_backward": _rnn_layer_backward,
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
    """The gradients of the inputs, and those of the weights."""
    return 2 * _rnn(inputs, weights)


def _rnn_layer(inputs: Shape, of_input: Shape, of_state: Shape, *_: Any, **__: Any) -> int:
    return _rnn(inputs, (of_input, of_state))


def _rnn_layer_backward(inputs: Shape, of_input: Shape, of_state: Shape, *_: Any, **__: Any) -> int:
    return 2 * _rnn(inputs, (of_input, of_state))
