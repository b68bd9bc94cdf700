"""The texts of several distributions."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.os_release import parse_os_release

UBUNTU = """PRETTY_NAME="Ubuntu 24.04.1 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
ID=ubuntu
ID_LIKE=debian
"""
FEDORA = """NAME="Fedora Linux"
VERSION="41 (Workstation Edition)"
ID=fedora
VERSION_ID=41
PRETTY_NAME="Fedora Linux 41 (Workstation Edition)"
"""
ARCH = """NAME="Arch Linux"
PRETTY_NAME="Arch Linux"
ID=arch
BUILD_ID=rolling
"""
ALPINE = "NAME='Alpine Linux'\nID=alpine\nVERSION_ID=3.20.3\nPRETTY_NAME='Alpine Linux v3.20'\n"
COMMENTED = '# comment\n\nID="rhel"\nVERSION_ID="9.4"\nPRETTY_NAME="Red \\"Hat\\" 9.4"\nbroken line\n'


@pytest.mark.parametrize(
    ("text", "distribution", "version", "name"),
    [
        pytest.param(UBUNTU, "ubuntu", "24.04", "Ubuntu 24.04.1 LTS", id="double quotes"),
        pytest.param(FEDORA, "fedora", "41", "Fedora Linux 41 (Workstation Edition)", id="no quotes"),
        pytest.param(ARCH, "arch", None, "Arch Linux", id="rolling, without a version"),
        pytest.param(ALPINE, "alpine", "3.20.3", "Alpine Linux v3.20", id="single quotes"),
        pytest.param(COMMENTED, "rhel", "9.4", 'Red "Hat" 9.4', id="comment, escapes and a line that is none"),
        pytest.param(UBUNTU.replace("\n", "\r\n"), "ubuntu", "24.04", "Ubuntu 24.04.1 LTS", id="ends of Windows"),
    ],
)
def test_distribution(text: str, distribution: str, version: str | None, name: str) -> None:
    variables = parse_os_release(text)
    assert (variables.get("ID"), variables.get("VERSION_ID"), variables.get("PRETTY_NAME")) == (
        distribution,
        version,
        name,
    )


@pytest.mark.parametrize("text", ["", "CentOS release 6.10 (Final)\n"])
def test_another_text(text: str) -> None:
    with pytest.raises(ValueError, match="not an os-release file"):
        parse_os_release(text)
