"""The texts of several drivers."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.proc_driver_version import parse_proc_driver_version

PROPRIETARY = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023
GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)
"""
OPEN = """NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U16-I2)  Fri
GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)
"""
JETSON = """NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build  (buildbrain@mobile)  Tue
GCC version:  collect2: error: ld returned 1 exit status
"""
OLD = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed Oct 12 09:19:07 UTC 2022\n"
RUSSIAN_DATE = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58  Release Build  (root@host)  \u0421\u0431 29\n"
)


@pytest.mark.parametrize(
    ("text", "version", "flavor"),
    [
        pytest.param(PROPRIETARY, "535.129.03", "proprietary", id="proprietary"),
        pytest.param(OPEN, "570.86.15", "open", id="open"),
        pytest.param(JETSON, "540.04.00", "open", id="Jetson"),
        pytest.param(OLD, "390.157", "proprietary", id="two numbers"),
        pytest.param(RUSSIAN_DATE, "555.58", "open", id="date in another language"),
    ],
)
def test_version_and_flavor(text: str, version: str, flavor: str) -> None:
    module = parse_proc_driver_version(text)
    assert (str(module.version), module.flavor) == (version, flavor)


@pytest.mark.parametrize("text", ["", "NVRM version: NVIDIA UNIX x86_64 Kernel Module\n", "GCC version:  gcc 12.3.0\n"])
def test_another_text(text: str) -> None:
    with pytest.raises(ValueError, match="no version of the NVIDIA kernel module"):
        parse_proc_driver_version(text)
