"""The program: `gpudoctor`, or `python -m gpudoctor`."""

import atexit
import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line."""
    gc.set_threshold(1_000_000)  # to look for garbage among modules takes a tenth of a quick check's instructions
    atexit.register(gc.disable)  # the process that ends frees it all
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - closed by the caller: nobody reads it
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    from gpudoctor.commands import cli

    cli.main()


if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False) and not __file__.startswith(os.path.join(sys.path[0], "")):
        del sys.path[0]  # the working directory: with `python -m` its queue.py would be imported, not the library's
    main()
