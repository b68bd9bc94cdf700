"""The NVIDIA driver inside WSL."""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from gpudoctor.model import Cupy, Device, Driver, Finding, Remedy, Severity, System, Torch
from gpudoctor.reasoning.symptoms import NVML_OPERATING_SYSTEM, asks_for_cuda, in_container, nvml_error, works
from gpudoctor.registry import Skip, applies, check, known

# Source: https://learn.microsoft.com/en-us/windows/ai/directml/gpu-cuda-in-wsl
MIN_KERNEL = (5, 10, 43, 3)
WSL_LIBRARIES = "/usr/lib/wsl/"
GUIDE = "https://docs.nvidia.com/cuda/wsl-user-guide/"
# Patterns of apt for a Linux driver's packages, which leave toolkit and container toolkit alone.
DRIVER_PACKAGES = (
    "^nvidia-(driver|utils|dkms|kernel|compute).*",
    "^libnvidia-(cfg1|common|compute|decode|encode|extra|fbc1|gl).*",
    "^libcuda1$",
    "^cuda-drivers.*",
)


class _Problem(NamedTuple):
    summary: str
    facts: tuple[str, ...]
    remedy: Remedy


@check(
    family="driver",
    explains=(
        "torch-cuda-unavailable",
        "cupy-unusable",
        "driver-missing",
        "driver-not-loaded",
        "driver-library-mismatch",
        "libcuda-not-on-linker-path",
        "cuda-init-unknown-error-999",
        "no-nvidia-gpu",
    ),
)
def wsl_driver_problem(
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    torch: Torch | None = None,
    cupy: Cupy | None = None,
) -> Iterator[Finding]:
    """The NVIDIA driver of Windows does not reach into WSL.

    Why: WSL 2 uses the driver of Windows through /dev/dxg and the libcuda that Windows puts into /usr/lib/wsl/lib. A
    Linux driver installed inside hides that library; WSL 1, an old kernel and an old Windows driver have no such way.
    Exception: a WSL in which CUDA or NVML works passes, whatever lies around.
    Reference: https://docs.nvidia.com/cuda/wsl-user-guide/
    """
    blocked = nvml_error(NVML_OPERATING_SYSTEM, driver)
    if not blocked:
        wsl = known(system.wsl if system is not None else None, "system.wsl")
        applies(wsl, "this is not WSL")
        applies(not in_container(system), "the driver of a container is its host's")
    elif system is not None and system.wsl == 0:
        return
    if works(driver, devices):
        return
    problem = _problem(system, driver, blocked)
    if problem is None:
        if driver is None or (driver.libcuda_path is None and driver.nvml_code is None):
            raise Skip("driver.libcuda_path is unknown")
        return
    asked = asks_for_cuda(torch, cupy)
    yield Finding(
        severity=Severity.INFO if asked is False and not blocked else Severity.ERROR,
        summary=problem.summary,
        subject="WSL",
        facts=problem.facts,
        remedies=(problem.remedy,),
    )


def _problem(system: System | None, driver: Driver | None, blocked: str | None) -> _Problem | None:
    """Return the first thing that is wrong, the deepest first."""
    if system is not None and system.wsl == 1:
        return _Problem("WSL 1 gives its programs no GPU, only WSL 2 does", ("system.wsl",), _convert())
    kernel = _old_kernel(system)
    if kernel:
        text = f"The kernel of WSL is {kernel}, and CUDA needs {'.'.join(map(str, MIN_KERNEL))} or newer"
        return _Problem(text, ("system.kernel",), _update("Update Windows and WSL's kernel"))
    if driver is None:
        return None
    if driver.device_files is not None and all(node.path != "/dev/dxg" for node in driver.device_files):
        text = "WSL has no device /dev/dxg: Windows shares no GPU with it"
        return _Problem(text, ("driver.device_files",), _update("Update Windows, its NVIDIA driver and WSL"))
    inside = _inside(driver)
    if inside:
        fact, value = inside
        text = f"A Linux NVIDIA driver is installed inside WSL and hides that of Windows: {value}"
        return _Problem(text, (fact,), _remove_driver(system))
    if blocked:
        text = "NVML says inside WSL: GPU access blocked by the operating system"
        return _Problem(text, (blocked,), _remove_driver(system))
    if driver.libcuda_path == "":
        return _no_libcuda(driver)
    if driver.nvml_code or driver.nvml_error:
        fact = "driver.nvml_error" if driver.nvml_error else "driver.nvml_code"
        text = f"NVML fails inside WSL: {driver.nvml_error or driver.nvml_code}"
        return _Problem(" ".join(text.split()), (fact,), _update("Update the NVIDIA driver of Windows, and WSL"))
    return None


