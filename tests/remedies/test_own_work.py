"""What gpudoctor itself does: a probe that failed, and tuning again."""

import pytest

from gpudoctor.model import Fix, FoundProfile, Python
from gpudoctor.remedies.own_work import repeat_probe
from tests.remedies.made import made_one

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
    (command,) = repeat_probe(python=python or Python(), probe=probe).commands
    assert part in command


def test_a_probe_of_no_library_has_no_command() -> None:
    assert repeat_probe(python=LINUX, probe="project").commands == ()


@pytest.mark.parametrize("fatal", [True, False])
def test_only_what_hangs_or_dies_leads_to_the_kernel_log(fatal: bool) -> None:
    assert ("Xid" in repeat_probe(python=LINUX, probe="nvml", fatal=fatal).summary) is fatal


def test_without_a_profile_there_is_nothing_to_verify() -> None:
    assert made_one(Fix("tune-again")).commands == ("gpudoctor tune",)


def test_the_same_work_is_tuned_again_and_what_is_hostile_in_it_is_quoted() -> None:
    hostile = FoundProfile(device="cuda:0", workload="x; reboot", mode="inference")
    assert made_one(Fix("tune-again"), profile=hostile).commands == (
        "gpudoctor tune --workload 'x; reboot' --mode inference --device cuda:0",
        "gpudoctor profile verify gpudoctor.env",
    )
