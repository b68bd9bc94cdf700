"""A folder that a report names is advised only if no shell expands anything in it."""

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import Fix, Snapshot, System
from gpudoctor.remedies.fixes import remedies_of
from tests.remedies.made import made


@pytest.mark.parametrize(
    ("library", "folder"),
    [
        ("/opt/driver/lib/libcuda.so.1", "/opt/driver/lib"),
        ("/c/Users/me/a$(calc.exe)/libcuda.so.1", "/usr/lib/x86_64-linux-gnu"),
        ("/a`id`/libcuda.so.1", "/usr/lib/x86_64-linux-gnu"),
        ('/a"; id; "/libcuda.so.1', "/usr/lib/x86_64-linux-gnu"),
    ],
)
def test_the_folder_in_the_commands(library: str, folder: str) -> None:
    commands = [c for r in remedies_of((Fix("link-libcuda", library=library),), Facts(Snapshot())) for c in r.commands]
    assert any(command.startswith(f'export LD_LIBRARY_PATH={folder}"$') for command in commands)
    assert not any("calc" in command or "id;" in command or "`" in command for command in commands)


def test_nixos_has_its_own_folder() -> None:
    remedy, *_ = made(Fix("find-libcuda"), system=System(os="linux", distribution="nixos"))
    assert remedy.commands[0].startswith("export LD_LIBRARY_PATH=/run/opengl-driver/lib")
