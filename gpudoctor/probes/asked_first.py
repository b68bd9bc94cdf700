"""What most checks ask of this machine, whatever their options are: a module of its own, to be asked at once."""

from __future__ import annotations

from gpudoctor.probes import (
    container_engines,
    cuda_driver,
    driver_files,
    kernel_log,
    nvml,
    profile,
    project,
    python_environment,
    system,
    toolkit,
)
from gpudoctor.probes.host import Question, Setting

ASKED_FIRST = (
    driver_files,
    toolkit,
    nvml,
    cuda_driver,
    kernel_log,
    python_environment,
    system,
    container_engines,
    project,
    profile,
)
"""Their questions depend on the environment variables, and hardly on options. What takes longest comes first."""


def first_questions(setting: Setting) -> tuple[Question, ...]:
    """Return the questions."""
    return tuple(probe.question(setting) for probe in ASKED_FIRST)
