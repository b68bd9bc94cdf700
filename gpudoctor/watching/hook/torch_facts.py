"""What torch itself counts: compilations, memory, switches."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from .places import Places

_MEMORY = {
    "allocated_peak": "allocated_bytes.all.peak",
    "reserved": "reserved_bytes.all.current",
    "split": "inactive_split_bytes.all.current",
    "retries": "num_alloc_retries",
    "out_of_memory": "num_ooms",
}


class TorchFacts:
    """Call it whenever the file of the process is written.

    graphs_at_begin: compiled before the second step. seconds_at_begin: of compiling, before the first counted step.
    """

    def __init__(self, torch: Any, places: Places) -> None:
        self._torch, self._places = torch, places
        self._training: dict[int, dict[str, Any]] = {}
        self.graphs_at_begin: int | None = None
        self.seconds_at_begin = 0.0

    def __call__(self, *, in_step: bool) -> dict[str, Any]:
        """Return the facts. in_step: the program trains, and has not ended."""
        found: dict[str, Any] = {"compiled": {**compiled(), **self._at_begin()}}
        with suppress(Exception):
            found.update(self._compiling_at())
        with suppress(Exception):
            found["tf32"] = bool(self._torch.backends.cuda.matmul.allow_tf32)
        cuda = self._torch.cuda
        with suppress(Exception):
            if cuda.is_initialized():
                found["gpus"] = [self._gpu(index, in_step) for index in range(cuda.device_count())]
        return found

    def _compiling_at(self) -> dict[str, Any]:
        """Return the first line of the user function that was compiled most often recently, if there is one."""
        dynamo: Any = sys.modules.get("torch._dynamo.utils")
        metrics = dynamo.get_compilation_metrics() if dynamo is not None else ()
        lines = [(each.co_filename, each.co_firstlineno) for each in metrics if each.co_filename]
        own = [line for line in lines if not self._places.is_library(line[0])]
        return {"compiling_at": max(own, key=own.count)} if own else {}

    def _at_begin(self) -> dict[str, Any]:
        return {"graphs_at_begin": self.graphs_at_begin, "seconds_at_begin": self.seconds_at_begin}

    def _gpu(self, index: int, in_step: bool) -> dict[str, Any]:
        cuda = self._torch.cuda
        statistics, properties = cuda.memory_stats(index), cuda.get_device_properties(index)
        numbers = {name: statistics.get(key) for name, key in _MEMORY.items()}
        if in_step or index not in self._training:
            self._training[index] = {name: numbers[name] for name in ("reserved", "split")}
        return {
            "index": index,
            "total": properties.total_memory,
            "capability": [properties.major, properties.minor],
            **numbers,
            **self._training[index],  # at the end, the tensors are gone
        }


def compiled() -> dict[str, Any]:
    """Return the graphs that torch.compile made so far, and the seconds that it took; nothing if it was not used."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    if dynamo is None:
        return {}
    times = getattr(dynamo, "compilation_time_metrics", {})
    inner = next((times[name] for name in ("_compile.compile_inner", "_compile") if name in times), ())
    return {"graphs": dynamo.counters["stats"].get("unique_graphs", 0), "seconds": sum(inner), "times": len(inner)}
