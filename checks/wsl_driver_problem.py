"""The NVIDIA driver inside WSL."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from gpudoctor.model import Consumers, Driver, Finding, Fix, Origin, Place, Severity, Wsl
from gpudoctor.registry import CUDA_FAILS, Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind

WSL_LIBRARIES = "/usr/lib/wsl/"
UPDATE = Fix("update-wsl", first="Update Windows, its NVIDIA driver and WSL")
UPDATE_DRIVER = Fix("update-wsl", first="Update the NVIDIA driver on Windows, and WSL")
REMOVE = Fix("remove-driver-in-wsl")
NO_GPU = ("guess-no-nvidia-gpu", "no-nvidia-gpu-reported")


class _Problem(NamedTuple):
    summary: str
    facts: tuple[str, ...]
    fix: Fix


@check(
    family="driver",
    explains=(
        *(*CUDA_FAILS, "driver-missing", "driver-not-loaded", "driver-library-mismatch"),
        *("libcuda-not-on-linker-path", "no-nvidia-gpu", "torch-cpu-build"),
    ),
)
def wsl_driver_problem(
    origin: Origin, place: Place, wsl: Wsl, consumers: Consumers, driver: Driver = Driver(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """WSL cannot use the Windows NVIDIA driver.

    Why: WSL 2 uses the Windows driver through /dev/dxg and the libcuda that Windows puts into /usr/lib/wsl/lib. A Linux
    driver installed inside hides that library. WSL 1, an old kernel and an old Windows driver do not support this.
    Exception: if CUDA or NVML works in WSL, the check passes, whatever else is installed.
    Reference: https://docs.nvidia.com/cuda/wsl-user-guide/
    """
    if not wsl.blocked:
        skip_unless(known(wsl.version, "system.wsl"), "this is not WSL")
        skip_unless(not place.in_container, "a container uses the driver of its host")
    skip_unless(not of_kind(symptoms, *NO_GPU), "the machine has no NVIDIA GPU")
    if wsl.works or wsl.version == 0:
        return
    problems = itertools.chain(_by_release(wsl, symptoms), _by_words(wsl, symptoms), _by_driver(wsl, driver))
    problem = next(problems, None)
    if problem is None and wsl.failure and (consumers.ask_for_cuda or wsl.failure.startswith("symptoms")):
        text = f"A program in WSL finds no NVIDIA driver: Windows provides its libraries in {WSL_LIBRARIES}lib"
        problem = _Problem(text, (wsl.failure,), UPDATE_DRIVER)
    if problem is None:
        if driver.libcuda_path is None and driver.nvml_code is None:
            raise Skip("driver.libcuda_path is unknown")
        return
    is_plain = problem.fix.name in ("install-driver-on-windows", "convert-to-wsl-2")
    is_remark = problem.fix.name == "link-libcuda-of-windows"  # of ldconfig: nothing has failed
    # Of a report the usual causes follow, one after the other.
    others = (UPDATE, REMOVE) if origin.is_report and symptoms and not (is_remark or is_plain) else ()
    yield Finding.of(
        Severity.ERROR if wsl.failure or (consumers.ask_for_cuda is not False and not is_remark) else Severity.INFO,
        "WSL",
        problem.summary,
        problem.facts,
        problem.fix,
        *(fix for fix in others if fix.name != problem.fix.name),
    )


def _by_release(wsl: Wsl, symptoms: Symptoms) -> Iterator[_Problem]:
    if wsl.old_windows and (wsl.failure or wsl.version):
        text = f"{wsl.old_windows} does not support GPUs in WSL 2; it needs build 19044 (Windows 10 21H2) or newer"
        fix = Fix("update-wsl", first="Update Windows, its NVIDIA driver and the WSL kernel")
        yield _Problem(text, (wsl.old_windows_fact,), fix)
    if wsl.version == 1 or of_kind(symptoms, "wsl-1"):
        yield _Problem("WSL 1 has no GPU support; it needs WSL 2", ("system.wsl",), Fix("convert-to-wsl-2"))
    if wsl.old_kernel:
        text = f"The WSL kernel is {wsl.old_kernel}, but CUDA needs 5.10.43.3 or newer"
        yield _Problem(text, ("system.kernel",), Fix("update-wsl", first="Update Windows and the WSL kernel"))


def _by_words(wsl: Wsl, symptoms: Symptoms) -> Iterator[_Problem]:
    if not wsl.failure:
        for said in of_kind(symptoms, "wsl-libcuda-no-link"):
            folder = said.names.get("path", f"{WSL_LIBRARIES}lib/")
            text = f"{folder}libcuda.so.1 is a copy, but the loader expects a symbolic link"
            yield _Problem(text, (said.fact,), Fix("link-libcuda-of-windows"))
        return
    for said in of_kind(symptoms, "windows-basic-display"):
        text = f"Windows itself has no driver for the GPU: it shows {said.text}"
        yield _Problem(text, (said.fact, wsl.failure), Fix("install-driver-on-windows"))
    for said in of_kind(symptoms, "windows-tcc-mode"):
        mode = said.names.get("mode", "TCC").upper().replace("DATA CENTER", "TCC (data center)")
        text = f"The Windows driver runs the GPU in {mode} mode, so WSL has no GPU"
        yield _Problem(text, (said.fact, wsl.failure), Fix("switch-to-wddm"))
    for said in of_kind(symptoms, "linux-driver-installed", "driver-packages-listed", "wsl-linux-driver-reported"):
        listed = said.text.removeprefix("ii ").partition(":")[0]  # a line of `dpkg -l`
        package = next(filter(None, map(said.names.get, ("package", "runfile", "command"))), listed)
        text = f"A Linux NVIDIA driver was installed inside WSL ({package}), which hides the Windows driver"
        yield _Problem(text, (said.fact, wsl.failure), REMOVE)
    for said in of_kind(symptoms, "nix-named"):
        text = f"A Nix program runs in WSL, and its loader does not search {WSL_LIBRARIES}lib, where libcuda is"
        summary = "Make the program find the Windows libcuda; on NixOS-WSL set wsl.useWindowsDriver = true"
        fix = Fix("set-variable", name="LD_LIBRARY_PATH", value=f"{WSL_LIBRARIES}lib", summary=summary)
        yield _Problem(text, (said.fact, wsl.failure), fix)


def _by_driver(wsl: Wsl, driver: Driver) -> Iterator[_Problem]:
    """Yield what is wrong with the driver's files and answers inside WSL, the deepest first."""
    if driver.device_files is not None and all(node.path != "/dev/dxg" for node in driver.device_files):
        yield _Problem("WSL has no device /dev/dxg, so Windows shares no GPU with it", ("driver.device_files",), UPDATE)
    if wsl.driver_inside:
        text = f"A Linux NVIDIA driver is installed inside WSL and hides the Windows driver: {wsl.driver_inside}"
        yield _Problem(text, (wsl.driver_inside_fact,), REMOVE)
    if wsl.blocked:
        yield _Problem("NVML says inside WSL: GPU access blocked by the operating system", (wsl.blocked,), REMOVE)
    if driver.libcuda_path == "":
        yield _no_libcuda(driver)
    if driver.nvml_code or driver.nvml_error:
        fact = "driver.nvml_error" if driver.nvml_error else "driver.nvml_code"
        text = f"NVML fails inside WSL: {driver.nvml_error or driver.nvml_code}"
        yield _Problem(" ".join(text.split()), (fact,), UPDATE_DRIVER)


def _no_libcuda(driver: Driver) -> _Problem:
    files = [name for name in driver.libcuda_files or () if name.startswith(WSL_LIBRARIES)]
    if files:
        text = f"The loader of WSL does not find {files[0]}"
        fix = Fix("add-wsl-folder-to-loader", folder=f"{WSL_LIBRARIES}lib")
        return _Problem(text, ("driver.libcuda_path", "driver.libcuda_files"), fix)
    text = f"Windows gives WSL no libcuda: {WSL_LIBRARIES}lib is missing"
    fact = "driver.libcuda_files" if driver.libcuda_files is not None else "driver.libcuda_path"
    return _Problem(text, (fact,), Fix("update-wsl", first="Install the NVIDIA driver in Windows, and update WSL"))
