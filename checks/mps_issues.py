"""Apple's MPS backend."""

from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Environment, Finding, Python, Remedy, Severity, Symptom, System, Torch, TorchRuntime
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import python_command, unset_variable

REFERENCE = "https://docs.pytorch.org/docs/stable/notes/mps.html"
WATERMARK = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"
SHOW = "import torch, platform; print(torch.__version__, platform.mac_ver()[0], torch.backends.mps.is_available())"

# Kind of message → what it means, and what to do. Most specific first.
MESSAGES = {
    "mps-macos-too-old": (
        "This macOS is too old for MPS in this PyTorch",
        "Update macOS (PyTorch 2.9 and newer need macOS 14), or use the device cpu, or an older PyTorch",
    ),
    "mps-not-linked": (
        "This build of PyTorch has no MPS",
        (
            "On a Mac of Apple silicon install PyTorch 1.12 or newer for arm64: python -m pip install --upgrade torch "
            "in an arm64 Python, not one under Rosetta; elsewhere use cuda or cpu, for MPS is only in macOS"
        ),
    ),
    "mps-float64": (
        "MPS has no float64",
        (
            "Convert to float32 before the tensor goes to MPS: tensor.to(torch.float32).to('mps'), "
            "torch.set_default_dtype(torch.float32), or leave float64 on the CPU"
        ),
    ),
    "mps-bf16": (
        "bf16 on MPS needs macOS 14",
        "Use float16 or float32 in place of bf16, or update macOS to 14 or newer and PyTorch with it",
    ),
    "mps-placeholder": (
        "A tensor or the model is still on the CPU",
        "Move both to the device: model.to('mps') and the inputs with .to('mps'), before the first call",
    ),
    "mps-dtype-unsupported": (
        "MPS does not have what the program asks for",
        "Use float32 and int32 in place of the type, PYTORCH_ENABLE_MPS_FALLBACK=1 for the function, or update PyTorch",
    ),
    "mps-assertion": (
        "Apple's Metal library stopped the program",
        (
            "Update macOS and PyTorch, and try PYTORCH_ENABLE_MPS_FALLBACK=1, smaller tensors, or the device cpu for "
            "the step that fails"
        ),
    ),
    "mps-wrong-result": (
        "An operator computes another result on MPS than on the CPU",
        (
            "Update PyTorch, and macOS with it: wrong results of operators on MPS are mended from release to release; "
            "until then compute that step on the device cpu, or in another type (float32, int32)"
        ),
    ),
    "mps-not-available": (
        "PyTorch says that MPS is not available",
        (
            "Use Apple silicon, macOS 14 or newer, and a PyTorch for arm64 (platform.machine() is arm64): "
            "python -m pip install --upgrade torch; until then the device cpu"
        ),
    ),
}


@check(family="vendor", explains=("torch-cpu-build", "torch-cuda-unavailable", "no-nvidia-gpu", "driver-missing"))
def mps_issues(
    torch_runtime: TorchRuntime | None = None,
    torch: Torch | None = None,
    system: System | None = None,
    environment: Environment | None = None,
    python: Python | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """The GPU of this Mac is not available to PyTorch, or a program asks it for what it does not have.

    Why: MPS needs an arm64 Python on Apple silicon and a macOS that is new enough for the PyTorch release; it has no
    float64, and a Mac has no CUDA.
    Exception: Macs with an Intel processor run PyTorch on the CPU and pass. An operator that is missing is
    mps-op-not-implemented.
    Reference: https://docs.pytorch.org/docs/stable/notes/mps.html
    """
    told = _told(system, python, symptoms)
    if told is not None:
        yield told
        return
    if torch_runtime is None:
        raise Skip("torch_runtime is unknown")
    skip_unless(known(system.os if system is not None else None, "system.os") == "darwin", "this is not a Mac")
    skip_unless(torch is None or torch.installed is not False, "PyTorch is not installed")
    yield from _memory_limit(environment, system)
    available = known(torch_runtime.mps_available, "torch_runtime.mps_available")
    built = torch_runtime.mps_built
    machine = system.machine if system is not None else None
    if available or machine != "arm64":
        return
    if built is False:
        summary = "PyTorch is built without MPS on a Mac of Apple silicon"
        remedy = Remedy(
            summary="Install PyTorch's wheel for macOS on arm64, which has MPS",
            commands=(
                python_command(python, "-m", "pip", "install", "--force-reinstall", "torch"),
                python_command(python, "-c", "import torch; print(torch.backends.mps.is_available())"),
            ),
            reference=REFERENCE,
        )
    else:
        summary = "PyTorch is built with MPS, but macOS does not offer the device"
        remedy = Remedy(
            summary="Update macOS (PyTorch 2.9 and newer need macOS 14), and run outside a virtual machine",
            commands=("sw_vers", python_command(python, "-c", "import torch; print(torch.ones(1, device='mps'))")),
            needs=("reboot",),
            reference=REFERENCE,
        )
    yield Finding(
        severity=Severity.ERROR,
        summary=summary,
        subject="MPS",
        facts=("torch_runtime.mps_available", *(("torch_runtime.mps_built",) if built is not None else ())),
        remedies=(remedy,),
    )


def _told(system: System | None, python: Python | None, symptoms: tuple[Symptom, ...] | None) -> Finding | None:
    """Return what a report says of MPS, or of CUDA on a Mac."""
    for kind, (summary, advice) in MESSAGES.items():
        for fact, message in reported(symptoms, kind)[:1]:
            return Finding(
                severity=Severity.ERROR,
                summary=f"{summary}: {message.text}",
                subject="MPS",
                facts=(fact,),
                remedies=(Remedy(summary=advice, commands=(python_command(python, "-c", SHOW),), reference=REFERENCE),),
            )
    mac = system is not None and system.os == "darwin"
    on_mac = reported(symptoms, "apple-mac-named")[:1]
    if mac and system is not None and system.machine != "arm64" and reported(symptoms, "torch-no-driver"):
        # Only a CUDA build looks for a driver: somebody built it for a Mac of the time before MPS.
        return None
    asked = reported(symptoms, "torch-not-compiled-with-cuda", "asks-for-cuda")[:1]
    if not asked or not (mac or (on_mac and (system is None or system.os is None))):
        return None
    return Finding(
        severity=Severity.ERROR,
        summary=f"A program asks for CUDA on a Mac, where PyTorch has MPS: {asked[0][1].text}",
        subject="MPS",
        facts=(asked[0][0], *(("system.os",) if mac else (on_mac[0][0],))),
        remedies=(
            Remedy(
                summary="Use the device mps in place of cuda (torch.device('mps'), --device mps) on Apple silicon; "
                "builds for macOS have no CUDA. A Mac with an Intel processor uses cpu, and so does a container on any "
                "Mac, for it reaches no GPU: outside of the container mps works",
                commands=(python_command(python, "-c", SHOW),),
                reference=REFERENCE,
            ),
        ),
    )


def _memory_limit(environment: Environment | None, system: System | None) -> Iterator[Finding]:
    value = environment.get(WATERMARK) if environment is not None else None
    if value is not None and value.strip() in ("0", "0.0"):
        yield Finding(
            severity=Severity.INFO,
            summary=f"{WATERMARK}={value} takes MPS's memory limit away: a job that is too large can stop the system",
            subject=WATERMARK,
            facts=(f"environment.{WATERMARK}",),
            remedies=(unset_variable(system=system, name=WATERMARK),),
        )
