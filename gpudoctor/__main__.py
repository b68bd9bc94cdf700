"""The program: `gpudoctor`, or `python -m gpudoctor`."""

import atexit
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as the supervisor to start
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from gpudoctor.probes.isolate import Supervisor


def main() -> "NoReturn":
    """Run the command line."""
    gc.disable()  # a run lasts a moment, and collections take a twentieth of it
    atexit.register(gc.freeze)  # what is frozen is left out of the last collection, which would take as much
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - closed by the caller: nobody reads it
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    supervisor = _begin_probing() if _is_of_this_machine(sys.argv[1:], os.environ) else None
    from gpudoctor.commands import cli

    try:
        cli.main(supervisor)
    except SystemExit as end:
        if supervisor is None or not isinstance(end.code, int):
            raise
        sys.stderr.flush()
        os._exit(end.code)  # taking the modules apart would be another twentieth


def _is_of_this_machine(arguments: "Sequence[str]", environ: "Mapping[str, str]") -> bool:
    """Tell whether this is a check of this machine: of no report, no question for help, and no completion of words."""
    others = any(argument.startswith("--from") or argument in ("--help", "-h") for argument in arguments)
    return arguments[:1] == ["check"] and not others and "_GPUDOCTOR_COMPLETE" not in environ


def _begin_probing() -> "Supervisor | None":
    """Ask this machine what most checks ask, before the command line is even imported: both take as long."""
    from gpudoctor.probes.isolate import ForkedSupervisor

    try:
        supervisor = ForkedSupervisor(os.environ, os.getcwd())
    except OSError:  # a working directory that is gone: the command line tells
        return None
    from gpudoctor.probes.asked_first import first_questions
    from gpudoctor.probes.host import setting

    usual = setting(None, 30.0, fast=True)
    supervisor.prepare(first_questions(usual), usual)
    return supervisor


if __name__ == "__main__":
    main()
