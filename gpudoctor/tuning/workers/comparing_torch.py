"""What comparing needs of torch: float64, recorded outputs and gradients, and products whose error proves TF32."""

import gc
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name torch's own documentation uses
from torch.overrides import TorchFunctionMode

from gpudoctor.tuning.workers.comparing import Step, Watched
from gpudoctor.tuning.workers.library import leaves, map_leaves
from gpudoctor.tuning.workers.precision import Precision
from gpudoctor.tuning.workers.process_state import seed

REFERENCE = "fp64"
STRICT = "fp32"

SKIPPED_STEPS = 24
"""Steps that gradient scaling may skip: from 2^16, torch's own first scale, halved each time, down to 2^-8."""

PRODUCT_SIZE = 512  # rows and columns; the relative error hardly depends on it (the same from 64 to 16384)
CHANNELS, PIXELS = 64, 16


def promote(workload: Any) -> None:
    """Make the workload's modules float64, and what it creates from now on.

    The default type changes only now: under another one, the same seed would have drawn other weights.
    """
    for module in _modules(workload):
        module.double()
    torch.set_default_dtype(torch.float64)


def copied(batch: Any, *, promoted: bool) -> Any:
    """Return a copy of the batch, because a step may change it; floating-point tensors in float64 if `promoted`."""

    def copy(tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor
        twin = tensor.detach().clone()
        if promoted and twin.is_floating_point():
            twin = twin.double()
        return twin.requires_grad_(tensor.requires_grad)

    return map_leaves(copy, batch)


def do_step(workload: Any, precision: Watched, make_batch: Callable[[], Any], seed_number: int, keep: bool) -> Step:
    """Do one step, again as long as gradient scaling skips it: its first scales are too high on purpose."""
    modules = _modules(workload)
    for _ in range(1 + SKIPPED_STEPS):
        seed(seed_number)
        calls = precision.backward_calls
        without_dropout([part for module in modules for part in module.modules()])
        with _Recorder(modules[:1] if keep else [], keep) as recorder, Reproducible():
            returned = workload.step(make_batch())
        asked = precision.backward_calls > calls
        not_finite = sum(int((~torch.isfinite(tensor)).sum()) for tensor in _tensors(returned))
        if not_finite or not asked or recorder.steps:
            break
    trained = asked or recorder.steps > 0
    values = _tensors(returned)
    return Step(
        not_finite=not_finite,
        loss=_loss(returned) if trained else None,
        trained=trained,
        stepped=not asked or recorder.steps > 0,
        outputs=(recorder.outputs or (None if trained else _on_host(values))) if keep else None,
        gradients=recorder.gradients or None,
    )


class _Recorder:
    """Keeps the first output of a model, and the gradients with which optimisers step, unscaled, on the host."""

    def __init__(self, models: Sequence[torch.nn.Module], keep: bool) -> None:
        self.outputs: list[torch.Tensor] = []
        self.gradients: list[torch.Tensor | None] = []
        self.steps = 0
        self._models, self._keep = models, keep
        self._hooks: list[Any] = []

    def __enter__(self) -> "_Recorder":
        self._hooks = [model.register_forward_hook(self._forward) for model in self._models]
        # torch 2.0 on. Before, nothing shows that an optimiser steps: gradients are not compared, no step is repeated.
        # (By import_module: torch.optim deletes its attribute `optimizer`.)
        register = getattr(import_module("torch.optim.optimizer"), "register_optimizer_step_pre_hook", None)
        if register is not None:
            self._hooks.append(register(self._optimizer_step))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _forward(self, _module: Any, _inputs: Any, output: Any) -> None:
        if not self.outputs:
            self.outputs = _on_host(_tensors(output))

    def _optimizer_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        found_inf = getattr(optimizer, "found_inf", None)
        if found_inf is not None and float(found_inf):  # a fused optimiser is called, and skips the step itself
            return
        self.steps += 1
        if self._keep:
            scale = getattr(optimizer, "grad_scale", None)  # a fused optimiser unscales the gradients itself
            factor = 1.0 if scale is None else 1.0 / float(scale)
            parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
            self.gradients += [_gradient(parameter, factor) for parameter in parameters]


def _gradient(parameter: torch.Tensor, factor: float) -> torch.Tensor | None:
    if parameter.grad is None:
        return None
    gradient = parameter.grad.detach()
    gradient = gradient.to_dense() if gradient.is_sparse else gradient
    return gradient.to("cpu", copy=True).mul_(factor)


def _modules(workload: Any) -> list[torch.nn.Module]:
    """Return the workload's modules, `model` first."""
    found = [getattr(workload, "model", None), *vars(workload).values()] if hasattr(workload, "__dict__") else []
    modules = [value for value in found if isinstance(value, torch.nn.Module)]
    return list(dict.fromkeys(modules))


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return the floating-point tensors in `value`, in order; numbers count as tensors."""
    found = (torch.tensor(leaf, dtype=torch.float64) if isinstance(leaf, float) else leaf for leaf in leaves(value))
    tensors = [leaf.detach() for leaf in found if isinstance(leaf, torch.Tensor)]
    return [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]


def _on_host(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.to("cpu", copy=True) for tensor in tensors]


def _loss(returned: Any) -> float | None:
    """Return the first single number that a step returned."""
    return next((float(tensor) for tensor in _tensors(returned) if tensor.numel() == 1), None)


def relative_error(
    values: Sequence[torch.Tensor | None] | None, reference: Sequence[torch.Tensor | None] | None
) -> float | None:
    """Return norm(values - reference) / norm(reference); infinity if only the reference is finite.

    None if there is nothing to compare: no values, or other shapes.
    """
    if not values or not reference or len(values) != len(reference):
        return None
    difference, size = 0.0, 0.0
    for value, expected in zip(values, reference, strict=True):
        if value is None and expected is None:
            continue
        exact = _double(expected if expected is not None else torch.zeros_like(value))
        actual = _double(value) if value is not None else torch.zeros_like(exact)
        if actual.shape != exact.shape:
            return None
        known = torch.isfinite(exact)
        error = (actual - exact)[known]
        difference += float(error.abs().square().sum())
        size += float(exact[known].abs().square().sum())
    if size == 0 and difference == 0:
        return None
    return math.sqrt(difference / size) if size and math.isfinite(difference) else math.inf


def _double(tensor: Any) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def product_error(precision: Precision, device: str) -> float | None:
    """Return the relative error of a matrix product, or of a convolution in strict fp32 if that is worse.

    The factors have zero mean: of positive numbers, rounding errors of either sign would cancel in the sums, and even
    bf16 would look exact. The convolution is there because torch allows TF32 for it by default.
    """
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float32)

    def error(function: Callable[..., Any], left: torch.Tensor, right: torch.Tensor) -> float | None:
        with torch.no_grad():
            expected = function(left.double(), right.double())
            with precision.autocast():
                actual = function(left.to(device), right.to(device))
        return relative_error([actual.cpu()], [expected])

    errors = [error(torch.mm, random(PRODUCT_SIZE, PRODUCT_SIZE), random(PRODUCT_SIZE, PRODUCT_SIZE))]
    if precision.name == STRICT:
        images, filters = random(4, CHANNELS, PIXELS, PIXELS), random(CHANNELS, CHANNELS, 1, 1)
        errors.append(error(torch.nn.functional.conv2d, images, filters))
    return max((known for known in errors if known is not None), default=None)


def free_memory() -> None:
    """Give back to the device what a run has left in the allocator."""
    gc.collect()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


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
        """Call `func`, or its substitute."""
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
