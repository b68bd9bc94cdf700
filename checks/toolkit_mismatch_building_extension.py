"""The CUDA toolkit that compiles extensions against PyTorch's CUDA version."""

from collections.abc import Iterator

from gpudoctor.conclusions.installed import Machine, extension_to_build, torch_fact, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.data import first_toolkit, last_toolkit
from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Device,
    Driver,
    Finding,
    Project,
    Python,
    Remedy,
    Severity,
    Symptom,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.remedies.toolkit import (
    integrate_in_visual_studio,
    name_libdevice,
    name_to_cmake,
    torch_for_toolkit,
    use_toolkit,
)

ISOLATION = (
    "Build against the PyTorch that is installed, not against one that pip downloads for the build: "
    "add --no-build-isolation to pip install"
)

# What each kind of message says; those that say most stand first.
SUMMARIES = {
    "toolkit-other-than-torch": "nvcc is of CUDA {nvcc}, PyTorch was built with CUDA {built_with}",
    "toolkit-other-than-torch-deepspeed": "nvcc is of CUDA {nvcc}, PyTorch was built with CUDA {built_with}",
    "toolkit-other-than-torch-apex": "nvcc is of another CUDA than PyTorch was built with",
    "toolkit-lacks-architecture": "nvcc does not compile for {architecture}, which the build asks for",
    "toolkit-older-than-needed": "{package} needs a CUDA toolkit of {needed} or newer",
    "toolkit-too-old-for-package": "{package} needs a CUDA toolkit of {needed} or newer",
    "toolkit-lacks-option": "nvcc does not know the option {option}: it is older than the build asks for",
    "toolkit-ptxas-version": "ptxas does not know PTX {ptx}: it is older than the compiler that wrote it",
    "toolkit-no-device-to-build-for": "The build finds no GPU and is not told for which architectures to compile",
    "toolkit-no-architectures": "The build does not know for which architectures to compile",
    "toolkit-not-in-visual-studio": "Visual Studio has no build customization of the CUDA toolkit",
    "toolkit-cmake-architecture": "CMake does not know for which architectures to compile: no nvcc, or one that fails",
    "toolkit-home-unset": "The build finds no CUDA toolkit: CUDA_HOME is not set and no nvcc is on PATH",
    "toolkit-nvcc-missing": "The build finds no nvcc",
    "toolkit-not-found-by-cmake": "CMake finds no CUDA toolkit",
    "toolkit-nvvm-missing": "Numba finds no libNVVM, which a CUDA toolkit holds",
    "toolkit-header-missing": "The compiler finds no {header}, a header of the CUDA toolkit",
    "toolkit-library-not-linked": "The linker finds no lib{name}, a library of the CUDA toolkit",
    "toolkit-libdevice-missing": "The framework finds no libdevice, which a CUDA toolkit holds",
}
WITHOUT_DEVICE = ("toolkit-no-device-to-build-for", "toolkit-no-architectures")
ABSENT = (
    *("toolkit-home-unset", "toolkit-nvcc-missing", "toolkit-not-found-by-cmake", "toolkit-nvvm-missing"),
    *("toolkit-cmake-architecture", "toolkit-header-missing", "toolkit-libdevice-missing"),
    "toolkit-library-not-linked",
)
CUT = "nvcc is of another CUDA than PyTorch was built with"  # where the report ends before the versions


