"""What a check is, and how a module registers one."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from gpudoctor.model import (
    CONCLUSIONS,
    FEWEST_STEPS,
    SECTIONS,
    Device,
    Finding,
    Run,
    Steps,
    TorchDevice,
    TorchDevices,
)
from gpudoctor.model.record import record

T = TypeVar("T")
CheckFunction = Callable[..., Iterator[Finding]]
registered: dict[str, "Check"] = {}
"""Every check by its id."""


_NAMES = {*SECTIONS, *CONCLUSIONS, "reports", "taken_at", "snapshot", "requirements"}
"""What parameters of checks may be called."""

FAMILIES = (
    *("driver", "device", "multi-gpu", "container", "cuda", "python", "torch", "cupy", "memory"),
    *("precision", "vendor", "tool", "run"),
)
OF_RUNS = "run"
"""The section, and the family of checks on it, that only `gpudoctor run` and `watch` know."""

CUDA_FAILS = (
    *("torch-cuda-unavailable", "cupy-unusable", "cuda-init-unknown-error-999", "cuda-no-device", "runs-on-cpu"),
)
"""What is found where programs cannot start CUDA: explained by whatever keeps them from the GPU."""

DRIVER_FAILS = ("driver-missing", "driver-not-loaded", "driver-too-old")
"""What is found if no driver answers: explained by whatever the driver is not needed for, or cannot reach."""


@record
class Check:
    """A registered check.

    sections: snapshot sections that it reads; an unknown one skips it.
    optional: sections that it reads if they are known: its parameters with a default.
    explains: ids of checks whose findings follow from this one's; they disappear when this one is fixed.
    origin: whose check it is: "gpudoctor", or a plugin.
    broken: why it cannot be run: it replaces a plugin that cannot be loaded.
    """

    id: str
    family: str
    sections: tuple[str, ...]
    optional: tuple[str, ...]
    explains: tuple[str, ...]
    function: CheckFunction
    origin: str = "gpudoctor"
    broken: str = ""

    @property
    def title(self) -> str:
        """The first line of the docstring: the problem in one sentence."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def page(self) -> str:
        """The whole docstring: what it finds, why it matters, what passes on purpose, the source."""
        return inspect.getdoc(self.function) or ""


class Skip(Exception):
    """A check cannot answer; the message says why."""


class NotApplicable(Skip):
    """A check need not answer: its question does not arise on this machine."""


def check(*, family: str, explains: tuple[str, ...] = ()) -> Callable[[CheckFunction], CheckFunction]:
    """Register a check. Its id is its function's name, its sections are the names of its parameters.

    A parameter may also be `reports` (how the probes went), `taken_at` (when), `snapshot` (all of it) or
    `requirements` (what the user asks of the machine).

    Raises:
        ValueError: a parameter is not a section, the family is unknown, or the id is taken by another module.
    """

    def register(function: CheckFunction) -> CheckFunction:
        check_id = function.__name__.replace("_", "-")
        code = function.__code__
        parameters = code.co_varnames[: code.co_argcount]
        unknown = [name for name in parameters if name not in _NAMES]
        if unknown or family not in FAMILIES:
            raise ValueError(f"check {check_id}: no such section or family: {', '.join(unknown) or family}")
        taken = registered.get(check_id)
        if taken is not None and taken.function.__module__ != function.__module__:
            raise ValueError(f"check {check_id} is in {taken.function.__module__} and in {function.__module__}")
        needed = len(parameters) - len(function.__defaults__ or ())
        registered[check_id] = Check(
            id=check_id,
            family=family,
            sections=parameters[:needed],
            optional=parameters[needed:],
            explains=explains,
            function=function,
            origin=origin_of(function.__module__),
        )
        return function

    return register


def origin_of(module: str) -> str:
    """Return whose check a module registers."""
    return "gpudoctor" if module.startswith("gpudoctor.checks.") else f"the plugin {module}"


def known(value: T | None, fact: str) -> T:
    """Return `value`, or skip the check because `fact` is unknown. Raises Skip: the value is None."""
    if value is None:
        raise Skip(f"{fact} is unknown")
    return value


def skip_unless(condition: Any, reason: str) -> None:
    """Skip the check for `reason` unless `condition` is true: the check does not apply to this machine.

    Raises:
        NotApplicable: the condition is false.
    """
    if not condition:
        raise NotApplicable(reason)


def usable_devices(torch_devices: TorchDevices) -> tuple[TorchDevice, ...]:
    """Return the NVIDIA devices on which PyTorch computes, at least one, or skip the check with the reason.

    Raises:
        Skip: there is none, or that is unknown.
    """
    if torch_devices.unknown:
        raise Skip(f"{torch_devices.unknown} is unknown")
    skip_unless(torch_devices.usable, torch_devices.reason)
    return torch_devices.usable


def counted_steps(run: Run) -> Steps:
    """Return the steps that the program took, or skip the check with the reason.

    Raises:
        Skip: they are unknown, or too few to claim anything.
    """
    if run.steps is None:
        raise Skip(f"the steps are unknown: {run.inside}")
    skip_unless(
        run.steps.counted >= FEWEST_STEPS, f"the program took only {run.steps.counted} steps after the first ones"
    )
    return run.steps


def reachable(devices: Sequence[Device]) -> list[tuple[str, Device]]:
    """Return each device that answers, with the dotted path of its facts: "devices[0]". Raises Skip: there is none."""
    skip_unless(devices, "there is no NVIDIA device")
    answering = [(f"devices[{number}]", device) for number, device in enumerate(devices) if not device.error]
    skip_unless(answering, "no NVIDIA device answers")
    return answering


def settled(findings: Iterable[Finding], answering: Iterable[tuple[str, Device]], *names: str) -> Iterator[Finding]:
    """Yield the findings. Without findings, each of the facts `names` must be known of every device.

    Raises:
        Skip: no finding, and one of the facts is unknown.
    """
    found = tuple(findings)
    yield from found
    if not found:
        for path, device in answering:
            for name in names:
                known(getattr(device, name), f"{path}.{name}")
