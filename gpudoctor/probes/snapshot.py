"""Ask a host everything at the same time, and put the sections together."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from gpudoctor.model import SECTIONS, ProbeReport, Snapshot
from gpudoctor.privacy import mask
from gpudoctor.probes import (
    container_engines,
    containers,
    cupy_build,
    driver,
    driver_files,
    nvml,
    profile,
    project,
    python_environment,
    runtimes,
    system,
    toolkit,
    torch_build,
)
from gpudoctor.probes.host import DRIVER, READING, Answer, Host, ProbeContext, Question


class Part(NamedTuple):
    """How the answer to one question fills one section. Several parts of a section are merged in their order.

    why_unknown: says why `parse` gave None, where that means that it could not tell; without it, or where it says
        nothing, that there is none. why_absent: why there may be none.
    """

    section: str
    question: str
    parse: Callable[[Mapping[str, Any]], Any]
    why_unknown: Callable[[Mapping[str, Any]], str] | None = None
    why_absent: str = ""


PASTED = ("contradictions",)
NOT_HERE = "only a pasted report has it"
IMPORTING = {"torch-runtime", "cupy-runtime"}

PARTS = (
    Part("driver", "cuda-driver", driver.parse_cuda_driver),  # first: what libcuda offers, with cuda-compat too
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
    Part("cupy_runtime", "cupy-runtime", runtimes.parse_cupy_runtime),
    Part("torch_runtime", "torch-runtime", runtimes.parse_torch_runtime),
)


def take_snapshot(host: Host) -> Snapshot:
    """Return the facts about `host`."""
    return begin_snapshot(host)()


def begin_snapshot(host: Host, sections: Collection[str] = SECTIONS) -> Callable[[], Snapshot]:
    """Start gathering the facts about `host` that fill `sections`. The function returned waits for them.

    Raises:
        OSError: the interpreter of the setting cannot be started.
    """
    wait = host.ask(questions(host.setting, sections))
    return lambda: assemble(wait(), host)


def assemble(answers: Mapping[str, Answer], host: Host) -> Snapshot:
    """Return the snapshot that the answers give. An answer that cannot be read is a failed probe, no exception."""
    from gpudoctor.probes import environment  # their tables are not needed to ask
    from gpudoctor.symptoms.facts import with_symptoms

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


def questions(setting: ProbeContext, sections: Collection[str] = SECTIONS) -> tuple[Question, ...]:
    """Return what to ask in this setting to fill `sections`."""
    needed = {part.question for part in PARTS if part.section in sections}
    if setting.fast:
        needed -= IMPORTING
    return tuple(question for question in _all_questions(setting) if question.name in needed)


def _all_questions(setting: ProbeContext) -> Iterator[Question]:
    """Yield the questions, what takes longest first. Those that share a process are answered in this order."""
    directory, own = os.fspath(setting.directory), setting.interpreter is None
    yield Question(name="torch-runtime", worker="torch_runtime", in_environment=True)
    yield Question(name="cupy-runtime", worker="cupy_runtime", in_environment=True)
    request = containers.request(setting)
    if request is not None:
        yield Question(name="images", worker="docker_images", arguments=request)
        yield Question(name="containers", worker="container_facts", arguments=request)
    yield Question(name="kernel-log", worker="read_kernel_log", shares=DRIVER)
    yield _to_read("driver-files", driver_files.READING_LIST, DRIVER)
    # pynvml is a requirement of gpudoctor's own, so its interpreter answers
    nvml_arguments = nvml.arguments(setting.timeout_seconds)
    yield Question(name="nvml", worker="nvml_devices", arguments=nvml_arguments, shares=DRIVER)
    yield _to_read("system", system.READING_LIST)
    yield _to_read("container", container_engines.reading_list(setting.home))
    yield _to_read("toolkit", toolkit.reading_list(setting.environ))
    yield _to_read("project", project.reading_list(directory))
    yield _to_read("profile", profile.reading_list(directory, setting.profile))
    # late, as its folder may be on a file server that is gone
    told = python_environment.arguments(setting)
    shares = READING if own else ""
    yield Question(name="python", worker="python_environment", arguments=told, in_environment=not own, shares=shares)
    # Last, as it may hang or crash, and not beside NVML: neither takes the other's answer with it. libcuda is the same
    # for every interpreter that this environment starts.
    yield Question(name="cuda-driver", worker="cuda_driver", shares=READING)


def _to_read(name: str, reading_list: Mapping[str, Any], shares: str = READING) -> Question:
    return Question(name=name, worker="read_host", arguments=reading_list, shares=shares)


def _read(part: Part, answer: Answer | None) -> tuple[Any, ProbeReport]:
    """Return the part's value, None where there is none, and how it went."""

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
