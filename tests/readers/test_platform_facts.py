"""What Python's platform string says."""

import pytest

from gpudoctor.model import System
from gpudoctor.readers.platform_facts import platform_facts

LINUX = "Linux-5.15.0-67-generic-x86_64-with-glibc2.31"
KERNEL = System(os="linux", kernel="5.15.0-67-generic", machine="x86_64")


@pytest.mark.parametrize(
    ("python", "glibc"), [((), None), ((2, 7), None), ((3, 8, 18), None), ((3, 9), "2.31"), ((3, 12, 1), "2.31")]
)
def test_the_glibc_of_a_python_that_is_new_enough(python: tuple[int, ...], glibc: str | None) -> None:
    found = platform_facts(LINUX, python)
    assert found is not None
    assert (found.os, found.kernel, found.machine, found.glibc) == (KERNEL.os, KERNEL.kernel, KERNEL.machine, glibc)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Linux-5.15.0-67-generic-x86_64", KERNEL),
        ("Windows-10-10.0.19045-SP0", System(os="windows")),
        ("Windows-2019Server-10.0.17763-SP0", System(os="windows")),
        ("macOS-14.1-arm64-arm-64bit", System(os="darwin", machine="arm64")),
        ("Darwin-20.6.0-x86_64-i386-64bit", System(os="darwin", machine="x86_64")),
        ("Java-1.8", None),
    ],
)
def test_systems(text: str, expected: System | None) -> None:
    assert platform_facts(text, (3, 12)) == expected
