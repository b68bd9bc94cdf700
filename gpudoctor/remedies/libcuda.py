"""Letting the loader and the linker find the driver's libcuda."""

import re
import shlex

from gpudoctor.model import Fix, Place, Remedy, System
from gpudoctor.remedies.commands import with_sudo
from gpudoctor.remedies.fixes import fix

WSL_FOLDER = "/usr/lib/wsl/lib"
USUAL_FOLDER = "/usr/lib/x86_64-linux-gnu"  # of Debian and Ubuntu


# Within double quotes a shell expands anything else, and no library is in such a folder.
PLAIN_PATH = re.compile(r"[\w@+=:,./~-]+")


@fix
def link_libcuda(*, place: Place, system: System | None, library: str = "") -> tuple[Remedy | Fix, ...]:
    """Return how to let the linker find libcuda.so. library: path of the driver's library, "" if unknown."""
    library = library if PLAIN_PATH.fullmatch(library) else ""
    folder = library.rpartition("/")[0] or (WSL_FOLDER if place.in_wsl else USUAL_FOLDER)
    target = library or f"{folder}/libcuda.so.1"
    link = f"ln -s {shlex.quote(target)} {shlex.quote(f'{folder}/libcuda.so')}"
    ldconfig = with_sudo("ldconfig", system)
    usually = "" if library else f" (its folder is {folder} as a rule)"
    where = f"that of WSL is {WSL_FOLDER}" if place.in_wsl else f"the driver's, in WSL {WSL_FOLDER}"
    return (
        Remedy(
            summary="Rewrite the loader's cache, see where the driver's libcuda is, and give it the name libcuda.so "
            f"that the linker looks for{usually}",
            commands=(ldconfig, "ldconfig -p | grep libcuda.so", with_sudo(link, system), ldconfig),
            needs=("root",),
        ),
        Remedy(
            summary=f"Without root, name the folder of libcuda.so for this shell: {where}; to link alone, the stubs "
            "folder of the CUDA toolkit will do",
            commands=(
                f'export LIBRARY_PATH="{folder}:/usr/local/cuda/lib64/stubs${{LIBRARY_PATH:+:$LIBRARY_PATH}}"',
                f'export LD_LIBRARY_PATH="{folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"',
                f"export TRITON_LIBCUDA_PATH={shlex.quote(folder)}",
            ),
            needs=("restart",),
            reference="https://github.com/triton-lang/triton/pull/1981",
        ),
        Fix("give-container-libcuda"),
    )
