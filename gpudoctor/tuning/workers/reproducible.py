"""The same random numbers whatever the precision, so that a step in float64 can be compared with one in bf16."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch.overrides import TorchFunctionMode

_DROPOUTS = frozenset(
    getattr(F, name)
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
    if hasattr(F, name)
)
_DRAWN = frozenset((torch.randn, torch.rand, torch.randn_like, torch.rand_like, torch.normal))
_DRAWN_IN_PLACE = frozenset(
    getattr(torch.Tensor, name) for name in ("normal_", "uniform_", "exponential_", "log_normal_", "cauchy_")
)


class Reproducible(TorchFunctionMode):
    """No dropout, and random numbers drawn in float32 where float64 is asked for.

    On the same seed, float64 draws other numbers than float32 does, and on CUDA which elements a dropout takes depends
    on the size of their type. (torch 2.13 on the CPU: bfloat16 and float16 draw float32's numbers, rounded.)
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call `func`, or what stands for it."""
        options = dict(kwargs or {})
        if func in _DROPOUTS:
            return args[0] if args else options["input"]
        if func is getattr(F, "scaled_dot_product_attention", None):
            return _attend_without_dropout(func, args, options)
        if func in _DRAWN:
            return _draw(func, args, options)
        if func in _DRAWN_IN_PLACE and args[0].dtype == torch.float64:
            return args[0].copy_(func(args[0].float(), *args[1:], **options))
        return func(*args, **options)


def _attend_without_dropout(func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call the attention with `dropout_p`, its fifth parameter, at zero."""
    if len(args) > 4:
        return func(*args[:4], 0.0, *args[5:], **options)
    return func(*args, **{**options, "dropout_p": 0.0})


def _draw(func: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Draw in float32 what would be drawn in float64."""
    examples = [value for value in args if isinstance(value, torch.Tensor) and value.is_floating_point()]
    wanted = options.get("dtype") or (examples[0].dtype if examples else torch.get_default_dtype())
    if wanted != torch.float64 or "out" in options:
        return func(*args, **options)
    single = tuple(value.float() if any(value is example for example in examples) else value for value in args)
    if func is not torch.normal:
        options["dtype"] = torch.float32
    return func(*single, **options).double()


def without_dropout(modules: Sequence[torch.nn.Module]) -> None:
    """Set to zero what the modules themselves hand to a kernel as a probability: recurrent layers and attention.

    By the attribute's name, "dropout", "drop_prob" or "attention_dropout": modules of other packages use the same.
    """
    for module in modules:
        for name, value in tuple(vars(module).items()):
            if "drop" in name and isinstance(value, float):
                setattr(module, name, 0.0)
