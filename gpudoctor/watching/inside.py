"""gpudoctor's side of the inside view: it lends the program a folder, and reads what its processes left there."""

import json
import os
import shutil
import sys
import tempfile
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from gpudoctor.model import Loader, Steps, TorchMemory

fcntl: types.ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

HOOK = Path(__file__).parent / "hook"
PREFIX, LOCK = "gpudoctor-run-", "lock"

_ENTRY = """# Written by gpudoctor run: it lets the user's own sitecustomize run, then looks on from inside.
import os, sys
_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != _here]
if sys.version_info >= (3, 8):
    import importlib.machinery, importlib.util
    try:
        _spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
        if _spec is not None and _spec.loader is not None:
            sys.modules["sitecustomize"] = importlib.util.module_from_spec(_spec)
            _spec.loader.exec_module(sys.modules["sitecustomize"])
    finally:
        try:
            _spec = importlib.util.spec_from_file_location(
                "_gpudoctor_hook", {init!r}, submodule_search_locations=[{hook!r}]
            )
            sys.modules["_gpudoctor_hook"] = importlib.util.module_from_spec(_spec)
            _spec.loader.exec_module(sys.modules["_gpudoctor_hook"])
            sys.modules["_gpudoctor_hook"].start({folder!r})
        except Exception:
            pass
"""


class Inside:
    """The inside view of a program: give it `variables`, then `read` when it has ended, and `remove` the folder."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        remove_abandoned(Path(tempfile.gettempdir()))
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _locked(self._folder)
        (self._folder / "seen").mkdir()
        (self._folder / "path").mkdir()
        folders = {"folder": str(self._folder / "seen"), "hook": str(HOOK), "init": str(HOOK / "__init__.py")}
        (self._folder / "path" / "sitecustomize.py").write_text(_ENTRY.format(**folders), encoding="utf-8")
        others = environment.get("PYTHONPATH")
        self.variables = {"PYTHONPATH": os.pathsep.join(filter(None, (str(self._folder / "path"), others)))}

    def read(self) -> list[dict[str, Any]]:
        """Return what each process left, the one that trained for the longest time first."""
        found = []
        for path in (self._folder / "seen").glob("*.json"):
            with suppress(OSError, ValueError):  # removed by somebody, or a full disk
                found.append(json.loads(path.read_text(encoding="utf-8")))
        return sorted(found, key=lambda seen: (-seen["step_ns"], seen["ranks"].get("RANK", 0), seen["pid"]))

    def remove(self) -> None:
        """Remove the folder. A process that goes on without us writes nothing from then on."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked(folder: Path) -> int | None:
    """Lock the folder while this process lives; return the file descriptor, or None on a system without locks."""
    if fcntl is None:
        return None
    lock = os.open(folder / "lock.new", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "lock.new").rename(folder / LOCK)  # nobody sees it unlocked
    return lock


def remove_abandoned(parent: Path) -> None:
    """Remove the folders of runs that were killed: ours by owner, and no longer locked. Their programs go on unseen."""
    if fcntl is None:
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def why_missing(processes: list[dict[str, Any]]) -> str:
    """Return why the steps are unknown."""
    if not processes:
        return "no Python process loaded the hook: either the program does not use Python, or it runs with -I, -E or -S"
    problems = [seen["problem"] for seen in processes if seen["problem"]]
    if problems:
        return f"PyTorch could not be watched: {problems[0]}"
    if not any("torch" in seen for seen in processes):
        return "no process imported PyTorch"
    return "no optimizer step and no DataLoader was seen"


