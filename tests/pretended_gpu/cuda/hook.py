"""Let `import torch` find CUDA: the modules that it is made of are changed as they are loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

VERSION, CUDA_VERSION = "2.13.0+cu130", "13.0"


def _answer_as_cuda_build(version: Any) -> None:
    version.__version__, version.cuda = VERSION, CUDA_VERSION


def _add_functions(extension: Any) -> None:
    from .functions import add_functions

    add_functions(extension)


def _add_devices(torch: Any) -> None:
    from . import accelerator, functions, operators, profiler

    accelerator.install(torch)
    operators.install(torch)
    functions.finish(torch)
    profiler.install(torch)


_AFTER: dict[str, Callable[[Any], None]] = {
    "torch.version": _answer_as_cuda_build,
    "torch._C": _add_functions,
    "torch": _add_devices,
}


class _ThenChange(Loader):
    """Loads a module, then changes it."""

    def __init__(self, loader: Loader, change: Callable[[Any], None]) -> None:
        self._loader, self._change = loader, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the module is, with the change to make; None for any other."""
        change = _AFTER.get(fullname)
        spec = PathFinder.find_spec(fullname, path, target) if change else None
        if spec is not None and spec.loader is not None and change is not None:
            spec.loader = _ThenChange(spec.loader, change)
        return spec


sys.meta_path.insert(0, _Finder())
