"""Steps that wait for their data."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Loader, Run, Steps, measured, share_text
from gpudoctor.registry import Skip, check, counted_steps, skip_unless

LEAST_SHARE = 0.25
"""TensorFlow's input analyzer calls a program highly input-bound from 20 % on; short steps are measured less surely."""

LEAST_MS, LEAST_STAND_IN_MS = 2, 5
MOST_OF_STEP = 0.5
"""A batch takes 1 to 2 ms from the workers' queue, which more workers do not shorten. If that is half of the step, it
is said all the same, and it is the limit where a stand-in computes on the same CPU that workers load the data with."""

USUAL_WORKERS = 4
MOSTLY_IDLE = 0.5
FEWEST_SAMPLES = 5
NO_CORE, FULL_CORE, SEVERAL_CORES = 0.5, 0.9, 1.5
NEARLY_ALL_CPUS = 0.9


@check(family="run")
def input_bound(run: Run) -> Iterator[Finding]:
    """The GPU waits for its data.

    Why: while a step waits for the DataLoader, or prepares its batch itself, the GPU does nothing. Workers load the
    next batches meanwhile.
    Exception: waits below a quarter of each step pass. So do waits below 2 ms that are less than half of it. Without
    a view of the steps, a GPU that is idle more than half of the time, while the program keeps a CPU core busy or waits
    for a disk, is probably input-bound.
    Reference: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
    """
    if run.steps is None:
        yield from _from_outside(run)
        return
    steps = counted_steps(run)
    if steps.input_share >= (LEAST_SHARE if _is_long(steps) else MOST_OF_STEP):
        yield _inside(steps, run)


def _is_long(steps: Steps) -> bool:
    """Return whether the wait is long enough to be measured surely."""
    wait_ms = steps.input_share * steps.step_ms
    has_workers = steps.loader is None or steps.loader.workers > 0
    return wait_ms >= LEAST_MS if not steps.is_stand_in else wait_ms >= LEAST_STAND_IN_MS and not has_workers


def _inside(steps: Steps, run: Run) -> Finding:
    loader, share = steps.loader, steps.input_share
    if loader is None or steps.loader_share < steps.prepare_share:
        what, place = "prepares its data itself", steps.copies_place
        fixes = [_with_workers(run)]
    else:
        made = f", made at {loader.made}" if loader.made and loader.made != steps.loader_place else ""
        workers = "no workers" if not loader.workers else f"{loader.workers} workers"
        what = f"waits at {steps.loader_place or 'the loop'} for the DataLoader of {loader.dataset} ({workers}{made})"
        place = loader.made or steps.loader_place
        fixes = [
            _with_workers(run, loader)
            if not loader.workers
            else Fix("load-with-more-workers", workers=2 * loader.workers)
        ]
    if run.cpu_cores and run.allowed_cpus and run.cpu_cores >= NEARLY_ALL_CPUS * run.allowed_cpus:
        fixes = [Fix("load-with-less-work")]
    summary = f"For {share_text(share)} of each step of {steps.step_ms:.1f} ms, the program {what}"
    workers_fact = "run.steps.loader.workers" if loader else ""
    facts = ("run.steps.loader_share", "run.steps.prepare_share", workers_fact, "run.cpu_cores")
    return Finding.warning("training steps", summary, facts, *fixes, details=measured(share, place, saved=share))


def _with_workers(run: Run, loader: Loader | None = None) -> Fix:
    """Return the fix with as many workers as there are CPUs, up to the usual number."""
    name = "share-stream-among-workers" if loader is not None and loader.is_iterable else "load-with-workers"
    return Fix(name, workers=max(min(int(run.allowed_cpus or USUAL_WORKERS), USUAL_WORKERS), 1))


def _from_outside(run: Run) -> Iterator[Finding]:
    used = [gpu for gpu in run.gpus if gpu.is_used and gpu.idle_share is not None and gpu.samples >= FEWEST_SAMPLES]
    skip_unless(used, "the program used no GPU whose utilisation is known long enough")
    gpu = max(used, key=lambda gpu: gpu.idle_share or 0.0)
    share, cores = gpu.idle_share or 0.0, run.idle_cpu_cores
    if share <= MOSTLY_IDLE:
        return
    if cores is None or NO_CORE <= cores < FULL_CORE:
        raise Skip("what the program did while the GPU was idle is unknown")
    if cores < NO_CORE:
        cause, fix = "and so was the CPU, so the program probably waits for a disk or a network", Fix("prefetch-data")
    elif cores < SEVERAL_CORES:
        cause = f"while the program kept one CPU core busy ({cores:.2f}), probably with its input"
        fix = _with_workers(run)
    else:
        cause, fix = f"while it probably waits for {cores:.1f} busy CPU cores", Fix("load-with-less-work")
    if run.imports_torch is False:
        fix = Fix("prepare-input-ahead")
    summary = f"GPU {gpu.nvml_index} was idle {share_text(share)} of the time since its first use, {cause}"
    facts = (f"run.gpus[{run.gpus.index(gpu)}].idle_share", "run.idle_cpu_cores")
    yield Finding.warning(
        f"GPU {gpu.nvml_index}", summary, facts, fix, certain=False, details=measured(share, saved=share)
    )
