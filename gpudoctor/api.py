"""gpudoctor in a program: what the commands do, with the results as objects instead of text.

Every function works in scripts, threads and notebooks: it prints nothing, and each probe and each trial runs in a
process of its own, so that a library that hangs or crashes takes nothing with it.
"""

import functools
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from gpudoctor.errors import GPU_POLICIES, UsageError
from gpudoctor.model.report import Report
from gpudoctor.model.snapshot import Snapshot
from gpudoctor.model.tuning import GOALS, SIGNAL, THROUGHPUT, Tuning
from gpudoctor.probes.host import ImageRequest, executable, interpreter_meant, setting
from gpudoctor.probes.local_host import LocalHost
from gpudoctor.profiles.application import LoadedProfile, load_profile
from gpudoctor.reporters import notebook

__all__ = ["LoadedProfile", "check", "load_profile", "take_snapshot", "tune"]

COMPARISON_SHARE = 0.08
"""Of the budget, for comparing the numbers of one precision with the reference."""

SCALING_SHARE = 0.4
"""Of the budget, for several GPUs at once."""

MAXIMUM_TUNING_BYTES = 64 * 2**20

notebook.enable()


def check(
    *names: str,
    ignore: Iterable[str] = (),
    require: Iterable[str] = (),
    files: Iterable[str | os.PathLike[str]] = (),
    fast: bool = False,
    python: str | os.PathLike[str] | None = None,
    timeout: float = 30.0,
    images: ImageRequest | None = None,
    gpu: str | None = None,
) -> Report:
    """Return a report on this machine, or on the one that the texts in `files` describe, root cause first.

    The configuration of the working directory counts as for `gpudoctor check`.

    names: ids or families of the checks to run, all of them if there is none. ignore: those to leave out.
    require: what is asked of the machine, as "gpu>=1"; each that is not met is a finding `requirement-unmet`.
    files: pasted reports or snapshots to diagnose; nothing on this machine is probed then.
    fast: import neither torch nor cupy.
    python: interpreter whose environment is diagnosed, this one where None.
    timeout: seconds for each probe.
    images: what the container checks look at.
    gpu: what it means that no GPU can be used: "auto" (None), "required" or "optional".

    Raises:
        UsageError: the configuration is wrong, a name is neither an id nor a family, a requirement is wrong, a file
            cannot be read, `python` is not a program, or `gpu` is not one of these words.
    """
    from gpudoctor.engine.checkup import check_files, check_host
    from gpudoctor.engine.plan import configured

    if gpu not in (None, *GPU_POLICIES):
        raise UsageError(f"gpu: {gpu!r} is not one of {', '.join(GPU_POLICIES)}")
    texts = [os.fspath(file) for file in files]
    plan = configured(names, tuple(ignore), tuple(require), None, images or ImageRequest(), gpu, plugins=not texts)
    if texts:
        return check_files(texts, plan.names, plan.ignored, plan.rules)
    host = _this_machine(python, timeout, fast=fast, images=plan.images, profile=plan.profile)
    return check_host(host, plan.names, plan.ignored, plan.rules)


def take_snapshot(
    *, fast: bool = False, python: str | os.PathLike[str] | None = None, timeout: float = 30.0
) -> Snapshot:
    """Return the facts about this machine that the checks decide from. Names of people and hosts are masked.

    fast, python, timeout: as for `check`.

    Raises:
        UsageError: `python` is not a program.
    """
    from gpudoctor.probes import snapshot

    return snapshot.take_snapshot(_this_machine(python, timeout, fast=fast))


