"""Whether a program in WSL misses the GPU, and what hides the Windows driver."""

import re

from gpudoctor.model import Driver, DriverState, System, TorchRuntime, Wsl
from gpudoctor.symptoms import Symptoms, first, of_kind, with_code

# Source: https://learn.microsoft.com/en-us/windows/ai/directml/gpu-cuda-in-wsl
MIN_KERNEL = (5, 10, 43, 3)
# Windows 10 21H2, the first release with GPUs in WSL 2. Source: the same page.
MIN_BUILD = 19044
OLD_RELEASES = ("1809", "1903", "1909", "2004", "20H2", "21H1")
WSL_LIBRARIES = "/usr/lib/wsl/"


def wsl(
    system: System, driver: Driver, driver_state: DriverState, torch_runtime: TorchRuntime, symptoms: Symptoms
) -> Wsl:
    """Return the state of the Windows driver in WSL, and what hides it."""
    available = torch_runtime.available
    blocked = first(with_code(symptoms, "nvml-17"))
    unused = of_kind(symptoms, "asks-gpu-unused") if of_kind(symptoms, "wsl-linux-driver-reported") else ()
    lacking = of_kind(symptoms, "@wsl-misses-gpu") or with_code(symptoms, "cuda-100") or unused
    missed = blocked or first(lacking) or driver_state.not_found
    failure = missed.fact if missed is not None else "torch_runtime.available" if available is False else ""
    old_kernel = _old_kernel(system)
    # A report often has nvidia-smi's table from Windows, where it works. It also works in an old WSL without CUDA.
    in_spite = failure.startswith("symptoms") or (failure and old_kernel)
    old_windows = _old_windows(symptoms)
    inside = _inside(driver)
    return Wsl(
        version=system.wsl,
        works=bool((available and not blocked) or (driver_state.works and not in_spite)),
        failure=failure,
        blocked=blocked.fact if blocked is not None else "",
        old_kernel=old_kernel,
        old_windows=old_windows[0],
        old_windows_fact=old_windows[1],
        driver_inside=inside[0],
        driver_inside_fact=inside[1],
    )


def _old_kernel(system: System) -> str:
    match = re.match(r"\d+(?:\.\d+)+", system.kernel or "")
    return match[0] if match is not None and tuple(map(int, match[0].split("."))) < MIN_KERNEL else ""


def _old_windows(symptoms: Symptoms) -> tuple[str, str]:
    """Return the name of a Windows release without GPU support in WSL, and its fact."""
    for symptom in of_kind(symptoms, "windows-build"):
        build = symptom.names.get("build", "")
        if build.isdecimal() and int(build) < MIN_BUILD:
            return f"Windows build {build}", symptom.fact
    for symptom in of_kind(symptoms, "windows-10-release"):
        release = symptom.names.get("release", "").upper()
        if release in OLD_RELEASES:
            return f"Windows 10 {release}", symptom.fact
    return "", ""


def _inside(driver: Driver) -> tuple[str, str]:
    """Return the file of a Linux driver inside WSL, and its fact.

    The Windows driver's library is libcuda.so.1.1; a Linux driver's has the version: libcuda.so.535.129.03.
    """
    path = driver.libcuda_path
    if path and not path.startswith(WSL_LIBRARIES) and "/compat/" not in path:
        return path, "driver.libcuda_path"
    for number, name in enumerate(driver.libcuda_files or ()):
        if not name.startswith(WSL_LIBRARIES) and re.search(r"/libcuda\.so\.\d{3,}\.\d+", name):
            return name, f"driver.libcuda_files[{number}]"
    return "", ""