def steps_of(seen: dict[str, Any]) -> Steps | None:
    """Return the steps of a process; None if it took none."""
    counted, total = seen["counted"], seen["step_ns"]
    if not counted or not total:
        return None
    each = {name: number / counted for name, number in seen["counts"].items()}
    shares = {f"{part}_share": spent / total for part, spent in seen["parts"].items()}
    parameters, compiled = seen.get("parameters", {}), seen.get("compiled", {})
    places = {kind: _place(seen, kind) for kind in ("loader", "copies", "synchronising", "cloning")}
    return Steps(
        kind=seen["kind"],
        counted=counted,
        step_ms=total / counted / 1e6,
        median_ms=median(entry[1] for entry in seen["series"]) if seen["series"] else total / counted / 1e6,
        **shares,
        copies=each.get("copies", 0.0),
        copy_bytes=each.get("copy_bytes", 0.0),
        pageable_bytes=each.get("pageable_bytes", 0.0),
        background_bytes=each.get("background_bytes", 0.0),
        synchronisations=each.get("synchronising", 0.0),
        clones=each.get("cloning", 0.0),
        clone_bytes=each.get("cloning_bytes", 0.0),
        autocasts=each.get("autocasts", 0.0),
        loader_place=places["loader"][0],
        copies_place=places["copies"][0],
        synchronising_place=places["synchronising"][0],
        synchronising_call=places["synchronising"][1],
        synchronising_package=places["synchronising"][2],
        cloning_place=places["cloning"][0],
        operators_place=_shown(seen, *seen.get("operators_at", ("", 0))),
        products_place=_shown(seen, *seen.get("products_at", ("", 0))),
        compiling_place=_shown(seen, *seen.get("compiling_at", ("", 0))),
        loader=_loader(seen),
        source_bytes=seen.get("source_bytes"),
        operations=seen.get("operations"),
        small_operations=seen.get("small_operations"),
        operators=seen.get("operators"),
        kernels=seen.get("kernels"),
        gpu_busy_ms=seen.get("gpu_busy_ms"),
        cuda_graphs=seen.get("cuda_graphs", False),
        shapes=seen["shapes"],
        parameter_bytes=parameters.get("bytes"),
        large_elements=parameters.get("large_elements"),
        precisions=tuple(parameters.get("precisions", ())),
        parameter_devices=tuple(parameters.get("devices", ())),
        autocast=seen.get("autocast"),
        tf32=seen.get("tf32"),
        graphs=max((compiled.get("graphs") or 0) - (compiled.get("graphs_at_begin") or 0), 0),
        is_compiled=bool(compiled.get("graphs")),
        compile_seconds=max(compiled.get("seconds", 0.0) - compiled.get("seconds_at_begin", 0.0), 0.0),
        sent_to_gpu=seen.get("sent_to_gpu", False),
        is_stand_in=seen["stand_in"],
        series_ms=tuple(entry[1] for entry in seen["series"]),
    )


def _loader(seen: dict[str, Any]) -> Loader | None:
    found = seen.get("loader")
    if found is None:
        return None
    own = {name: found[name] for name in ("workers", "pin_memory", "batch_size", "dataset", "dataset_length", "epochs")}
    return Loader(**own, is_iterable=found.get("is_iterable", False), made=_shown(seen, *found["made"]))


def _place(seen: dict[str, Any], kind: str) -> tuple[str, str, str]:
    """Return the line that does something most often, by which call, and in which package; all "" for no line."""
    found = [(count, call, file, line) for call, file, line, count, _ in seen["places"] if call.split()[0] == kind]
    lines: dict[tuple[str, int], int] = {}
    for count, _, file, line in found:
        lines[file, line] = lines.get((file, line), 0) + count
    if not lines:
        return "", "", ""
    best = max(lines, key=lambda place: lines[place])
    call = max((count, call) for count, call, *place in found if tuple(place) == best)[1]
    _, name, package = f"{call}  ".split(" ", 2)
    return _shown(seen, *best), name, package.strip()


def _shown(seen: dict[str, Any], file: str, line: int) -> str:
    """Return "train.py:42", the file as the user knows it, from the folder that the program runs in; or the cell."""
    if not file:
        return ""
    if file in seen.get("cells", ()):
        return f"cell {seen['cells'][file]}, line {line}"
    inside = os.path.relpath(file, seen["folder"]) if os.path.isabs(file) else file
    return f"{file if inside.startswith(os.pardir) else inside}:{line}"


def memory_of(seen: dict[str, Any]) -> TorchMemory | None:
    """Return PyTorch's memory on the GPU that the process uses most; None if it started none."""
    gpus = seen.get("gpus")
    if not gpus:
        return None
    gpu = max(gpus, key=lambda gpu: gpu.get("allocated_peak") or 0)
    return TorchMemory(
        total_bytes=gpu["total"],
        capability=tuple(gpu["capability"]),
        allocated_peak_bytes=gpu.get("allocated_peak") or None,
        reserved_bytes=gpu.get("reserved"),
        split_bytes=gpu.get("split"),
        retries=gpu.get("retries") or 0,
        out_of_memory=gpu.get("out_of_memory") or 0,
    )


def processes_of(seen: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield, for the report, each process that took steps: program, id, rank, steps."""
    for each in seen:
        if each["steps"]:
            name = os.path.basename(each["program"]) or os.path.basename(sys.executable)
            yield {"pid": each["pid"], "program": name, "steps": each["steps"], **each["ranks"]}
