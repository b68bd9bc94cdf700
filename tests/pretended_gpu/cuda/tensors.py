"""Tensors on a pretended GPU: what they are. What is done with them is in operators.py."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .context import Gpu

aten = torch.ops.aten
HOST = torch.device("cpu")


class GpuTensor(torch.Tensor):
    """A tensor that says that it is on a GPU. `host` has its values, `memory` its part of the GPU's memory."""

    host: torch.Tensor
    memory: object

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operator."""
        from .operators import run

        return run(func, *args, **(kwargs or {}))

    @property
    def data(self) -> Any:
        return self.detach()

    @data.setter
    def data(self, other: Any) -> None:
        """Take over the values of another tensor."""
        torch.Tensor.data.__set__(self, other)
        self.host, self.memory = other.host, other.memory


def wrap(host: torch.Tensor, gpu: Gpu) -> GpuTensor:
    """Return a tensor on a GPU with these values. Raises OutOfMemoryError."""
    tensor: GpuTensor = torch.Tensor._make_wrapper_subclass(
        GpuTensor,
        host.size(),
        strides=host.stride(),
        storage_offset=host.storage_offset(),
        dtype=host.dtype,
        device=gpu.device,
    )
    tensor.host, tensor.memory = host, gpu.memory_of(host)
    return tensor


def _to_list(tensor: GpuTensor) -> Any:
    return _on_host(tensor).tolist()


def _to_numpy(tensor: GpuTensor, **_: Any) -> Any:
    raise TypeError(
        f"can't convert {tensor.device} device type tensor to numpy. "
        "Use Tensor.cpu() to copy the tensor to host memory first."
    )


def _shown(tensor: GpuTensor, **_: Any) -> str:
    return f"{_on_host(tensor)!r}".removesuffix(")") + f", device='{tensor.device}')"


def _formatted(tensor: GpuTensor, specification: str) -> str:
    return (
        format(tensor.detach().item(), specification) if tensor.dim() == 0 else object.__format__(tensor, specification)
    )


def _deep_copy(tensor: GpuTensor, memo: dict[int, Any]) -> Any:
    copied: Any = tensor.detach().clone()
    if isinstance(tensor, torch.nn.Parameter):
        copied = torch.nn.Parameter(copied, tensor.requires_grad)
    memo[id(tensor)] = copied.requires_grad_(tensor.requires_grad)
    return copied


def _reduced(tensor: GpuTensor, protocol: Any) -> Any:
    """Save the values; they are loaded as a tensor on the CPU."""
    return _on_host(tensor).requires_grad_(tensor.requires_grad).__reduce_ex__(protocol)


METHODS: dict[str, Callable[..., Any]] = {
    "tolist": _to_list,
    "numpy": _to_numpy,
    "__repr__": _shown,
    "__format__": _formatted,
    "__deepcopy__": _deep_copy,
    "__reduce_ex__": _reduced,
}
"""Methods of Tensor that are wrong for a subclass. They are changed in Tensor itself, where programs patch them."""


def _on_host(tensor: GpuTensor) -> Any:
    """Return a copy of the values. The host waits for them."""
    return aten._to_copy(tensor.detach(), device=HOST)


def _chosen(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    original = getattr(torch.Tensor, name)

    @functools.wraps(original)
    def method(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        return (own if isinstance(tensor, GpuTensor) else original)(tensor, *args, **kwargs)

    return method


def patch_methods() -> None:
    """Give Tensor the methods."""
    for name, own in METHODS.items():
        setattr(torch.Tensor, name, _chosen(name, own))
