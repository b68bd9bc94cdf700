"""The parts of ROCm besides PyTorch: kernel driver, permissions, libraries."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Finding, Remedy, Severity, Symptom, System
from gpudoctor.registry import check, skip_unless
from gpudoctor.remedies.commands import with_sudo

PREREQUISITES = "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/prerequisites.html"


@check(family="vendor", explains=("torch-cuda-unavailable", "torch-import-failed", "torch-cpu-build"))
def rocm_stack_incomplete(symptoms: tuple[Symptom, ...], system: System | None = None) -> Iterator[Finding]:
    """ROCm cannot reach the AMD GPU: no permission, no kernel driver, or a library of another version.

    Why: ROCm opens /dev/kfd and /dev/dri/renderD*, which belong to the groups render and video; a container gets them
    by --device. A library of ROCm carries its major version in its name, so that ROCm 7 has no libhipblas.so.2.
    Exception: only what a report says is found here; on this machine the device nodes are not read.
    Reference: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/prerequisites.html
    """
    denied = reported(symptoms, "rocm-kfd-denied")[:1]
    unloaded = reported(symptoms, "rocm-module-not-loaded")[:1]
    library = reported(symptoms, "rocm-library-missing")[:1]
    unseen = reported(symptoms, "rocm-no-device")[:1]
    skip_unless(denied or unloaded or library or unseen, "no such message in the report")
    if unloaded:
        yield _finding(unloaded[0], "The kernel driver of ROCm is not loaded", (_driver(), _permissions(system)))
    elif denied:
        yield _finding(denied[0], "The AMD GPU cannot be opened", (_permissions(system), _container()))
    if library:
        name = library[0][1].names.get("library", "a library")
        yield _finding(library[0], f"The ROCm library {name} is missing, or of another version", (_libraries(),))
    elif unseen and not (denied or unloaded):
        yield _finding(
            unseen[0], "PyTorch for ROCm sees no GPU", (_permissions(system), _container(), _visible(), _driver())
        )


def _finding(said: tuple[str, Symptom], summary: str, remedies: tuple[Remedy, ...]) -> Finding:
    fact, message = said
    return Finding(
        severity=Severity.ERROR,
        summary=f"{summary}: {message.text}",
        subject="ROCm",
        facts=(fact,),
        remedies=remedies,
    )


def _permissions(system: System | None) -> Remedy:
    return Remedy(
        summary="Add the user to the groups render and video, which own /dev/kfd and /dev/dri/renderD*",
        commands=("ls -l /dev/kfd /dev/dri", with_sudo('usermod -aG render,video "$USER"', system), "rocminfo"),
        needs=("root", "restart"),
        reference=PREREQUISITES,
    )


def _container() -> Remedy:
    return Remedy(
        summary="Start a container with the devices and groups: docker run --device=/dev/kfd --device=/dev/dri "
        "--group-add video --group-add render",
        reference="https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html",
    )


def _visible() -> Remedy:
    return Remedy(
        summary="Look whether HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES hides the GPU, and "
        "whether the GPU is one of NVIDIA, which a ROCm build cannot use",
        commands=("env | grep VISIBLE_DEVICES", "rocminfo | grep gfx"),
    )


def _driver() -> Remedy:
    return Remedy(
        summary="Load amdgpu, and where there is none install AMD's driver (amdgpu-dkms) for the running kernel",
        commands=("sudo modprobe amdgpu", "sudo dmesg | grep -iE 'amdgpu|kfd'", "rocminfo"),
        needs=("root",),
        reference=PREREQUISITES,
    )


def _libraries() -> Remedy:
    return Remedy(
        summary="Install the build that is made for the installed major version of ROCm, or that ROCm; on a machine "
        "with an NVIDIA GPU install the CUDA build",
        commands=("ls -d /opt/rocm*", "python -m pip list | grep -i torch"),
        reference="https://pytorch.org/get-started/locally/",
    )
