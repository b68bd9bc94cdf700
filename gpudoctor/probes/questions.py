"""What is asked of a machine."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from gpudoctor.probes.host import ProbeContext, Question


def questions(setting: ProbeContext) -> Iterator[Question]:
    """Yield the questions for this setting, the slowest first. A process answers its questions in this order.

    It starts with its first question: the modules that know what else to read are imported meanwhile.
    """
    directory, own = os.fspath(setting.directory), setting.interpreter is None
    if not setting.fast:
        yield Question(name="torch-runtime", worker="torch_runtime", in_environment=True)
        yield Question(name="cupy-runtime", worker="cupy_runtime", in_environment=True)
    yield Question(name="kernel-log", worker="read_kernel_log", shares=True)
    from gpudoctor.probes import system

    yield _to_read("system", system.READING_LIST)
    from gpudoctor.probes import container_engines, containers, driver_files, nvml

    yield _to_read("driver-files", driver_files.READING_LIST)
    # pynvml is a requirement of gpudoctor's own, so its interpreter answers
    nvml_arguments = nvml.arguments(setting.timeout_seconds)
    yield Question(name="nvml", worker="nvml_devices", arguments=nvml_arguments, shares=True)
    request = containers.request(setting)
    if request is not None:
        yield Question(name="images", worker="docker_images", arguments=request, time_limits=containers.TIME_LIMITS)
        yield Question(
            name="containers", worker="container_facts", arguments=request, time_limits=containers.TIME_LIMITS
        )
    yield _to_read("container", container_engines.reading_list(setting.home))
    from gpudoctor.probes import profile, project, python_environment, toolkit

    yield _to_read("toolkit", toolkit.reading_list(setting.environ))
    yield _to_read("project", project.reading_list(directory))
    yield _to_read("profile", profile.reading_list(directory, setting.profile))
    # late, because its folder may be on a file server that is gone
    arguments = python_environment.arguments(setting)
    yield Question(name="python", worker="python_environment", arguments=arguments, in_environment=not own, shares=own)
    # Last, because it may hang or crash. libcuda is the same for every interpreter that this environment starts.
    yield Question(name="cuda-driver", worker="cuda_driver", shares=True)


def _to_read(name: str, reading_list: Mapping[str, Any]) -> Question:
    return Question(name=name, worker="read_host", arguments=reading_list, shares=True)
