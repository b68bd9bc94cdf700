"""One of the processes that torchrun starts: the workload under DistributedDataParallel, its steps timed in step.

The order is in an environment variable: `workload`, `mode`, `parameters`, `kind` ("cuda" or "cpu"), `precision`,
`batch_sizes` and `seconds`, the time for one batch size. The first process writes a line of JSON for each batch size
into the file `output`, as soon as it is known.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gpudoctor.errors import UsageError

ORDER = "GPUDOCTOR_RANKS_ORDER"
WARMUP_STEPS, LEAST_STEPS, MOST_STEPS = 3, 5, 200


def main() -> None:
    """Measure every batch size of the order, and leave at once: threads of gloo may abort a process that cleans up."""
    status = 0
    try:
        _measure(json.loads(os.environ[ORDER]))
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _measure(order: Mapping[str, Any]) -> None:
    import torch
    from torch import distributed

    from gpudoctor.tuning.workers import catalog
    from gpudoctor.tuning.workers.measuring import samples_of
    from gpudoctor.tuning.workers.precision import make_precision

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    on_gpu = order["kind"] == "cuda"
    device = f"cuda:{os.environ['LOCAL_RANK']}" if on_gpu else "cpu"
    if on_gpu:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(order["threads"])
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    precision = make_precision(order["precision"], device)
    precision.apply_switches()
    workload: Any = catalog.load_factory(order["workload"], order["mode"], order["parameters"])(device, precision)
    calls: list[int] = []
    if world > 1:
        workload.model = _parallel(workload, torch, device if on_gpu else None)
        workload.model.register_forward_hook(lambda *_: calls.append(1))
    wait = torch.cuda.synchronize if on_gpu else _nothing
    for size in order["batch_sizes"]:
        step = partial(workload.step, workload.make_batch(size))
        seconds = _step_seconds(step, order["seconds"], wait, distributed, torch)
        if world > 1 and not calls:
            raise UsageError("the step does not call the workload's attribute model")
        if rank == 0:
            rate = world * samples_of(workload, size) / seconds
            with open(order["output"], "a", encoding="utf-8") as file:
                file.write(json.dumps([size, rate]) + "\n")


def _nothing() -> None:
    """There is no queue to wait for."""


def _parallel(workload: Any, torch: Any, device: str | None) -> Any:
    """Return the model of the workload, its gradients averaged over all processes."""
    model = getattr(workload, "model", None)
    if not isinstance(model, torch.nn.Module):
        raise UsageError("the workload has no attribute model that is a torch.nn.Module")
    return torch.nn.parallel.DistributedDataParallel(model, device_ids=None if device is None else [device])


def _step_seconds(
    step: Callable[[], object], limit_seconds: float, wait: Callable[[], None], distributed: Any, torch: Any
) -> float:
    """Return the mean seconds of a step of the slowest process. All processes do the same number of steps."""
    for _ in range(WARMUP_STEPS):
        began = time.perf_counter()
        step()
        wait()
    wanted = limit_seconds / max(time.perf_counter() - began, 1e-6)
    count = torch.tensor([min(max(int(wanted), LEAST_STEPS), MOST_STEPS)], dtype=torch.float64)
    where = torch.cuda.current_device() if distributed.get_backend() == "nccl" else "cpu"
    count = count.to(where)
    distributed.all_reduce(count, op=distributed.ReduceOp.MIN)
    distributed.barrier()
    wait()
    began = time.perf_counter()
    for _ in range(int(count.item())):
        step()
    wait()
    taken = torch.tensor([(time.perf_counter() - began) / int(count.item())], dtype=torch.float64).to(where)
    distributed.all_reduce(taken, op=distributed.ReduceOp.MAX)
    return float(taken.item())
