"""The errors that end a run, and the exit status of each kind."""

EXIT_HEALTHY = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_NO_VERDICT = 3

FAIL_ON = ("error", "warning", "never")
"""The severities from which on findings make the exit status EXIT_FINDINGS."""

GPU_POLICIES = ("auto", "required", "optional")
"""What it means that no GPU can be used on this machine."""


class GpudoctorError(Exception):
    """gpudoctor itself failed."""

    exit_status = EXIT_NO_VERDICT


class UsageError(GpudoctorError):
    """The command line, the configuration or an input is wrong: one line that names what and where.

    command: the end of the line, which is shown whole, because people paste it.
    """

    exit_status = EXIT_USAGE

    def __init__(self, message: str, command: str = "") -> None:
        super().__init__(f"{message}{command}")
        self.command = command


class WorkloadError(GpudoctorError):
    """The user's own code failed while it was measured: one line that names the exception, and its traceback.

    traceback: several lines, free of control characters; empty if the process ended without one.
    """

    exit_status = EXIT_USAGE

    def __init__(self, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback


def one_line(error: Exception) -> str:
    """Return what went wrong, without Python's error number: "project/Dockerfile: No such file or directory"."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
