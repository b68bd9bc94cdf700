"""What a worker answers to each request: one workload on one device."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from gpudoctor.model.codec import from_json
from gpudoctor.model.tuning import (
    COMPLEX_PRECISIONS,
    UNSUPPORTED,
    Loading,
    Measurement,
    Settings,
    Transfer,
    Trial,
    TunedDevice,
    TunedWorkload,
)
from gpudoctor.tuning.executor import Effort
from gpudoctor.tuning.workers import catalog, ceilings, describing
from gpudoctor.tuning.workers.comparing import BATCH_SIZES, compare
from gpudoctor.tuning.workers.devices import Cupy, Device, Host
from gpudoctor.tuning.workers.failures import Failure
from gpudoctor.tuning.workers.library import ArrayLibrary, Library
from gpudoctor.tuning.workers.measuring import COUNTED_BATCH, Bench, arrays, dataset_size, samples_of, unit_of
from gpudoctor.tuning.workers.precision import BASELINES, make_precision
from gpudoctor.tuning.workload import Workload, WorkloadFactory

HEADROOM = 1.1
"""What a process may have of what trials may use, except on a GPU: libraries and fragments take some more."""


def process_limit_bytes(kind: str, usable_bytes: int) -> int:
    """Return what a worker on this kind of device may have.

    On a GPU the search counts what the allocator holds. A batch for which it has to free its cache must show that.
    """
    return usable_bytes if kind == "cuda" else int(usable_bytes * HEADROOM)


class Session:
    """The state of a worker.

    order: `workload`, `mode`, `parameters`, `device`, `arrays` (CuPy or NumPy, not torch), `memory_fraction`,
    `memory_limit_bytes`, `usable_bytes` (None until the device was described once), `pynvml`.
    """

    def __init__(self, order: Mapping[str, Any]) -> None:
        self._order = order
        names = describing.array_device_names() if order["arrays"] else describing.torch_device_names()
        self._device, self._library = self._open(describing.choose_device(str(order["device"]), names))
        self.memory_is_full = self._device.is_full

    def _open(self, name: str) -> tuple[Device, Library]:
        pynvml_path = self._order["pynvml"]
        if not self._order["arrays"]:
            from gpudoctor.tuning.workers import torch_devices, torch_library

            return torch_devices.open_device(name, pynvml_path), torch_library.TorchLibrary(name)
        device = Host() if name == "cpu" else Cupy(int(name.partition(":")[2]), pynvml_path)
        return device, ArrayLibrary(name)

    def judged(self, failure: Failure, request: Mapping[str, Any]) -> Failure:
        """Return the failure of the user's code as the setting's or the precision's if the same step works without it.

        No wording decides: libraries have many ways to say that they have no kernel for a type on this device.
        """
        if "_bench" not in vars(self):
            return failure
        trial = from_json(Trial, request.get("trial", {"batch_size": 0, "precision": "", **request}))
        sizes = (trial.batch_size,) if trial.batch_size else BATCH_SIZES
        baseline = BASELINES[trial.precision in COMPLEX_PRECISIONS]
        plain = replace(trial, settings=Settings())
        if trial.settings != plain.settings and self._bench.works(plain):
            return Failure(kind=UNSUPPORTED, detail=f"the step works without this setting: {failure.detail}")
        if trial.precision in ("", baseline):
            return failure
        if not any(self._bench.works(replace(plain, precision=baseline, batch_size=size)) for size in sizes):
            return failure
        detail = f"the step works in {baseline}, not in {trial.precision}: {failure.detail}"
        return Failure(kind=UNSUPPORTED, detail=detail)

    def answer_describe(self, _request: Mapping[str, Any]) -> TunedDevice:
        return self._described

    @cached_property
    def _described(self) -> TunedDevice:
        """Return the device, and how much of its memory trials may use."""
        describe = describing.describe_arrays if self._order["arrays"] else describing.describe_torch
        described = describe(self._device)
        usable, free = self._order["usable_bytes"], described.memory_usable_bytes
        if not usable:
            share = None if free is None else int(free * self._order["memory_fraction"])
            bounds = (share, self._order["memory_limit_bytes"])
            usable = min((bound for bound in bounds if bound is not None), default=None)
        return replace(described, memory_usable_bytes=usable)

    @cached_property
    def _factory(self) -> WorkloadFactory:
        return catalog.load_factory(self._order["workload"], self._order["mode"], self._order["parameters"])

    @cached_property
    def _bench(self) -> Bench:
        """Return the bench; from here on the process has the memory that trials may use, and no more."""
        usable = self._described.memory_usable_bytes
        if usable is not None:
            self._device.limit_memory(process_limit_bytes(self._device.kind, usable))
        return Bench(self._factory, self._device, self._library)

    def answer_workload(self, request: Mapping[str, Any]) -> TunedWorkload:
        """Return the description of the workload."""
        workload = self._bench.build(request["precision"])
        described = catalog.describe(self._order["workload"], self._order["mode"], self._order["parameters"])
        held, size = _sample_bytes(workload) or None, dataset_size(workload)
        return replace(described, unit=unit_of(workload), sample_bytes=held, dataset_size=size)

    def answer_measure(self, request: Mapping[str, Any]) -> Measurement | Failure:
        return self._bench.measure(from_json(Trial, request["trial"]), from_json(Effort, request["effort"]))

    def answer_compare(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of Numerics."""
        bench = self._bench  # sets the limit of the memory
        bench.forget()
        return compare(self._factory, self._device.name, request["precision"], make_precision, request["limit_seconds"])

    def answer_ceiling(self, request: Mapping[str, Any]) -> float | None:
        self.answer_release(request)
        precision = make_precision(request["precision"], self._device.name)
        return ceilings.product_tflops(self._device, precision, self._described.memory_usable_bytes, self._library)

    def answer_bandwidth(self, request: Mapping[str, Any]) -> float | None:
        self.answer_release(request)
        return ceilings.copy_gb_s(self._device, self._described.memory_usable_bytes, self._library)

    def answer_transfers(self, request: Mapping[str, Any]) -> tuple[Transfer, ...]:
        """Return the rates from host to device, for batches of a size."""
        if self._order["arrays"] or self._device.kind != "cuda":
            return ()
        from gpudoctor.tuning.workers.loading import transfers

        batch_bytes = request["batch_size"] * _sample_bytes(self._bench.build(request["precision"]))
        self._bench.forget()
        return transfers(self._device.name, batch_bytes)

    def answer_loading(self, request: Mapping[str, Any]) -> tuple[Loading, ...]:
        """Return how a DataLoader over the workload's data set does."""
        if self._order["arrays"]:
            return ()
        from gpudoctor.tuning.workers.loading import loading

        workload = self._bench.build(request["precision"])
        return loading(workload, request["batch_size"], request["step_seconds"], request["limit_seconds"])

    def answer_release(self, _request: Mapping[str, Any]) -> None:
        """Release the workload and the memory."""
        if "_bench" in vars(self):
            self._bench.forget()


def _sample_bytes(workload: Workload) -> int:
    """Return the bytes of a sample, from a small batch, or from a single sample where code takes no more."""
    try:
        size, batch = COUNTED_BATCH, workload.make_batch(COUNTED_BATCH)
    except Exception:
        size, batch = 1, workload.make_batch(1)
    return sum(int(leaf.nbytes) for leaf in arrays(batch)) // samples_of(workload, size)
