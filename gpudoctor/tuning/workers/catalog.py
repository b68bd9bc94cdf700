"""The workloads by name: the built-in ones, and the user's own as MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE.

A mistake in what was typed, or an object that does not follow the protocol, is a UsageError of one line. Whatever the
user's code raises while it is imported, built or run goes through as it is, with its traceback.
"""

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module, util
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import COMPLEX_PRECISIONS, PRECISIONS, TunedWorkload
from gpudoctor.tuning.workers.own_inference import for_inference
from gpudoctor.tuning.workers.precision import Precision
from gpudoctor.tuning.workload import Workload, WorkloadFactory

TRAINING, INFERENCE = MODES = ("training", "inference")
SIGNAL = "signal"
"""The one that computes with arrays, in one mode; the others are in torch."""

UNITS = {"mlp": "samples", "cnn": "images", "lstm": "sequences", "transformer": "sequences", SIGNAL: "signals"}
"""The built-in workloads, and what each calls a sample."""


WITH_SEQUENCE = ("lstm", "transformer")
"""Whose samples are sequences of any length."""


def load_factory(name: str, mode: str = TRAINING, parameters: Mapping[str, int] | None = None) -> WorkloadFactory:
    """Return what builds the workload.

    mode: "training" or "inference"; of no meaning for signal. The user's own `step` is what "training" measures.

    parameters: that it is built with: of the built-in ones, lstm and transformer have "sequence".

    Raises:
        UsageError: there is no such workload, mode or parameter.
        ImportError: the library that it is written in cannot be imported.
        Exception: whatever the user's own code raises while it is imported.
    """
    if is_spec(name):
        build = load(name, parameters)
        return build if mode == TRAINING else partial(for_inference, build, name)
    _check_built_in(name, mode)
    _check_parameters(name, parameters or {})
    if name == SIGNAL:
        from gpudoctor.tuning.workers.spectra import Spectra

        return Spectra
    from gpudoctor.tuning.workers.networks import Inference, Training

    return partial(Training if mode == TRAINING else Inference, name, sequence=(parameters or {}).get("sequence"))


def describe(name: str, mode: str = TRAINING, parameters: Mapping[str, int] | None = None) -> TunedWorkload:
    """Return the workload as it is reported. Imports nothing: of the user's own the name alone is known.

    Raises:
        UsageError: there is no such workload, mode or parameter, or the name of the user's own is not complete.
    """
    given = ", ".join(f"{key}={value}" for key, value in (parameters or {}).items())
    if is_spec(name):
        split(name)
        return TunedWorkload(name=name, mode=INFERENCE if mode == INFERENCE else "", parameters=given)
    _check_built_in(name, mode)
    _check_parameters(name, parameters or {})
    return TunedWorkload(name=name, mode="" if name == SIGNAL else mode, parameters=given, unit=f"{UNITS[name]}/s")


def precisions(name: str) -> tuple[str, ...]:
    """Return the precisions to try; those of torch for the user's own, unless he names others."""
    if not is_spec(name):
        _check_built_in(name, TRAINING)
    return COMPLEX_PRECISIONS if name == SIGNAL else PRECISIONS


def _check_built_in(name: str, mode: str) -> None:
    """Raise UsageError unless there is such a workload and mode."""
    if name not in UNITS:
        near = get_close_matches(name.lower(), UNITS, n=1)
        hint = f"did you mean {near[0]}? Choose" if near else "choose"
        own = f"your own as {FORMS}"
        raise UsageError(f"no workload is called {name!r}: {hint} {', '.join(UNITS)}, or {own}")
    if mode not in MODES:
        raise UsageError(f"no mode is called {mode!r}: there are {' and '.join(MODES)}")


def _check_parameters(name: str, parameters: Mapping[str, int]) -> None:
    """Raise UsageError unless the built-in workload has such parameters."""
    for key in parameters:
        if name not in WITH_SEQUENCE or key != "sequence":
            have = " and ".join(WITH_SEQUENCE)
            raise UsageError(
                f"the workload {name} has no parameter {key}: {have} have sequence; or use your own workload"
            )


FORMS = "MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE"
METHODS = {"make_batch": "(size)", "step": "(batch)"}
"""What a workload must have, and what each is called with."""

SHOWN = 8
"""Names that a message lists at most."""


