"""Run a Python command on a machine with pretended GPUs: `python -m tests.pretended_gpu [options] -- COMMAND ...`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.pretended_gpu import MIB, Gpu, Machine, run


def gpu(text: str) -> Gpu:
    """Return the GPU that "NAME|COMPUTE CAPABILITY|MIB" describes."""
    name, capability, memory_mib = text.split("|")
    major, _, minor = capability.partition(".")
    return Gpu(name=name, capability=(int(major), int(minor)), memory_bytes=int(memory_mib) * MIB)


def main() -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.pretended_gpu", description=__doc__)
    parser.add_argument("--gpu", type=gpu, action="append", metavar="NAME|CAPABILITY|MIB", help="several for several")
    parser.add_argument("--kernel-seconds", type=float, default=0.0, help="of the device's own time for each kernel")
    parser.add_argument("--pageable", type=float, metavar="GB/S", help="rate of copies from pageable memory")
    parser.add_argument("--pinned", type=float, metavar="GB/S", help="rate of copies from pinned memory")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    chosen = parser.parse_args()
    command = chosen.command[1:] if chosen.command[:1] == ["--"] else chosen.command
    machine = Machine(
        gpus=tuple(chosen.gpu or (Gpu(),)),
        kernel_seconds=chosen.kernel_seconds,
        pageable_gb_s=chosen.pageable,
        pinned_gb_s=chosen.pinned,
    )
    with tempfile.TemporaryDirectory() as folder:
        return run(Path(folder), machine, command)


if __name__ == "__main__":
    sys.exit(main())
