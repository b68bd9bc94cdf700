"""The program: `gpudoctor`, or `python -m gpudoctor`."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - closed by the caller: nobody reads it
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    from gpudoctor.commands import cli

    cli.main()


if __name__ == "__main__":
    main()
