"""The program: `gpudoctor`, or `python -m gpudoctor`."""

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line.

    For a check, the process that will run the workers is started first: it takes as long to start as the command line
    takes to import.
    """
    gc.disable()  # a run lasts a moment, and collections take a twentieth of it
    supervisor = None
    if sys.argv[1:2] == ["check"]:
        from gpudoctor.probes.isolate import Supervisor

        supervisor = Supervisor(os.environ, os.getcwd())
    from gpudoctor import cli

    cli.main(supervisor)


if __name__ == "__main__":
    main()
