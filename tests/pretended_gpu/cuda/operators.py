"""What the operators of a pretended GPU do: the CPU computes the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_leaves, tree_map

from . import machine
from .context import CONTEXT, Gpu, error, kernel_seconds
from .tensors import HOST, GpuTensor, patch_methods, wrap

aten = torch.ops.aten
NARROW = (torch.float16, torch.bfloat16)
ROUNDED = {
    **dict.fromkeys(("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"), "matmul"),
    **dict.fromkeys(("aten::convolution", "aten::convolution_backward"), "conv"),
}
"""Operator → the switch of TF32 that it reads."""
TF32_FROM = (8, 0)


def run(func: Any, *args: Any, **kwargs: Any) -> Any:
    special = _SPECIAL.get(func._schema.name)
    return special(func, *args, **kwargs) if special else _launch(func, args, kwargs)


def _launch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator on the device of its inputs, or on the one that it is given."""
    if kwargs.get("device") == HOST:
        return func(*tree_map(_host_of, args), **tree_map(_host_of, kwargs))
    inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    gpu = _gpu_of(func, inputs, kwargs.get("device"))
    CONTEXT.refuse()
    begin = gpu.ready_at(CONTEXT.stream(gpu.index))
    if not _is_view(func):
        _fail_if_asked(func._schema.name, inputs)
        if not gpu.runs:
            raise error("no kernel image is available for execution on the device")
        gpu.work(kernel_seconds)
    found = _computed(func, gpu, args, kwargs)
    if CONTEXT.kernels is not None and not _is_view(func):
        CONTEXT.kernels.append((func._schema.name, begin, gpu.ready_at(CONTEXT.stream(gpu.index))))
    return _returned(func, gpu, args, kwargs, found)


def _gpu_of(func: Any, inputs: list[Any], device: Any) -> Gpu:
    """Return the GPU. Raises RuntimeError: the inputs are not on one device; a number on the CPU may meet any."""
    if device is not None and device.type == "cuda":
        return CONTEXT.gpu(device.index)
    indexes = func._schema.name in ("aten::index", "aten::index_put_", "aten::index_put", "aten::_index_put_impl_")
    devices = [tensor.device for tensor in inputs if isinstance(tensor, GpuTensor) or (tensor.dim() and not indexes)]
    others = [found for found in devices if found != devices[0]]
    if others:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{devices[0]} and {others[0]}!"
        )
    on_gpu = next(tensor for tensor in inputs if isinstance(tensor, GpuTensor))
    return CONTEXT.gpu(on_gpu.device.index)