def load(spec: str, parameters: Mapping[str, int] | None = None) -> WorkloadFactory:
    """Return the factory that `spec` names, called with the parameters; it checks the workload that it returns.

    Raises:
        UsageError: the spec is wrong, or names something that is not there or cannot be called so.
        Exception: whatever the user's code raises while it is imported.
    """
    place, attribute = split(spec)
    module = _import_file(Path(place)) if _is_file(place) else _import_module(place)
    factory = _attribute(module, attribute, place)
    if not callable(factory):
        ready = all(hasattr(factory, method) for method in METHODS)
        instead = "its class, or a function that returns it" if ready else "a class or a function"
        raise UsageError(f"{spec} cannot be called: it is {_described(factory)}; give {instead}")
    given = dict(parameters or {})
    names = "".join(f", {name}={value}" for name, value in given.items())
    _check_call(factory, spec, 2, f"(device, precision{names})", given)

    def build(device: str, precision: Precision) -> Workload:
        workload: Workload = factory(device, precision, **given)
        for method, arguments in METHODS.items():
            function = getattr(workload, method, None)
            if not callable(function):
                raise UsageError(f"{spec} returned {_described(workload)} without a method {method}{arguments}")
            _check_call(function, f"{method} of {spec}", 1, arguments)
        return workload

    return build


def is_spec(name: str) -> bool:
    """Return whether `name` can only mean the user's own code, right or wrong."""
    return ":" in name or _is_file(name)


def split(spec: str) -> tuple[str, str]:
    """Return module or file, and the attribute. The colon of a Windows drive belongs to the file.

    Raises:
        UsageError: one of them is missing.
    """
    place, _, attribute = spec.rpartition(":")
    if place and attribute.isidentifier():
        return place, attribute
    if spec.endswith(".py"):
        raise UsageError(f"{spec} names no workload in the file: write {spec}:ATTRIBUTE")
    raise UsageError(f"{spec!r} is not a workload: write {FORMS}")


def _is_file(place: str) -> bool:
    return place.endswith(".py") or "/" in place or "\\" in place


def _import_file(path: Path) -> ModuleType:
    """Return the file as a module, imported as `python FILE.py` would, less what runs as "__main__" only."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}" if not path.is_dir() else f"{path} is a folder, not a Python file")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} cannot be read")
    path = path.resolve()
    _put_on_path(path.parent)
    # Under its own name the processes of a DataLoader find it again, unless something else has that name.
    name = path.stem if path.stem not in sys.modules else f"workload_{path.stem}"
    spec = util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file: its name must end in .py")
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    _run(lambda: spec.loader.exec_module(module), str(path))  # type: ignore[union-attr]
    return module


def _import_module(name: str) -> ModuleType:
    """Return the module, found as `python -m` would: from the working directory on."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{name!r} is not the name of a module: write {FORMS}")
    _put_on_path(Path.cwd())
    try:
        _run(lambda: import_module(name), name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # something that the user's code imports
        hint = f": for the file write {name}.py:ATTRIBUTE" if Path(f"{name}.py").is_file() else ""
        raise UsageError(f"there is no module {name} for {sys.executable} in {Path.cwd()}{hint}") from None
    return sys.modules[name]


def _put_on_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _run(execute: Callable[[], object], place: str) -> None:
    """Import the user's code. Its exceptions are raised again without the frames of the import system."""
    try:
        execute()
    except SystemExit as error:
        advice = 'put the code that it runs under `if __name__ == "__main__":`'
        raise UsageError(f"{place} ended the program when it was imported (exit {error.code!r}): {advice}") from None
    except Exception as error:
        raise error.with_traceback(_users_frames(error.__traceback__))  # noqa: B904  the same error


def _users_frames(frames: TracebackType | None) -> TracebackType | None:
    """Return the frames from the user's first on; None if there is none, as for an error of syntax."""
    own = (__file__, import_module.__code__.co_filename)
    while frames is not None:
        name = frames.tb_frame.f_code.co_filename
        if name not in own and not name.startswith("<frozen importlib"):
            return frames
        frames = frames.tb_next
    return None


def _attribute(module: ModuleType, name: str, place: str) -> Any:
    """Return the attribute; a UsageError names the nearest, or those that look like workloads."""
    if name in vars(module):
        return vars(module)[name]
    public = [key for key in vars(module) if not key.startswith("_")]
    names = get_close_matches(name, public, n=1) or [key for key in public if _looks_right(vars(module)[key])][:SHOWN]
    hint = f": did you mean {' or '.join(names)}?" if names else ""
    raise UsageError(f"{place} has no {name}{hint}")


def _looks_right(value: Any) -> bool:
    """Return whether this is a class with the methods, or a function of a device and a precision."""
    if inspect.isclass(value):
        return all(callable(getattr(value, method, None)) for method in METHODS)
    return inspect.isfunction(value) and list(inspect.signature(value).parameters)[:2] == ["device", "precision"]


def _check_call(function: Any, what: str, count: int, arguments: str, named: Mapping[str, int] | None = None) -> None:
    """Raise UsageError unless `count` positional arguments fit; what has no signature to read passes."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return
    try:
        signature.bind(*(None for _ in range(count)), **(named or {}))
    except TypeError:
        names = ", ".join(signature.parameters)
        raise UsageError(f"{what} is called with {arguments}, but accepts ({names})") from None


def _described(value: Any) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"
