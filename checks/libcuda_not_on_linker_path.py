"""Whether the loader finds the driver's libcuda."""

import shlex
from collections.abc import Iterator

from gpudoctor.model import Driver, Finding, Remedy, Severity, System
from gpudoctor.reasoning.symptoms import in_wsl
from gpudoctor.registry import applies, check, known


@check(family="cuda", explains=("torch-cuda-unavailable", "cupy-unusable"))
def libcuda_not_on_linker_path(driver: Driver, system: System | None = None) -> Iterator[Finding]:
    """The driver's library libcuda is installed where the loader does not look.

    Why: PyTorch and CuPy load libcuda.so.1 by its name; where the loader does not find it they report no driver, and
    Triton cannot compile kernels.
    Exception: stubs of a toolkit and forward compatibility packages are no libcuda of a driver.
    Reference: https://man7.org/linux/man-pages/man8/ld.so.8.html
    """
    applies(not in_wsl(system), "where libcuda lies in WSL is for wsl-driver-problem")
    path = known(driver.libcuda_path, "driver.libcuda_path")
    if path:
        return
    files = [name for name in known(driver.libcuda_files, "driver.libcuda_files") if _is_drivers(name)]
    if not files:
        return
    error = driver.libcuda_error or ""
    reason = f" ({' '.join(error.split())})" if error and "no such file" not in error.lower() else ""
    yield Finding(
        severity=Severity.ERROR,
        summary=f"The loader finds no libcuda.so.1, although {files[0]} is there{reason}",
        subject="libcuda.so.1",
        facts=("driver.libcuda_path", "driver.libcuda_files", *(("driver.libcuda_error",) if reason else ())),
        remedies=_remedies(files[0].rpartition("/")[0]),
    )


def _is_drivers(path: str) -> bool:
    """Return whether `path` is the libcuda of a driver and its name is the one that programs load, or its target."""
    return "/stubs/" not in path and "/compat/" not in path


def _remedies(folder: str) -> tuple[Remedy, ...]:
    verify = "ldconfig -p | grep libcuda.so.1"
    quoted = shlex.quote(folder)
    return (
        Remedy(
            summary=f"Add {folder} to the loader's path",
            commands=(f"echo {quoted} | sudo tee /etc/ld.so.conf.d/nvidia-libcuda.conf", "sudo ldconfig", verify),
            needs=("root",),
        ),
        Remedy(
            summary="Without root, set the path for the programs of this shell",
            commands=(f'export LD_LIBRARY_PATH={quoted}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"', "gpudoctor check"),
        ),
    )
