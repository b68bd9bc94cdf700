"""The loader and the linker find libcuda."""

import pytest

from gpudoctor.model import Fix, Place, System
from tests.remedies.made import made

ROOT = System(os="linux", user_is_root=True)
SHELL = (
    "export LD_LIBRARY_PATH='/opt/a b'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"",
    "gpudoctor check",
)


def test_the_folder_is_quoted() -> None:
    with_root, without = made(Fix("add-libcuda-folder", folder="/opt/a b"))
    assert with_root.commands == (
        "echo '/opt/a b' | sudo tee /etc/ld.so.conf.d/nvidia-libcuda.conf",
        "sudo ldconfig",
        "ldconfig -p | grep libcuda.so.1",
    )
    assert (with_root.needs, without.commands, without.needs) == (("root",), SHELL, ())


@pytest.mark.parametrize(("system", "ldconfig"), [(None, "sudo ldconfig"), (ROOT, "ldconfig")])
def test_an_unknown_folder_is_looked_for_first(system: System | None, ldconfig: str) -> None:
    find, without = made(Fix("find-libcuda"), system=system)
    assert find.commands == (
        "find / -name 'libcuda.so*' -not -path '*/stubs/*' 2>/dev/null",
        "echo /usr/lib/x86_64-linux-gnu | sudo tee /etc/ld.so.conf.d/nvidia-libcuda.conf",
        ldconfig,
        "ldconfig -p | grep libcuda.so",
    )
    assert "/usr/lib/x86_64-linux-gnu" in without.commands[0]


@pytest.mark.parametrize(
    ("place", "library", "target", "folder"),
    [
        (Place(), "/lib64/libcuda.so.1", "/lib64/libcuda.so.1", "/lib64"),
        (Place(), "", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/x86_64-linux-gnu"),
        (Place(in_wsl=True), "", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/lib/wsl/lib"),
    ],
)
def test_the_linkers_name_leads_to_the_library(place: Place, library: str, target: str, folder: str) -> None:
    link, without, container = made(Fix("link-libcuda", library=library), place=place, system=ROOT)
    assert link.commands[2] == f"ln -s {target} {folder}/libcuda.so"
    assert without.commands[0].startswith(f"export LIBRARY_PATH={folder}:/usr/local/cuda/lib64/stubs")
    assert without.commands[2] == f"export TRITON_LIBCUDA_PATH={folder}"
    assert container.commands == ()
