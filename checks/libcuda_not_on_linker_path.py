"""Whether the loader, and the linker, find the driver's libcuda."""

import re
import shlex
from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import in_container, in_wsl
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Device, Driver, Finding, Remedy, Severity, Symptom, System, TorchRuntime
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies.commands import with_sudo

WSL_FOLDER = "/usr/lib/wsl/lib"
USUAL_FOLDER = "/usr/lib/x86_64-linux-gnu"  # of Debian and Ubuntu

# Symptoms of a linker, which needs libcuda.so beside libcuda.so.1, and of Triton, which links at run time.
LINKERS = (
    *("libcuda-not-linked", "libcuda-not-found-by-triton", "libcuda-ldconfig-failed"),
    "libcuda-not-found-by-cudnn",
)
# Symptoms of a loader: as well those of a machine without a driver.
LOADERS = ("libcuda-not-found-by-numba", "libcuda-not-opened", "nvidia-smi-without-cuda")


@check(
    family="cuda",
    explains=(
        "torch-cuda-unavailable",
        "cupy-unusable",
        "nvidia-container-toolkit-missing",
        "container-engine-cannot-give-gpu",
    ),
)
def libcuda_not_on_linker_path(
    driver: Driver | None = None,
    system: System | None = None,
    devices: tuple[Device, ...] | None = None,
    torch_runtime: TorchRuntime | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The driver's library libcuda is installed where the loader or the linker does not look.

    Why: PyTorch and CuPy load libcuda.so.1 by its name; where the loader does not find it they report no driver.
    Triton and builds of extensions link with libcuda.so and end with "cannot find -lcuda".
    Exception: stubs of a toolkit and forward compatibility packages are no libcuda of a driver, for a linker they do.
    Where the loader finds none and no driver answers, that is driver-missing.
    Reference: https://man7.org/linux/man-pages/man8/ld.so.8.html
    """
    linker = reported(symptoms, *LINKERS)
    if linker:
        yield _linker_finding(linker[0], system)
        return
    works = torch_runtime is not None and torch_runtime.available is True
    loader = () if works or (system is not None and system.os == "windows") else reported(symptoms, *LOADERS)
    skip_unless(not in_wsl(system), "where libcuda lies in WSL is for wsl-driver-problem")
    if loader and _answers(driver, devices) and not in_container(system):
        yield _loader_finding(loader[0], driver, system)
        return
    facts = driver if driver is not None else Driver()
    path = known(facts.libcuda_path, "driver.libcuda_path")
    if path:
        return
    files = [name for name in known(facts.libcuda_files, "driver.libcuda_files") if _is_drivers(name)]
    if not files:
        return
    error = facts.libcuda_error or ""
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


def _answers(driver: Driver | None, devices: tuple[Device, ...] | None) -> bool:
    """Return whether nvidia-smi showed a driver: it needs no libcuda."""
    if driver is None or driver.nvml_error:
        return False
    return driver.version is not None and bool(devices)


def _linker_finding(told: tuple[str, Symptom], system: System | None) -> Finding:
    fact, message = told
    files = re.findall(r"/[\w./+-]{3,150}", message.names.get("files", ""))
    there = f", although {files[0]} is there" if files else ""
    who = {"triton": "Triton", "cudnn": "cuDNN"}.get(message.library, "The linker")
    use = "load" if message.library == "cudnn" else "link with"
    return Finding(
        severity=Severity.ERROR,
        summary=f"{who} finds no libcuda.so to {use}{there}",
        subject="libcuda.so",
        facts=(fact,),
        remedies=_linker_remedies(files[0] if files else "", system),
    )


def _linker_remedies(found: str, system: System | None) -> tuple[Remedy, ...]:
    wsl = in_wsl(system)
    folder = found.rpartition("/")[0] or (WSL_FOLDER if wsl else USUAL_FOLDER)
    library = found or f"{folder}/libcuda.so.1"
    link = f"ln -s {shlex.quote(library)} {shlex.quote(f'{folder}/libcuda.so')}"
    search = "ldconfig -p | grep libcuda.so"
    return (
        Remedy(
            summary="Write the loader's cache anew, see where the driver's libcuda lies, and give it the name "
            "libcuda.so that the linker looks for" + ("" if found else f" (its folder is {folder} as a rule)"),
            commands=(with_sudo("ldconfig", system), search, with_sudo(link, system), with_sudo("ldconfig", system)),
            needs=("root",),
        ),
        Remedy(
            summary="Without root, name the folder of libcuda.so for this shell: "
            + (f"that of WSL is {WSL_FOLDER}" if wsl else f"the driver's, in WSL {WSL_FOLDER}")
            + "; to link alone, the stubs folder of the CUDA toolkit will do",
            commands=(
                f'export LIBRARY_PATH="{folder}:/usr/local/cuda/lib64/stubs${{LIBRARY_PATH:+:$LIBRARY_PATH}}"',
                f'export LD_LIBRARY_PATH="{folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"',
                f"export TRITON_LIBCUDA_PATH={shlex.quote(folder)}",
            ),
            needs=("restart",),
            reference="https://github.com/triton-lang/triton/pull/1981",
        ),
        Remedy(
            summary="In a container without libcuda, start it with the GPU: docker run --gpus all",
            reference="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html",
        ),
    )


def _loader_finding(told: tuple[str, Symptom], driver: Driver | None, system: System | None) -> Finding:
    fact, message = told
    version = driver.version if driver is not None else None
    library = message.names.get("library", "libcuda.so.1")
    return Finding(
        severity=Severity.ERROR,
        summary=f"The loader finds no {library}, although driver {version} works",
        subject=library,
        facts=(fact, "driver.version"),
        remedies=(
            Remedy(
                summary="Find the driver's libcuda and add its folder to the loader's path; if there is none, install "
                "the driver's compute libraries (Debian and Ubuntu: libnvidia-compute of the driver's branch)",
                commands=(
                    "find / -name 'libcuda.so*' -not -path '*/stubs/*' 2>/dev/null",
                    f"echo {USUAL_FOLDER} | sudo tee /etc/ld.so.conf.d/nvidia-libcuda.conf",
                    with_sudo("ldconfig", system),
                    "ldconfig -p | grep libcuda.so",
                ),
                needs=("root",),
            ),
            *_remedies(USUAL_FOLDER)[1:],
        ),
    )


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
