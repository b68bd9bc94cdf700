"""The NVIDIA driver inside WSL."""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gpudoctor.conclusions.error_codes import (
    NO_DEVICE,
    NVML_OPERATING_SYSTEM,
    asks_for_cuda,
    cuda_error,
    in_container,
    no_driver_reported,
    nvml_error,
    works,
)
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    Cupy,
    Device,
    Driver,
    Finding,
    Origin,
    Remedy,
    Severity,
    Symptom,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import set_variable

# Source: https://learn.microsoft.com/en-us/windows/ai/directml/gpu-cuda-in-wsl
MIN_KERNEL = (5, 10, 43, 3)
# Windows 10 21H2, the first release with GPUs in WSL 2. Source: the same page.
MIN_BUILD = 19044
OLD_RELEASES = ("1809", "1903", "1909", "2004", "20H2", "21H1")
WSL_LIBRARIES = "/usr/lib/wsl/"
GUIDE = "https://docs.nvidia.com/cuda/wsl-user-guide/"
# Patterns of apt for a Linux driver's packages, which leave toolkit and container toolkit alone.
DRIVER_PACKAGES = (
    "^nvidia-(driver|utils|dkms|kernel|compute).*",
    "^libnvidia-(cfg1|common|compute|decode|encode|extra|fbc1|gl).*",
    "^libcuda1$",
    "^cuda-drivers.*",
)