def _is_view(func: Any) -> bool:
    """Return whether an operator only gives another view of its input, which launches no kernel."""
    aliases = [returned.alias_info for returned in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


_calls = [0] * len(machine.MACHINE["faults"])


def _fail_if_asked(name: str, inputs: list[Any]) -> None:
    """Fail as the machine's faults say."""
    types = {str(tensor.dtype).removeprefix("torch.") for tensor in inputs}
    for number, fault in enumerate(machine.MACHINE["faults"]):
        if fault["operator"] == name and (not fault["dtype"] or fault["dtype"] in types):
            _calls[number] += 1
            if _calls[number] == fault["call"] and fault["sticky"]:
                CONTEXT.poison(fault["message"])
            elif _calls[number] >= fault["call"] and not fault["sticky"]:
                raise RuntimeError(fault["message"])


def _computed(func: Any, gpu: Gpu, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the CPU computes."""
    rounds = _rounds_to_tf32(func, gpu)

    def on_host(leaf: Any) -> Any:
        host = _host_of(leaf)
        return _rounded(host) if rounds and isinstance(host, torch.Tensor) and host.dtype == torch.float32 else host

    host_args, host_kwargs = tree_map(on_host, args), tree_map(on_host, kwargs)
    host_kwargs.pop("pin_memory", None)
    if "generator" in {argument.name for argument in func._schema.arguments} and host_kwargs.get("generator") is None:
        host_kwargs["generator"] = gpu.generator
    try:
        return func(*host_args, **host_kwargs)
    except (IndexError, RuntimeError) as failure:
        if isinstance(failure, IndexError) or "out of bounds" in str(failure):
            CONTEXT.poison("device-side assert triggered")
        elif "not implemented for" not in str(failure) or any(
            argument.alias_info is not None for argument in func._schema.arguments
        ):
            raise
        else:
            return _in_float32(func, host_args, host_kwargs)
    meta_args, meta_kwargs = (tree_map(_on_meta, values) for values in (host_args, host_kwargs))
    return tree_map(_zeros_like, func(*meta_args, **meta_kwargs))


def _host_of(leaf: Any) -> Any:
    """Return the values of a tensor, and the CPU for a device."""
    return HOST if isinstance(leaf, torch.device) else leaf.host if isinstance(leaf, GpuTensor) else leaf


def _in_float32(func: Any, args: Any, kwargs: Any) -> Any:
    """Return what the CPU computes in float32 where it has no kernel for a narrow type."""
    narrow = [leaf.dtype for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor) and leaf.dtype in NARROW]

    def wide(leaf: Any) -> Any:
        return leaf.float() if isinstance(leaf, torch.Tensor) and leaf.dtype in NARROW else leaf

    def narrowed(leaf: Any) -> Any:
        return leaf.to(narrow[0]) if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32 else leaf

    return tree_map(narrowed, func(*tree_map(wide, args), **tree_map(wide, kwargs)))


def _on_meta(leaf: Any) -> Any:
    return leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf


def _zeros_like(leaf: Any) -> Any:
    return torch.zeros(leaf.shape, dtype=leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf


def _returned(func: Any, gpu: Gpu, args: tuple[Any, ...], kwargs: dict[str, Any], found: Any) -> Any:
    """Return the tensors that were written to as they are, and new ones on the GPU."""
    arguments = func._schema.arguments
    given = {argument.name: value for argument, value in zip(arguments, args, strict=False)} | kwargs
    written = [
        given[argument.name]
        for argument in arguments
        if argument.alias_info is not None and argument.alias_info.is_write and argument.name in given
    ]
    for tensor in tree_leaves(written):
        if isinstance(tensor, GpuTensor):
            _follow(tensor, gpu)
    if any(returned.alias_info is not None and returned.alias_info.is_write for returned in func._schema.returns):
        return written[0] if len(func._schema.returns) == 1 else tuple(written)
    return tree_map(lambda leaf: wrap(leaf, gpu) if isinstance(leaf, torch.Tensor) else leaf, found)


def _follow(tensor: GpuTensor, gpu: Gpu) -> None:
    """Give a tensor the shape and the memory that an operator has given its values."""
    host = tensor.host
    if (tensor.size(), tensor.stride()) == (host.size(), host.stride()):
        return
    tensor.memory = gpu.memory_of(host)
    before = torch._C._meta_in_tls_dispatch_include()
    with no_dispatch():
        torch._C._set_meta_in_tls_dispatch_include(True)
        try:
            aten.set_.source_Storage_storage_offset(
                tensor, tensor.untyped_storage(), host.storage_offset(), host.size(), host.stride()
            )
        finally:
            torch._C._set_meta_in_tls_dispatch_include(before)


def _rounds_to_tf32(func: Any, gpu: Gpu) -> bool:
    switch = ROUNDED.get(func._schema.name)
    if switch is None or gpu.capability < TF32_FROM:
        return False
    owner = torch.backends.cuda.matmul if switch == "matmul" else torch.backends.cudnn.conv
    return bool(owner.fp32_precision == "tf32")


def _rounded(host: torch.Tensor) -> torch.Tensor:
    """Return the values with the ten bits of mantissa that TF32 has."""
    return ((host.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32).view(host.shape)


def _empty(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a tensor only if there is room for it: the machine may have less memory than the GPU."""
    gpu = CONTEXT.gpu(kwargs["device"].index)
    sized = func(*args, **{**kwargs, "device": torch.device("meta"), "pin_memory": None})
    if sized.untyped_storage().nbytes() > gpu.total:
        gpu.allocate(sized.untyped_storage().nbytes())
    return _launch(func, args, kwargs)


def _copy(func: Any, target: Any, source: Any, non_blocking: bool = False) -> Any:
    """Copy between devices. The host waits unless it is not to and its memory is pinned."""
    CONTEXT.refuse()
    values = source.host if isinstance(source, GpuTensor) else source
    gpu = CONTEXT.gpu((target if isinstance(target, GpuTensor) else source).device.index)
    host = target if not isinstance(target, GpuTensor) else source if not isinstance(source, GpuTensor) else None
    if host is None:
        gpu.work(kernel_seconds)
    else:
        pinned = bool(host.is_pinned())
        rate = machine.MACHINE["pinned_gb_s" if pinned else "pageable_gb_s"]
        gpu.work(values.numel() * values.element_size() / (rate * 1e9) if rate else 0.0)
        if not (non_blocking and pinned):
            CONTEXT.synchronizes()
            gpu.wait(CONTEXT.stream(gpu.index))
    (target.host if isinstance(target, GpuTensor) else target).copy_(values)
    return target


def _to_copy(func: Any, source: Any, *, device: Any = None, non_blocking: bool = False, **options: Any) -> Any:
    """Copy to another device or type."""
    device = source.device if device is None else device
    shape = {name: value for name, value in options.items() if name in ("dtype", "layout", "memory_format") and value}
    form = {**shape, "memory_format": options.get("memory_format") or torch.preserve_format}
    values = source.host if isinstance(source, GpuTensor) else source
    return aten.copy_(torch.empty_like(values, device=device, **form), source, non_blocking)


def _item(func: Any, tensor: Any) -> Any:
    """Return the number. The host waits for it."""
    CONTEXT.synchronizes()
    CONTEXT.gpu(tensor.device.index).wait(CONTEXT.stream(tensor.device.index))
    return func(tensor.host)


def _waiting(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operator whose output has a size that only the device knows."""
    found = _launch(func, args, kwargs)
    CONTEXT.synchronizes()
    gpu = CONTEXT.gpu(args[0].device.index)
    gpu.wait(CONTEXT.stream(gpu.index))
    return found


def _index(func: Any, tensor: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """Read or write elements. A mask has an unknown number of them; it is no index for a single value to write."""
    masks = [index for index in indices if isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)]
    is_fill = bool(args) and args[0].numel() == 1 and not isinstance(args[0], GpuTensor)
    if masks and not is_fill:
        return _waiting(func, tensor, indices, *args, **kwargs)
    return _launch(func, (tensor, indices, *args), kwargs)


def _lstm_cell(func: Any, inputs: Any, hidden: Any, cell: Any, input_bias: Any = None, hidden_bias: Any = None) -> Any:
    """Compute what only CUDA has as one operator; the gates are kept for the backward pass."""
    gates = inputs + hidden
    if input_bias is not None:
        gates = gates + input_bias + hidden_bias
    first, forget, new, last = gates.chunk(4, 1)
    kept = torch.cat([first.sigmoid(), forget.sigmoid(), new.tanh(), last.sigmoid()], 1)
    first, forget, new, last = kept.chunk(4, 1)
    after = forget * cell + first * new
    return last * after.tanh(), after, kept


def _lstm_cell_backward(
    func: Any, grad_output: Any, grad_cell: Any, before: Any, after: Any, kept: Any, has_bias: bool
) -> Any:
    first, forget, new, last = kept.chunk(4, 1)
    squashed = after.tanh()
    grad_output = torch.zeros_like(after) if grad_output is None else grad_output
    total = grad_output * last * (1 - squashed * squashed) + (0 if grad_cell is None else grad_cell)
    gates = torch.cat(
        [
            total * new * first * (1 - first),
            total * before * forget * (1 - forget),
            total * first * (1 - new * new),
            grad_output * squashed * last * (1 - last),
        ],
        1,
    )
    return gates, total * forget, gates.sum(0) if has_bias else None


_SPECIAL: dict[str, Callable[..., Any]] = {
    "aten::empty": _empty,
    "aten::empty_strided": _empty,
    "aten::copy_": _copy,
    "aten::_to_copy": _to_copy,
    "aten::_local_scalar_dense": _item,
    "aten::nonzero": _waiting,
    "aten::masked_select": _waiting,
    "aten::equal": _waiting,
    "aten::_unique": _waiting,
    "aten::_unique2": _waiting,
    "aten::unique_dim": _waiting,
    "aten::unique_consecutive": _waiting,
    "aten::index": _index,
    "aten::index_put_": _index,
    "aten::_index_put_impl_": _index,
    "aten::is_pinned": lambda func, tensor, device=None: False,
    "aten::record_stream": lambda func, tensor, stream: None,
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
}
_FACTORIES = ("arange", "arange.start", "arange.start_step", "linspace", "logspace", "eye", "eye.m", "randperm")
"""Those that would have their output resized by an operator of the device."""


def _made(func: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: _launch(func, args, kwargs)


_libraries: list[Any] = []


def install(_: Any) -> None:
    """Register the operators of CUDA that make tensors from nothing; the others come by __torch_dispatch__."""
    if not CONTEXT.gpus:
        return
    fallback = torch.library.Library("_", "IMPL")
    fallback.fallback(run, "CUDA")
    factories = torch.library.Library("aten", "IMPL")
    for name in _FACTORIES:
        packet, _, overload = name.partition(".")
        factories.impl(name, _made(getattr(getattr(aten, packet), overload or "default")), "CUDA")
    factories.impl("copy_", lambda *args: _copy(None, *args), "CUDA")  # torch.tensor() dispatches to nothing above it
    _libraries.extend((fallback, factories))
    patch_methods()
    torch.__future__.set_swap_module_params_on_conversion(True)
