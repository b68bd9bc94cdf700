"""Apple's MPS backend."""

from collections.abc import Iterator

from gpudoctor.model import Environment, Finding, Fix, Place, Pytorch, System, TorchRuntime
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, most_telling, of_kind
from gpudoctor.symptoms.answers import answers

WATERMARK = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"


@check(
    family="vendor",
    explains=("torch-cpu-build", "torch-cuda-unavailable", "no-nvidia-gpu", "driver-missing", "runs-on-cpu"),
)
def mps_issues(
    pytorch: Pytorch,
    place: Place,
    torch_runtime: TorchRuntime = TorchRuntime(),
    system: System = System(),
    environment: Environment = Environment(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """PyTorch cannot use the GPU of this Mac, or a program asks for something that MPS does not support.

    Why: MPS needs an arm64 Python on Apple silicon and a macOS that is new enough for the PyTorch release. It does not
    support float64, and a Mac has no CUDA.
    Exception: Macs with an Intel processor run PyTorch on the CPU and pass. An operator that is missing is
    mps-op-not-implemented.
    Reference: https://docs.pytorch.org/docs/stable/notes/mps.html
    """
    symptom = most_telling(symptoms, "mps-fails")
    said = answers((symptom,), "mps-issues") if symptom else tuple(_cuda_on_mac(system, symptoms))
    if said:
        yield said[0]
        return
    skip_unless(known(system.os, "system.os") == "darwin", "this is not a Mac")
    skip_unless(pytorch.installed is not False, "PyTorch is not installed")
    yield from _memory_limit(environment)
    if known(torch_runtime.mps_available, "torch_runtime.mps_available") or system.machine != "arm64":
        return
    if place.about_container:
        summary = "A container on a Mac is a virtual machine with Linux and without Metal: PyTorch has no MPS in it"
        yield Finding.error("MPS", summary, ("torch_runtime.mps_available",), Fix("leave-container-on-mac"))
        return
    built = torch_runtime.mps_built
    summary = (
        "PyTorch is built without MPS on a Mac with Apple silicon"
        if built is False
        else "PyTorch is built with MPS, but macOS does not offer the device"
    )
    facts = ("torch_runtime.mps_available", "torch_runtime.mps_built" if built is not None else "")
    yield Finding.error("MPS", summary, facts, Fix("install-arm64-torch" if built is False else "update-macos"))


def _cuda_on_mac(system: System, symptoms: Symptoms) -> Iterator[Finding]:
    """Yield a finding if a program asks for CUDA on a Mac.

    On an Intel Mac only a CUDA build looks for a driver: somebody built it for a Mac of the time before MPS.
    """
    is_mac = system.os == "darwin"
    named = of_kind(symptoms, "apple-mac-named")
    if is_mac and system.machine != "arm64" and of_kind(symptoms, "torch-no-driver"):
        return
    if system.machine != "arm64" and of_kind(symptoms, "topic-no-nvidia"):
        return  # a Mac before Apple silicon: nothing there computes with MPS
    asked = of_kind(symptoms, "torch-not-compiled-with-cuda", "asks-for-cuda", "cuda-packages-listed")
    if asked and (is_mac or (named and system.os is None)):
        summary = f"A program asks for CUDA on a Mac, but PyTorch has MPS there: {asked[0].text}"
        yield Finding.error("MPS", summary, (asked[0].fact, "system.os" if is_mac else named[0].fact), Fix("use-mps"))


def _memory_limit(environment: Environment) -> Iterator[Finding]:
    value = environment.get(WATERMARK)
    if value is not None and value.strip() in ("0", "0.0"):
        summary = f"{WATERMARK}={value} removes MPS's memory limit: a job that is too large can stop the system"
        yield Finding.advice(WATERMARK, summary, (f"environment.{WATERMARK}",), Fix("unset-variable", name=WATERMARK))
