"""What the answer of a tuning worker says: a value as a record, a failure as an exception, a death as an outcome."""

import signal
from typing import Any, TypeVar

from gpudoctor.errors import GpudoctorError, WorkloadError
from gpudoctor.model.codec import from_json
from gpudoctor.model.tuning import OUT_OF_MEMORY, UNSUPPORTED
from gpudoctor.privacy import mask_document, mask_secrets
from gpudoctor.processes import WorkerEnded
from gpudoctor.tuning.workers.failures import is_out_of_memory
from gpudoctor.untrusted import clean, cleaned

FAILED = "the workload failed: "


class Poisoned(WorkloadError):
    """The user's own code failed, and its process cannot use the device any longer."""


class Refused(Exception):
    """A request failed for a reason that is a result: out of memory, or not supported. status, detail: of the trial."""

    def __init__(self, status: str, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(detail)


T = TypeVar("T")


def meaning_of(ended: WorkerEnded) -> tuple[str, str]:
    """Return status and detail of a trial whose process ended.

    Raises:
        WorkloadError: it ended by itself, which only the user's code does.
    """
    if ended.status == -getattr(signal, "SIGKILL", 9):
        return OUT_OF_MEMORY, f"{ended}, probably because the machine ran out of memory"
    if is_out_of_memory((), ended.stderr_tail):
        return OUT_OF_MEMORY, f"{ended}: {last_line(ended.stderr_tail)}"
    if ended.status < 0:  # faulthandler says where: 'File "train.py", line 9 in step'
        frames = (line.strip() for line in ended.stderr_tail.splitlines() if line.startswith('  File "'))
        return UNSUPPORTED, f"{ended}: {cleaned(next(frames, '')) or last_line(ended.stderr_tail)}"
    raise WorkloadError(f"the workload failed: its process {ended}", _clean_lines(mask_secrets(ended.stderr_tail)))


def last_line(text: str) -> str:
    lines = text.splitlines()
    return str(cleaned(lines[-1])) if lines else "it gave no reason"


def read(kind: type[T], data: Any) -> T:
    """Return the record that a worker sent, its texts clean. Raises GpudoctorError: it is not such a thing."""
    try:
        return from_json(kind, _clean_texts(mask_document(data)), "answer of the worker")
    except ValueError as error:
        raise GpudoctorError(str(error)) from None


def _clean_texts(value: Any) -> Any:
    """Return `value` (as JSON gives it) with its texts free of control characters; tracebacks keep their lines."""
    if isinstance(value, str):
        return _clean_lines(value) if "\n" in value else cleaned(value)
    if isinstance(value, list):
        return [_clean_texts(item) for item in value]
    if isinstance(value, dict):
        return {name: _clean_texts(item) for name, item in value.items()}
    return value


def _clean_lines(text: str) -> str:
    return "\n".join(clean(line, None) for line in text.splitlines())