def _old_kernel(system: System | None) -> str | None:
    """Return the kernel release of WSL 2 if it is older than GPU support."""
    match = re.match(r"\d+(?:\.\d+)+", system.kernel or "") if system is not None else None
    if match is None:
        return None
    return match[0] if tuple(map(int, match[0].split("."))) < MIN_KERNEL else None


def _inside(driver: Driver) -> tuple[str, str] | None:
    """Return the fact that shows a Linux driver inside WSL, and its value."""
    path = driver.libcuda_path
    if path and not path.startswith(WSL_LIBRARIES) and "/compat/" not in path:
        return "driver.libcuda_path", path
    for number, name in enumerate(driver.libcuda_files or ()):
        # The driver of Windows calls its library libcuda.so.1.1, a Linux driver by its version: libcuda.so.535.129.03.
        if not name.startswith(WSL_LIBRARIES) and re.search(r"/libcuda\.so\.\d{3,}\.\d+", name):
            return f"driver.libcuda_files[{number}]", name
    return None


def _no_libcuda(driver: Driver) -> _Problem:
    files = [name for name in driver.libcuda_files or () if name.startswith(WSL_LIBRARIES)]
    if not files:
        text = f"Windows gives WSL no libcuda: {WSL_LIBRARIES}lib holds none"
        remedy = _update("Install the NVIDIA driver in Windows, and update WSL")
        return _Problem(text, ("driver.libcuda_files" if driver.libcuda_files is not None else _PATH,), remedy)
    remedy = Remedy(
        summary=f"Add {WSL_LIBRARIES}lib to the loader's path",
        commands=(
            f"echo {WSL_LIBRARIES}lib | sudo tee /etc/ld.so.conf.d/ld.wsl.conf",
            "sudo ldconfig",
            "ldconfig -p | grep libcuda.so.1",
        ),
        needs=("root",),
        reference=GUIDE,
    )
    return _Problem(f"The loader of WSL does not find {files[0]}", (_PATH, "driver.libcuda_files"), remedy)


_PATH = "driver.libcuda_path"


def _convert() -> Remedy:
    return Remedy(
        summary="In PowerShell on Windows: make this distribution WSL 2 (its name is in the list)",
        commands=("wsl --list --verbose", "wsl --set-version DISTRIBUTION 2", "wsl nvidia-smi"),
        needs=("restart",),
        reference="https://learn.microsoft.com/en-us/windows/wsl/install",
    )


def _update(summary: str) -> Remedy:
    return Remedy(
        summary=f"{summary} (Windows 11, or Windows 10 21H2 and newer); in PowerShell on Windows",
        commands=("wsl --update", "wsl --shutdown", "wsl nvidia-smi"),
        needs=("restart",),
        reference=GUIDE,
    )


def _remove_driver(system: System | None) -> Remedy:
    debian = system is None or system.distribution in (None, "ubuntu", "debian", "kali", "linuxmint")
    remove = f"sudo apt-get purge {shlex.join(DRIVER_PACKAGES)}" if debian else ""
    return Remedy(
        summary="Remove the Linux NVIDIA driver inside WSL and keep that of Windows; of CUDA install the toolkit only "
        "(cuda-toolkit, never the packages cuda or cuda-drivers); then restart WSL in PowerShell",
        commands=(*((remove, "sudo ldconfig") if remove else ()), "wsl.exe --shutdown", "wsl.exe nvidia-smi"),
        needs=("root", "restart"),
        reference=GUIDE,
    )
