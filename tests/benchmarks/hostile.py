"""How long the diagnosis of 8 MB of text takes, as a whole process: processor seconds for each kind of text.

python tests/benchmarks/hostile.py [KIND ...]
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.readers import pasted

SIZE = 8_000_000  # bytes
GOAL_SECONDS = 3
WORDS = "the driver of my gpu does not work with torch since an update cuda error memory install docker python is"
REPEATED = {
    "a traceback": 'Traceback (most recent call last):\n  File "/a/x.py", line 12, in f\n    g(*a)\nValueError: no\n',
    "a session": "import torch\nprint(torch.cuda.is_available())\n>>> torch.cuda.is_available()\nFalse\n",
    "import x": "import x\n",
    "nvidia-smi": pasted.NVIDIA_SMI + "\n",
    "every kind of report": "\n".join(pasted.ALL.values()) + "\n",
    "Chinese": "我的显卡驱动没有问题，但是训练的时候显存溢出，程序报错。\n",  # noqa: RUF001
    "one line": "CUDA error: device-side assert triggered torch gpu ",
    "CRLF": "PyTorch version: 2.1.0\r\nIs CUDA available: False\r\n",
    "bars": "|  x  |  y  |\n",
    "lines of 4,000": "gpu " * 1000 + "\n",
    "addresses": "a.b-c@d ",
    "secrets": "token=abcdefg ",
    "commands": "export CUDA_VISIBLE_DEVICES=0 && docker run --gpus all nvidia/cuda:12.2.0-base nvidia-smi\n",
    "conda list": "  pytorch            2.1.0      py3.10_cuda11.8_cudnn8.7.0_0  pytorch\n",
    "empty lines": "\n",
}
NUMBERED = {
    "frames": '  File "/home/u/p{0}/m.py", line {0}, in f{0}\n    y = g{0}(x)\n',
    "pip list": "package-{0}             1.{0}.0\n",
    "kernel log": "[  {0}.123456] NVRM: Xid (PCI:0000:02:00): 79, pid={0}, GPU has fallen off the bus.\n",
    "JSON": '{{"name": "p{0}", "version": "1.{0}"}},\n',
}
SNAPSHOTS = {  # of one record with a secret each
    "keys in a snapshot": '{{"token": "abc{0}"}},\n',
    "addresses in a snapshot": '{{"name": "a{0}@example.com"}},\n',
    "variables in a snapshot": '{{"TOKEN_{0}": "abc"}},\n',
}


def recorded() -> str:
    """Return every recorded report."""
    lines = Path(__file__).parents[1].joinpath("recorded_reports.jsonl").read_text(encoding="utf-8").splitlines()
    return "\n".join(text for line in lines for _, text in json.loads(line)["texts"]) + "\n"


def texts() -> Iterator[tuple[str, bytes]]:
    """Yield each kind of text."""
    chance, words = random.Random(1), WORDS.split()
    for kind, text in {**REPEATED, "recorded reports": recorded()}.items():
        yield kind, (text.encode() * (SIZE // len(text.encode()) + 1))[:SIZE]
    for kind, line in NUMBERED.items():
        yield kind, "".join(line.format(number) for number in range(SIZE // len(line))).encode()[:SIZE]
    for kind, line in SNAPSHOTS.items():
        records = "".join(line.format(number) for number in range((SIZE - 100) // (len(line) + 2)))
        yield kind, f'{{"schema": "gpudoctor/snapshot/1", "x": [{records} 0]}}'.encode()
    yield "words", " ".join(chance.choice((*words, *words, "\n")) for _ in range(SIZE // 5)).encode()[:SIZE]
    yield "letters", "".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789 ./-\n", k=SIZE)).encode()
    signs = (chr(chance.randrange(0x4E00, 0x9FFF)) if chance.random() > 0.03 else "\n" for _ in range(SIZE // 3))
    yield "Chinese signs", "".join(signs).encode()[:SIZE]


def seconds(path: Path) -> float:
    """Return the processor time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "gpudoctor", "check", "--from", str(path)]
    done = subprocess.run(command, capture_output=True, check=False, cwd=path.parent, env=os.environ)
    assert done.returncode in (0, 1, 2, 3), done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.txt")
        for kind, text in texts():
            if kind in sys.argv[1:] or not sys.argv[1:]:
                path.write_bytes(text)
                print(f"{kind}: {seconds(path):.1f} s (goal {GOAL_SECONDS} s)", flush=True)


if __name__ == "__main__":
    main()
