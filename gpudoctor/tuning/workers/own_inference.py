"""Inference with the user's own workload, whose `step` trains: by its `predict`, or by its model alone."""

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

from gpudoctor.errors import UsageError
from gpudoctor.tuning.workers.precision import Precision
from gpudoctor.tuning.workload import Workload, WorkloadFactory


def for_inference(build: WorkloadFactory, spec: str, device: str, precision: Precision) -> Workload:
    """Return the workload with a step that predicts, its modules in evaluation mode.

    Raises:
        UsageError: it has neither `predict` nor a model that can be called.
    """
    workload: Any = build(device, precision)
    if not callable(getattr(workload, "predict", None)) and not callable(getattr(workload, "model", None)):
        raise UsageError(
            f"--mode inference: {spec} needs a method predict(batch), or a model that is called with inputs"
        )
    for value in vars(workload).values():
        if callable(getattr(value, "eval", None)) and callable(getattr(value, "train", None)):
            value.eval()
    workload.step = partial(_predict, workload, precision)
    return workload  # type: ignore[no-any-return]


def _predict(workload: Any, precision: Precision, batch: Any) -> Any:
    """Return the outputs of one batch. What a model is called with are the inputs: the first part of a batch."""
    torch = sys.modules.get("torch")
    with nullcontext() if torch is None else torch.inference_mode(), precision.autocast():
        if callable(getattr(workload, "predict", None)):
            return workload.predict(batch)
        if isinstance(batch, Mapping):
            return workload.model(**{name: value for name, value in batch.items() if name not in ("label", "labels")})
        return workload.model(batch[0] if isinstance(batch, (list, tuple)) else batch)