def tune(
    workload: str = "mlp",
    *,
    mode: str = "training",
    device: str = "auto",
    precisions: Iterable[str] = (),
    budget: float = 60.0,
    memory_fraction: float = 0.9,
    dataset_size: int | None = None,
    min_batch: int | None = None,
    max_batch: int | None = None,
    effective_batch: int | None = None,
    goal: str = THROUGHPUT,
    vary: str | None = None,
    gpus: int = 1,
    exhaustive: bool = False,
    compare: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    profile: str | os.PathLike[str] | None = None,
    variables: Mapping[str, str] | None = None,
    python: str | os.PathLike[str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Tuning:
    """Return what was measured on a device, and the precision and the batch size to run with.

    workload: "mlp", "cnn", "lstm", "transformer", "signal", "MODULE:ATTRIBUTE" or "FILE.py:ATTRIBUTE".
    mode: "training" or "inference"; your own workload predicts with `predict(batch)` or its model.
    device: "auto", "cpu", "cuda:1", "mps".
    precisions: to try; all that the device has if there is none.
    budget: seconds after which nothing new is measured.
    memory_fraction: share of the free memory that trials may use.
    dataset_size: samples of the data set; no batch is larger.
    min_batch, max_batch: no batch is smaller or larger.
    effective_batch: samples between two steps of the optimiser, by gradient accumulation.
    goal: "throughput", or "latency": the shortest step of the smallest batch allowed.
    vary: a parameter of the workload and its values, "sequence=128,512"; each gets its share of the budget.
    gpus: of this machine that train together, by torchrun; on the CPU, processes.
    exhaustive: measure every precision at every power of two that fits.
    compare: an earlier tuning (JSON): the result says what changed since.
    resume: file (JSON) that is kept up to date after each measurement; if it exists, its search continues. With
        `vary`, each value has its own next to it: "tuning-sequence-512.json".
    profile: file for the env profile, written if the run ends with a recommendation and was not interrupted.
    variables: your own variables for the profile, such as {"GPU_BATCH_SIZE": "{batch_size}"}.
    python: interpreter to measure with; None: this one.
    say: called with short progress messages.

    Raises:
        UsageError: an argument is wrong, or the profile cannot be written there.
        WorkloadError: the workload itself failed.
        GpudoctorError: the library that the workload needs cannot be used.
    """
    from gpudoctor.files import check_writable
    from gpudoctor.profiles.from_tuning import check_assignments
    from gpudoctor.tuning import comparison, tuner, variations
    from gpudoctor.tuning.local import LocalExecutor, Target, Timeouts
    from gpudoctor.tuning.scaling import measure_scaling
    from gpudoctor.tuning.tuning_run import Request

    if not (budget > 0 and 0 < memory_fraction <= 1):
        raise UsageError(
            f"budget ({budget}) must be above 0, memory_fraction ({memory_fraction}) above 0 and at most 1"
        )
    if goal not in GOALS:
        raise UsageError(f"goal: {goal!r} is not one of {', '.join(GOALS)}")
    largest = min(filter(None, (dataset_size, max_batch, effective_batch)), default=None)
    if largest is not None and largest < (min_batch or 1):
        raise UsageError(f"no batch size is at least {min_batch or 1} and at most {largest}")
    assignments = tuple(f"{name}={text}" for name, text in (variables or {}).items())
    check_assignments(assignments)
    if profile is not None:
        check_writable(Path(profile))
    each = variations.parse_vary(vary)
    seconds = budget * (1 - SCALING_SHARE * (gpus > 1)) / len(each)
    timeouts = Timeouts(comparison=seconds * COMPARISON_SHARE, budget=math.inf if exhaustive else seconds)
    interpreter = (interpreter_meant(os.environ) or sys.executable) if python is None else executable(os.fspath(python))
    target = Target(workload=workload, mode=mode, device=device, memory_fraction=memory_fraction)
    earlier = None if compare is None else _read_tuning(Path(compare))
    kept = None if resume is None else Path(resume)
    if kept is not None:
        check_writable(kept)
    request = Request(
        precisions=tuple(precisions),
        budget_seconds=seconds,
        largest_batch=largest,
        smallest_batch=min_batch,
        effective_batch=effective_batch,
        goal=goal,
        exhaustive=exhaustive,
    )
    parts = [kept and variations.file_of(kept, parameters if len(each) > 1 else {}) for parameters in each]
    before = [_read_tuning(part) if part is not None and part.exists() else None for part in parts]
    tunings: list[Tuning] = []
    for parameters, part, known in zip(each, parts, before, strict=True):
        executor = LocalExecutor(interpreter, replace(target, parameters=parameters), timeouts=timeouts)
        keep = functools.partial(_keep, path=part)
        tunings.append(tuner.tune(executor, replace(request, before=known), say, keep))
        keep(tunings[-1])
        if tunings[-1].interrupted == SIGNAL:
            break
    tuning = variations.combined(tunings)
    if gpus > 1 and tuning.interrupted != SIGNAL:
        last = replace(target, parameters=each[-1])
        tuning = replace(tuning, scaling=measure_scaling(interpreter, last, tuning, gpus, SCALING_SHARE * budget, say))
    if earlier is not None:
        tuning = replace(tuning, comparison=tuple(comparison.compare(earlier, tuning)))
    _keep(tuning, kept)
    return tuning if profile is None else _with_profile(tuning, Path(profile), assignments)


def _this_machine(
    python: str | os.PathLike[str] | None,
    timeout: float,
    *,
    fast: bool,
    images: ImageRequest | None = None,
    profile: str | None = None,
) -> LocalHost:
    interpreter = None if python is None else os.fspath(python)
    return LocalHost(replace(setting(interpreter, timeout, fast=fast, images=images), profile=profile))


def _read_tuning(path: Path) -> Tuning:
    """Return the tuning in a file. Raises UsageError: it cannot be read, or is not one."""
    from gpudoctor.files import read_bounded
    from gpudoctor.tuning.saved import parse_tuning

    try:
        return parse_tuning(read_bounded(path, MAXIMUM_TUNING_BYTES), str(path))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _keep(tuning: Tuning, path: Path | None) -> None:
    """Write what is known of a tuning to the file, if there is one, for another run to continue."""
    from gpudoctor.files import write_whole
    from gpudoctor.reporters import tuning_json

    if path is not None:
        write_whole(path, tuning_json.render(tuning))


def _with_profile(tuning: Tuning, path: Path, assignments: tuple[str, ...]) -> Tuning:
    """Write the profile; not after an interruption, because an older complete one may exist."""
    from gpudoctor.profiles.env_file import write_profile
    from gpudoctor.profiles.from_tuning import profile_of

    if tuning.recommendation is None or tuning.interrupted == SIGNAL:
        return tuning
    write_profile(path, profile_of(tuning, assignments))
    return replace(tuning, profile=str(path))
