"""Fixes about gpudoctor itself: a failed probe, and tuning again."""

from gpudoctor.model import FoundProfile, Python, Remedy, System
from gpudoctor.remedies.commands import is_windows, python_command, quote_value
from gpudoctor.remedies.fixes import fix

CODE = {
    "torch-runtime": "import torch; print(torch.cuda.is_available())",
    "cupy-runtime": "import cupy; print(cupy.ones(2).sum())",
    "cuda-driver": "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))",
}
COMMANDS = {"nvml": "nvidia-smi"}


@fix
def repeat_probe(*, python: Python, probe: str, fatal: bool = False) -> Remedy:
    """Return the command that makes the probe's library call. fatal: the probe hung or died."""
    if probe in CODE:
        windows = (python.platform_tag or "").startswith("win")
        code = CODE[probe].replace("libcuda.so.1", "nvcuda.dll") if windows else CODE[probe]
        command = python_command(python, "-X", "faulthandler", "-c", code)
    elif probe in COMMANDS:
        command = COMMANDS[probe]
    else:
        return Remedy(
            summary="Run gpudoctor again. If the probe fails again, report it with the output of gpudoctor record"
        )
    summary = "Reproduce the failure without gpudoctor, to see the library's own message"
    if fatal:
        summary += ". If that hangs or crashes too, look for Xid errors in the kernel log, and reboot"
    return Remedy(summary=summary, commands=(command,))


@fix
def tune_again(*, profile: FoundProfile | None, python: Python = Python(), system: System = System()) -> Remedy:
    """Return how to write this machine's profile, for the same workload as an existing profile."""
    if profile is None:
        return Remedy(summary="Tune on this machine, which writes the profile again", commands=("gpudoctor tune",))
    windows = is_windows(python, system)
    options = {
        "--workload": profile.workload,
        "--mode": profile.mode if profile.mode == "inference" else None,
        "--device": profile.device,
    }
    words = [word for option, value in options.items() if value for word in (option, quote_value(value, windows))]
    return Remedy(
        summary="Tune again on this machine, which writes the profile again",
        commands=(
            " ".join(["gpudoctor tune", *words]),
            f"gpudoctor profile verify {quote_value(profile.path, windows)}",
        ),
    )
