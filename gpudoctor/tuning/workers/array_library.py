"""What a trial asks of CuPy and NumPy: little, for they have no switches."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

from gpudoctor.model.tuning import Settings
from gpudoctor.tuning.workers.measuring import Unsupported
from gpudoctor.tuning.workers.precision import make_precision
from gpudoctor.tuning.workload import Workload


class ArrayLibrary:
    """CuPy or NumPy, whichever the workload has imported."""

    def __init__(self, device_name: str) -> None:
        self._device_name = device_name

    def seed(self, number: int) -> None:
        random.seed(number)
        for name in ("numpy", "cupy"):
            module = sys.modules.get(name)
            if module is not None:
                module.random.seed(number)

    def prepare(self, precision: str, settings: Settings) -> Any:
        if settings != Settings():
            raise Unsupported("CuPy and NumPy have no such settings")
        return make_precision(precision, self._device_name)

    def arrange(self, workload: Workload, settings: Settings) -> None:
        """Do nothing: there is no model."""

    def arranged(self, batch: Any, settings: Settings) -> Any:  # noqa: ARG002 - `prepare` refuses any
        return batch

    def flops(self, step: Callable[[], object]) -> float | None:  # noqa: ARG002
        """Return None: nothing counts the operations of arrays."""
        return None
