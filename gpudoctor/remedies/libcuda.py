"""Make the loader and the linker find the driver's libcuda."""

import re

from gpudoctor.data.distributions import distribution_of
from gpudoctor.model import Fix, Place, System
from gpudoctor.remedies.fixes import fix

WSL_FOLDER = "/usr/lib/wsl/lib"
NIXOS_FOLDER = "/run/opengl-driver/lib"
USUAL_FOLDER = "/usr/lib/x86_64-linux-gnu"  # on Debian and Ubuntu


# A shell expands other characters inside double quotes, and no library is in such a folder.
PLAIN_PATH = re.compile(r"[\w@+=:,./~-]+")


@fix
def find_libcuda(*, system: System) -> tuple[Fix, ...]:
    """Return how to make the loader find the driver's libcuda. Source for NixOS: https://nixos.wiki/wiki/CUDA"""
    if system.distribution == "nixos":
        return (Fix("add-folder-for-this-shell", folder=NIXOS_FOLDER),)
    usual = distribution_of(system).get("libraries", USUAL_FOLDER)
    return (Fix("find-folder-of-libcuda"), Fix("add-folder-for-this-shell", folder=usual))


@fix
def link_libcuda(*, place: Place, system: System, library: str = "") -> tuple[Fix, ...]:
    """Return how to make the linker find libcuda.so. library: path of the driver's library, "" if unknown."""
    library = library if PLAIN_PATH.fullmatch(library) else ""
    usual = WSL_FOLDER if place.in_wsl else distribution_of(system).get("libraries", USUAL_FOLDER)
    folder = library.rpartition("/")[0] or usual
    target = library or f"{folder}/libcuda.so.1"
    where = f"that of WSL is {WSL_FOLDER}" if place.in_wsl else f"the driver's, in WSL {WSL_FOLDER}"
    return (
        Fix("give-libcuda-its-link", target=target, link=f"{folder}/libcuda.so", usual="" if library else folder),
        Fix("name-folder-of-libcuda", folder=folder, where=where),
        Fix("give-container-libcuda"),
    )
