"""The workloads by name: the built-in ones, and the user's own as MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE."""

from difflib import get_close_matches
from functools import partial

from gpudoctor.errors import UsageError
from gpudoctor.model.tuning import COMPLEX_PRECISIONS, PRECISIONS, TunedWorkload
from gpudoctor.tuning.workers import user_code
from gpudoctor.tuning.workload import WorkloadFactory

TRAINING, INFERENCE = MODES = ("training", "inference")
SIGNAL = "signal"
"""The one that computes with arrays, in one mode; the others are in torch."""

UNITS = {"mlp": "samples", "cnn": "images", "lstm": "sequences", "transformer": "sequences", SIGNAL: "signals"}
"""The built-in workloads, and what each calls a sample."""


def load_factory(name: str, mode: str = TRAINING) -> WorkloadFactory:
    """Return what builds the workload.

    mode: "training" or "inference"; of no meaning for signal and for the user's own.

    Raises:
        UsageError: there is no such workload or mode.
        ImportError: the library that it is written in cannot be imported.
        Exception: whatever the user's own code raises while it is imported.
    """
    if user_code.is_spec(name):
        return user_code.load(name)
    _check_built_in(name, mode)
    if name == SIGNAL:
        from gpudoctor.tuning.workers.spectra import Spectra

        return Spectra
    from gpudoctor.tuning.workers.networks import TASKS, Inference, Training

    return partial(Training if mode == TRAINING else Inference, TASKS[name])


def describe(name: str, mode: str = TRAINING) -> TunedWorkload:
    """Return the workload as it is reported. Imports nothing: of the user's own the name alone is known.

    Raises:
        UsageError: there is no such workload or mode, or the name of the user's own is not complete.
    """
    if user_code.is_spec(name):
        user_code.split(name)
        return TunedWorkload(name=name)
    _check_built_in(name, mode)
    return TunedWorkload(name=name, mode="" if name == SIGNAL else mode, unit=f"{UNITS[name]}/s")


def precisions(name: str) -> tuple[str, ...]:
    """Return the precisions to try; those of torch for the user's own, unless he names others."""
    if not user_code.is_spec(name):
        _check_built_in(name, TRAINING)
    return COMPLEX_PRECISIONS if name == SIGNAL else PRECISIONS


def _check_built_in(name: str, mode: str) -> None:
    """Raise UsageError unless there is such a workload and mode."""
    if name not in UNITS:
        near = get_close_matches(name.lower(), UNITS, n=1)
        hint = f"did you mean {near[0]}? There are" if near else "there are"
        own = f"your own as {user_code.FORMS}"
        raise UsageError(f"no workload is called {name!r}: {hint} {', '.join(UNITS)}, and {own}")
    if mode not in MODES:
        raise UsageError(f"no mode is called {mode!r}: there are {' and '.join(MODES)}")
