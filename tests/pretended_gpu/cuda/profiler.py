"""What PyTorch's profiler says of the kernels of a pretended GPU, if it is asked for nothing but kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .context import CONTEXT


@dataclass(frozen=True)
class Kernel:
    """A kernel as Kineto lists it."""

    operator: str
    begin: float
    end: float

    def name(self) -> str:
        return f"pretended_{self.operator.rpartition(':')[2]}_kernel"

    def start_ns(self) -> int:
        return int(self.begin * 1e9)

    def duration_ns(self) -> int:
        return int((self.end - self.begin) * 1e9)

    def device_type(self) -> Any:
        from torch.autograd import DeviceType

        return DeviceType.CUDA

    def is_user_annotation(self) -> bool:
        return False


class _Result:
    def __init__(self, kernels: list[Kernel]) -> None:
        self._kernels = kernels

    def events(self) -> list[Kernel]:
        return self._kernels


def install(torch: Any) -> None:
    """Let the profiler support kernels."""
    profiler = torch.autograd.profiler
    only = {torch.autograd.ProfilerActivity.CUDA}
    prepare, enable, disable = profiler._prepare_profiler, profiler._enable_profiler, profiler._disable_profiler

    def begin(config: Any, activities: Any, *args: Any, **kwargs: Any) -> None:
        if activities != only:
            enable(config, activities - only, *args, **kwargs)
        else:
            CONTEXT.kernels = []

    def end() -> Any:
        if CONTEXT.kernels is None:
            return disable()
        kernels, CONTEXT.kernels = CONTEXT.kernels, None
        return _Result([Kernel(*each) for each in kernels])

    profiler._supported_activities = lambda: {torch.autograd.ProfilerActivity.CPU, *only}
    profiler._prepare_profiler = lambda config, activities, *args, **kwargs: (
        None if activities == only else prepare(config, activities - only, *args, **kwargs)
    )
    profiler._enable_profiler, profiler._disable_profiler = begin, end