@check(family="cuda")
def toolkit_mismatch_building_extension(
    toolkit: Toolkit | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    project: Project | None = None,
    python: Python | None = None,
    system: System | None = None,
    driver: Driver | None = None,
    devices: tuple[Device, ...] | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The CUDA toolkit that would compile extensions is missing, or of another major version than PyTorch's CUDA.

    Why: torch.utils.cpp_extension refuses to compile: "The detected CUDA version mismatches the version that was used
    to compile PyTorch". It takes the toolkit of CUDA_HOME, else that of nvcc on PATH; the CUDA version that nvidia-smi
    shows is the driver's. A toolkit that is older than the GPU or the package does not compile for it.
    Exception: PyTorch itself needs no toolkit, so none at all passes, and one that differs is advice unless the project
    requires a package that is still to be compiled. Minor versions may differ.
    Reference: https://docs.pytorch.org/docs/stable/cpp_extension.html
    """
    whole = whole_torch(torch, torch_runtime)
    machine = Machine(python=python, system=system, driver=driver, devices=devices)
    told = reported(symptoms, *SUMMARIES)
    if told:
        first = min(told, key=lambda pair: list(SUMMARIES).index(pair[1].kind))
        yield _told_finding(first, whole, toolkit, machine)
        return
    toolkit = known(toolkit, "toolkit")
    skip_unless(whole.build in (None, "cuda"), "PyTorch is not built for CUDA")
    skip_unless(toolkit.nvcc_path != "", "no nvcc is found, and none is needed to run PyTorch")
    nvcc = known(toolkit.nvcc_version, "toolkit.nvcc_version")
    built_with = known(whole.cuda_version, "torch.cuda_version")
    if nvcc.major == built_with.major:
        return
    extension = extension_to_build(project, python)
    needs = f", and {extension.source} asks for {extension.name}" if extension else ""
    yield Finding(
        severity=Severity.WARNING if extension else Severity.INFO,
        summary=f"nvcc is of CUDA {nvcc}, PyTorch was built with CUDA {built_with}{needs}",
        subject="nvcc",
        facts=(
            "toolkit.nvcc_version",
            torch_fact("cuda_version", torch, torch_runtime),
            *(("project.requirements",) if extension else ()),
        ),
        remedies=tuple(use_toolkit(cuda=built_with, toolkit=toolkit, python=python, system=system)),
    )


def _told_finding(told: tuple[str, Symptom], whole: Torch, toolkit: Toolkit | None, machine: Machine) -> Finding:
    """Return the finding where a build ended with a message about the toolkit."""
    fact, message = told
    text = SUMMARIES[message.kind]
    if message.kind.startswith("toolkit-other") and "built_with" not in message.names:
        text = CUT
    nvcc = toolkit.nvcc_version if toolkit is not None else None
    if message.kind.startswith("toolkit-lacks") or "needed" in message.names:
        text += f", and nvcc is of CUDA {nvcc}" if nvcc else ""
    return Finding(
        severity=Severity.ERROR,
        summary=text.format(**{"ptx": "", **message.names}),
        subject="nvcc",
        facts=(fact, *(("toolkit.nvcc_version",) if nvcc else ())),
        remedies=tuple(_told_remedies(message, nvcc, whole, toolkit, machine)),
        details=dict(message.names),
    )


def _told_remedies(
    message: Symptom, nvcc: CudaVersion | None, whole: Torch, toolkit: Toolkit | None, machine: Machine
) -> Iterator[Remedy]:
    if message.kind in WITHOUT_DEVICE:
        yield _architectures(machine)
        return
    if message.kind == "toolkit-not-in-visual-studio":
        yield integrate_in_visual_studio()
    elif message.kind == "toolkit-cmake-architecture":
        yield name_to_cmake(machine.devices)
    elif message.kind == "toolkit-libdevice-missing":
        yield name_libdevice()
    architecture = message.names.get("architecture")
    wanted = whole.cuda_version
    if architecture is not None:
        wanted = _toolkit_for(architecture) or wanted
        yield _other_architectures(architecture, nvcc)
    elif "needed" in message.names:
        wanted = max(CudaVersion.parse(message.names["needed"]), wanted or CudaVersion(0, 0))
    if message.kind in ABSENT:
        yield _export(machine)
    yield from use_toolkit(cuda=wanted, toolkit=toolkit, python=machine.python, system=machine.system)
    if nvcc is not None and whole.cuda_version is not None and nvcc.major != whole.cuda_version.major:
        remedy = torch_for_toolkit(
            nvcc=nvcc,
            python=machine.python,
            system=machine.system,
            driver=machine.driver,
            devices=machine.devices,
            torch=whole,
        )
        yield from [remedy] if remedy else ()
    if message.kind.startswith("toolkit-other-than-torch"):
        yield Remedy(summary=ISOLATION, reference="https://pip.pypa.io/en/stable/cli/pip_install/")
    if message.kind in ABSENT and message.library not in ("numba", "xla"):
        yield Remedy(
            summary="Or install a wheel of the package that is compiled already, for this Python, PyTorch and CUDA, "
            "which needs no toolkit"
        )


def _export(machine: Machine) -> Remedy:
    """Return how to name a toolkit that is there."""
    if machine.system is not None and machine.system.os == "windows":
        return Remedy(
            summary="If a CUDA toolkit is installed, set CUDA_HOME to its folder, and put its folder bin on PATH",
            commands=(
                r"Get-ChildItem 'C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA'",
                "$env:CUDA_HOME = $env:CUDA_PATH",
                r"& $env:CUDA_HOME\bin\nvcc --version",
            ),
            needs=("restart",),
        )
    return Remedy(
        summary="If a CUDA toolkit is installed (in a container: an image with devel in its tag), set CUDA_HOME to its "
        "folder and put its folder bin, with nvcc, on PATH",
        commands=(
            "ls -d /usr/local/cuda*",
            "export CUDA_HOME=/usr/local/cuda",
            'export PATH="$CUDA_HOME/bin:$PATH"',
            "nvcc --version",
        ),
        needs=("restart",),
    )


def _architectures(machine: Machine) -> Remedy:
    found = sorted({d.compute_capability for d in machine.devices or () if d.compute_capability is not None})
    listed = ";".join(map(str, found)) or "8.0;8.6;9.0"
    names = "of the GPU" if found else "of the GPUs that it will run on, for example"
    return Remedy(
        summary="Say for which architectures to compile: set TORCH_CUDA_ARCH_LIST to the compute capability "
        f"{names} (for tiny-cuda-nn TCNN_CUDA_ARCHITECTURES, without the dot); docker build has no GPU, and a PyTorch "
        "without CUDA sees none",
        commands=(f'export TORCH_CUDA_ARCH_LIST="{listed}"',),
        reference="https://docs.pytorch.org/docs/stable/cpp_extension.html",
    )


def _toolkit_for(architecture: str) -> CudaVersion | None:
    """Return a toolkit that compiles for "compute_89": the last where support ended, else the first."""
    capability = ComputeCapability.parse(architecture)
    return last_toolkit(capability) or first_toolkit(capability)


def _other_architectures(architecture: str, nvcc: CudaVersion | None) -> Remedy:
    capability = ComputeCapability.parse(architecture)
    last = last_toolkit(capability)
    first = first_toolkit(capability)
    span = f"CUDA {last} was the last" if last else f"CUDA {first} is the first" if first else "another CUDA is needed"
    here = f", and nvcc here is of CUDA {nvcc}" if nvcc else ""
    return Remedy(
        summary=f"{span} that compiles for {architecture}{here}: compile with another toolkit, or leave it out of "
        "TORCH_CUDA_ARCH_LIST (CMAKE_CUDA_ARCHITECTURES with CMake) where no such GPU is used",
        commands=("nvcc --list-gpu-arch",),
    )
