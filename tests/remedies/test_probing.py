"""The command that asks the same library as a probe."""

import pytest

from gpudoctor.model import Python
from gpudoctor.remedies.probing import repeat_probe

LINUX = Python(executable="/work/.venv/bin/python", platform_tag="linux_x86_64")
WINDOWS = Python(executable=r"C:\venv\Scripts\python.exe", platform_tag="win_amd64")


@pytest.mark.parametrize(
    ("probe", "python", "part"),
    [
        ("torch-runtime", LINUX, '/work/.venv/bin/python -X faulthandler -c "import torch;'),
        ("cupy-runtime", LINUX, "import cupy;"),
        ("cuda-driver", LINUX, "libcuda.so.1"),
        ("cuda-driver", WINDOWS, "nvcuda.dll"),
        ("cuda-driver", None, "libcuda.so.1"),
        ("nvml", LINUX, "nvidia-smi"),
    ],
)
def test_command(probe: str, python: Python | None, part: str) -> None:
    (command,) = repeat_probe(python=python, probe=probe).commands
    assert part in command


def test_a_probe_of_no_library_has_no_command() -> None:
    assert repeat_probe(python=LINUX, probe="project").commands == ()


@pytest.mark.parametrize("fatal", [True, False])
def test_only_what_hangs_or_dies_leads_to_the_kernel_log(fatal: bool) -> None:
    assert ("Xid" in repeat_probe(python=LINUX, probe="nvml", fatal=fatal).summary) is fatal
