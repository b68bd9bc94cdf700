"""Combine the answers of a host into the sections of a snapshot."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from gpudoctor.model import SECTIONS, ProbeReport, Snapshot
from gpudoctor.privacy import mask
from gpudoctor.probes import (
    container_engines,
    containers,
    cupy_build,
    driver,
    driver_files,
    environment,
    nvml,
    profile,
    project,
    python_environment,
    system,
    toolkit,
    torch_build,
)
from gpudoctor.probes.host import Answer, Host
from gpudoctor.probes.questions import questions
from gpudoctor.symptoms.facts import with_symptoms


class Part(NamedTuple):
    """How the answer to one question fills one section. Several parts of a section are merged in their order.

    why_unknown: says why `parse` gave None, if that means that it could not determine it; without it, or if it says
        nothing, that there is none. why_absent: why there may be none.
    """

    section: str
    question: str
    parse: Callable[[Mapping[str, Any]], Any]
    why_unknown: Callable[[Mapping[str, Any]], str] | None = None
    why_absent: str = ""


PASTED = ("contradictions",)
NOT_HERE = "this is for pasted reports only"

PARTS = (
    Part("driver", "cuda-driver", driver.parse_cuda_driver),  # first: what libcuda offers, also with cuda-compat
    Part("driver", "nvml", nvml.parse_nvml_driver),
    Part("driver", "kernel-log", driver.parse_kernel_log),
    Part("devices", "nvml", nvml.parse_devices, nvml.why_unknown),
    Part("system", "system", system.parse_system),
    Part("container", "container", container_engines.parse_container),
    Part("project", "project", project.parse_project),
    Part("profile", "profile", profile.parse_profile),
    Part("python", "python", python_environment.parse_python),
    Part("torch", "python", torch_build.parse_torch),
    Part("cupy", "python", cupy_build.parse_cupy),
    Part("driver", "driver-files", driver_files.parse_driver_files),
    Part("toolkit", "driver-files", toolkit.parse_loader_cache),
    Part("toolkit", "toolkit", toolkit.parse_toolkit),
    Part("images", "images", containers.parse_images, containers.why_unknown, containers.WHY_ABSENT),
    Part("containers", "containers", containers.parse_containers, containers.why_unknown, containers.WHY_ABSENT),
    Part("cupy_runtime", "cupy-runtime", cupy_build.parse_cupy_runtime),
    Part("torch_runtime", "torch-runtime", torch_build.parse_torch_runtime),
)


def take_snapshot(host: Host) -> Snapshot:
    """Return the facts about `host`."""
    return begin_snapshot(host)()


def begin_snapshot(host: Host, sections: Collection[str] = SECTIONS) -> Callable[[], Snapshot]:
    """Start gathering the facts about `host` that fill `sections`. The function returned waits for them."""
    needed = {part.question for part in PARTS if part.section in sections}
    wait = host.ask(question for question in questions(host.setting) if question.name in needed)
    return lambda: assemble(wait(), host)


def assemble(answers: Mapping[str, Answer], host: Host) -> Snapshot:
    """Return the snapshot that the answers give. An answer that cannot be read is a failed probe, not an exception."""
    values: dict[str, list[Any]] = {}
    reports: list[ProbeReport] = []
    for part in PARTS:
        value, report = _read(part, answers.get(part.question))
        reports.append(report)
        if value is not None:
            values.setdefault(part.section, []).append(value)
    sections: dict[str, Any] = {
        section: driver.merge_driver(*found) if section == "driver" else driver.first_known(*found)
        for section, found in values.items()
    }
    reports += [ProbeReport(section=section, state="absent", detail=NOT_HERE) for section in PASTED]
    variables = environment.known_variables(host.setting.environ)
    sections["environment"] = environment.parse_environment(mask(variables, host.setting))
    return with_symptoms(Snapshot(taken_at=host.taken_at, reports=tuple(reports), **sections))


def _read(part: Part, answer: Answer | None) -> tuple[Any, ProbeReport]:
    """Return the part's value, None if there is none, and how it went."""

    def report(state: str, detail: str) -> ProbeReport:
        seconds = round(answer.seconds, 3) if answer else 0.0
        return ProbeReport(section=part.section, state=state, probe=part.question, detail=detail, seconds=seconds)

    if answer is None and part.why_absent:
        return None, report("absent", part.why_absent)
    if answer is None:
        return None, report("not-run", "not asked: --fast, or no selected check needs it")
    if answer.state != "ok":
        return None, report(answer.state, answer.detail)
    try:
        value = part.parse(answer.facts)
    except Exception as error:  # whatever is on the machine, one odd text must not end the run
        return None, report("failed", f"its answer could not be read: {type(error).__name__}: {error}")
    if value is not None:
        return value, report("ok", "")
    reason = part.why_unknown(answer.facts) if part.why_unknown is not None else ""
    return None, report("failed", reason) if reason else report("absent", part.why_absent)