# What the container runtime of Docker Desktop says where Windows shares no GPU.
NO_ADAPTERS = "container-wsl-no-adapters"


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
        "torch-cpu-build",
    ),
)
def wsl_driver_problem(
    origin: Origin,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy: Cupy | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The NVIDIA driver of Windows does not reach into WSL.

    Why: WSL 2 uses the driver of Windows through /dev/dxg and the libcuda that Windows puts into /usr/lib/wsl/lib. A
    Linux driver installed inside hides that library; WSL 1, an old kernel and an old Windows driver have no such way.
    Exception: a WSL in which CUDA or NVML works passes, whatever lies around.
    Reference: https://docs.nvidia.com/cuda/wsl-user-guide/
    """
    blocked = nvml_error(NVML_OPERATING_SYSTEM, driver, symptoms)
    if not blocked:
        wsl = known(system.wsl if system is not None else None, "system.wsl")
        skip_unless(wsl, "this is not WSL")
        skip_unless(not in_container(system), "the driver of a container is its host's")
    elif system is not None and system.wsl == 0:
        return
    # Of the driver of Windows a report often holds the table of nvidia-smi, which works there.
    failed = blocked or _failed(driver, torch_runtime, symptoms)
    if torch_runtime is not None and torch_runtime.available and not blocked:
        return
    by_message = (failed or "").startswith("symptoms")
    # nvidia-smi works in an old WSL in which CUDA does not.
    if works(driver, devices) and not by_message and not (failed and _old_kernel(system)):
        return
    problem = _problem(system, driver, blocked, failed, symptoms)
    asked = asks_for_cuda(torch, cupy)
    if problem is None and asked and failed and not works(driver, devices):
        problem = _missed(failed)
    if problem is None:
        if driver is None or (driver.libcuda_path is None and driver.nvml_code is None):
            raise Skip("driver.libcuda_path is unknown")
        return
    yield Finding(
        severity=Severity.INFO if asked is False and not failed else Severity.ERROR,
        summary=problem.summary,
        subject="WSL",
        facts=problem.facts,
        remedies=(problem.remedy, *(_others(problem.remedy, system) if origin.is_report and symptoms else ())),
    )


def _failed(
    driver: Driver | None, torch_runtime: TorchRuntime | None, symptoms: tuple[Symptom, ...] | None
) -> str | None:
    """Return the name of the fact in which something misses the GPU or its driver, None where nothing does."""
    kinds = ("nvml-*", "nvidia-smi-*", "kernel-module-*", "torch-no-driver", "wsl-smi-without-cuda", NO_ADAPTERS)
    seen = reported(symptoms, *kinds)
    if seen:
        return seen[0][0]
    said = cuda_error(NO_DEVICE, driver, torch_runtime, symptoms=symptoms)
    said = said or no_driver_reported(torch_runtime, symptoms)
    if said is None and torch_runtime is not None and torch_runtime.available is False:
        return "torch_runtime.available"
    return said


def _problem(
    system: System | None,
    driver: Driver | None,
    blocked: str | None,
    failed: str | None,
    symptoms: tuple[Symptom, ...] | None,
) -> _Problem | None:
    """Return the first thing that is wrong, the deepest first."""
    windows = _old_windows(symptoms) if failed or (system is not None and system.wsl) else None
    if windows:
        fact, name = windows
        text = f"{name} has no GPU support in WSL 2, which starts with build {MIN_BUILD} (Windows 10 21H2)"
        return _Problem(text, (fact,), _update("Update Windows, its NVIDIA driver and WSL's kernel"))
    if system is not None and (system.wsl == 1 or reported(symptoms, "wsl-1")):
        return _Problem("WSL 1 gives its programs no GPU, only WSL 2 does", ("system.wsl",), _convert())
    kernel = _old_kernel(system)
    if kernel:
        text = f"The kernel of WSL is {kernel}, and CUDA needs {'.'.join(map(str, MIN_KERNEL))} or newer"
        return _Problem(text, ("system.kernel",), _update("Update Windows and WSL's kernel"))
    told = _told(failed, symptoms)
    if told is not None:
        fact, text, remedy = told
        return _Problem(text, (fact, *((failed,) if failed else ())), remedy(system))
    nix = reported(symptoms, "nix-named")
    if nix and failed:
        text = f"A program of Nix runs in WSL: its loader does not look into {WSL_LIBRARIES}lib, where libcuda is"
        return _Problem(text, (nix[0][0], failed), _library_path(system))
    if driver is None:
        return _missed(failed) if (failed or "").startswith("symptoms") else None
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
    return _missed(failed) if (failed or "").startswith("symptoms") else None


def _missed(failed: str | None) -> _Problem | None:
    """Return the problem where a program in WSL misses the driver, and nothing tells why."""
    if failed is None:
        return None
    text = f"A program in WSL finds no NVIDIA driver: Windows gives its libraries in {WSL_LIBRARIES}lib"
    return _Problem(text, (failed,), _update("Update the NVIDIA driver of Windows, and WSL"))


def _library_path(system: System | None) -> Remedy:
    return set_variable(
        system=system,
        name="LD_LIBRARY_PATH",
        value=f"{WSL_LIBRARIES}lib",
        summary="Let the program find the libcuda of Windows; on NixOS-WSL set wsl.useWindowsDriver = true",
    )


def _old_windows(symptoms: tuple[Symptom, ...] | None) -> tuple[str, str] | None:
    """Return the fact that shows a Windows without GPUs in WSL, and its name."""
    for fact, message in reported(symptoms, "windows-build"):
        build = message.names.get("build", "")
        if build.isdecimal() and int(build) < MIN_BUILD:
            return fact, f"Windows of build {build}"
    for fact, message in reported(symptoms, "windows-10-release"):
        release = message.names.get("release", "").upper()
        if release in OLD_RELEASES:
            return fact, f"Windows 10 {release}"
    return None


def _told(
    failed: str | None, symptoms: tuple[Symptom, ...] | None
) -> tuple[str, str, Callable[[System | None], Remedy]] | None:
    """Return what the report tells of WSL besides its error: the fact, the sentence, and what helps."""
    if failed is None:
        for fact, message in reported(symptoms, "wsl-libcuda-no-link"):
            folder = message.names.get("path", f"{WSL_LIBRARIES}lib/")
            return fact, f"{folder}libcuda.so.1 is a copy, where the loader wants a symbolic link", _link
        return None
    for fact, message in reported(symptoms, "windows-tcc-mode"):
        mode = message.names.get("mode", "TCC").upper().replace("DATA CENTER", "TCC (data center)")
        return fact, f"The driver of Windows runs the GPU in {mode} mode, which gives WSL no GPU", _wddm
    for fact, message in reported(symptoms, "linux-driver-installed", "driver-packages-listed"):
        package = (
            message.names.get("package") or message.names.get("runfile") or message.names.get("command") or message.text
        )
        text = f"A Linux NVIDIA driver was installed inside WSL ({package}), which hides that of Windows"
        return fact, text, _remove_driver
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


def _wddm(_: System | None) -> Remedy:
    return Remedy(
        summary="Switch the GPU to WDDM, as administrator in PowerShell on Windows; for a data center GPU install the "
        "driver of RTX Enterprise or vGPU that offers it; restart Windows",
        commands=("nvidia-smi -dm 0", "wsl --shutdown", "wsl nvidia-smi"),
        needs=("root", "reboot"),
        reference=GUIDE,
    )


def _link(_: System | None) -> Remedy:
    return Remedy(
        summary="The loader only warns. To silence it, make links of the copies, in cmd as administrator on Windows; "
        "then wsl --shutdown",
        commands=(
            r"cd C:\Windows\System32\lxss\lib",
            "del libcuda.so libcuda.so.1",
            "mklink libcuda.so libcuda.so.1.1",
            "mklink libcuda.so.1 libcuda.so.1.1",
            "wsl --shutdown",
            "wsl nvidia-smi",
        ),
        needs=("root", "restart"),
        reference="https://github.com/microsoft/WSL/issues/5663",
    )


def _others(first: Remedy, system: System | None) -> tuple[Remedy, ...]:
    """Return what else helps where only a report is known, the usual causes one after the other."""
    remedies = (_update("Update Windows, its NVIDIA driver and WSL"), _remove_driver(system))
    return tuple(remedy for remedy in remedies if remedy.commands != first.commands)


def _remove_driver(system: System | None) -> Remedy:
    debian = system is None or system.distribution in (None, "ubuntu", "debian", "kali", "linuxmint")
    remove = f"sudo apt-get purge {shlex.join(DRIVER_PACKAGES)}" if debian else ""
    return Remedy(
        summary=f"Remove the Linux NVIDIA driver inside WSL and keep that of Windows, whose libraries are in "
        f"{WSL_LIBRARIES}lib; of CUDA install the toolkit only (cuda-toolkit, never cuda or cuda-drivers); "
        "then restart WSL in PowerShell",
        commands=(*((remove, "sudo ldconfig") if remove else ()), "wsl.exe --shutdown", "wsl.exe nvidia-smi"),
        needs=("root", "restart"),
        reference=GUIDE,
    )
