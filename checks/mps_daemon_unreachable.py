"""Programs that are to share a device by the Multi-Process Service (MPS), and its daemon."""

from collections.abc import Iterator

from gpudoctor.conclusions.error_codes import (
    MPS_CONNECTION_FAILED,
    MPS_NOT_READY,
    MPS_RPC_FAILURE,
    cuda_error,
    in_container,
)
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import (
    CupyRuntime,
    Driver,
    Environment,
    Finding,
    Remedy,
    Severity,
    Symptom,
    System,
    TorchRuntime,
)
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.remedies import unset_variable

GUIDE = "https://docs.nvidia.com/deploy/mps/index.html"
FOLDER = "CUDA_MPS_PIPE_DIRECTORY"
DEFAULT_FOLDER = "/tmp/nvidia-mps"  # noqa: S108 - MPS's own default, which a program reads where the variable is unset
ERRORS = {
    MPS_CONNECTION_FAILED: "a program cannot reach the daemon of the Multi-Process Service (MPS): error 805",
    MPS_RPC_FAILURE: "the server of the Multi-Process Service (MPS) does not answer a program: error 806",
    MPS_NOT_READY: "the server of the Multi-Process Service (MPS) takes no programs now: error 807",
}


@check(family="device", explains=("torch-cuda-unavailable", "cupy-unusable", "cuda-init-unknown-error-999"))
def mps_daemon_unreachable(
    driver: Driver | None = None,
    torch_runtime: TorchRuntime | None = None,
    cupy_runtime: CupyRuntime | None = None,
    environment: Environment | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """CUDA is to run through the Multi-Process Service (MPS), and its daemon or server does not answer.

    Why: a program looks for the daemon's pipes in CUDA_MPS_PIPE_DIRECTORY, else in /tmp/nvidia-mps. Where that folder
    is there and no daemon of this user answers, every CUDA call fails with error 805, 806 or 807.
    Exception: without one of these errors nothing is wrong, whatever the variables of MPS say.
    Reference: https://docs.nvidia.com/deploy/mps/index.html
    """
    found = [(code, cuda_error(code, driver, torch_runtime, cupy_runtime, symptoms)) for code in ERRORS]
    said = next(((code, fact) for code, fact in found if fact), None)
    if said is None:
        skip_unless(not reported(symptoms, "*"), "no such message in the report")
        if (driver is None or driver.cuda_init_code is None) and torch_runtime is None and cupy_runtime is None:
            raise Skip("driver.cuda_init_code is unknown")
        return
    code, fact = said
    folder = environment.get(FOLDER) if environment is not None else None
    named = f'; {FOLDER} is "{folder}"' if folder else ""
    yield Finding(
        severity=Severity.ERROR,
        summary=f"{ERRORS[code][0].upper()}{ERRORS[code][1:]}{named}",
        subject="MPS",
        facts=(fact or "", *((f"environment.{FOLDER}",) if folder else ())),
        remedies=_remedies(system),
    )


def _remedies(system: System | None) -> tuple[Remedy, ...]:
    inside = in_container(system)
    start = Remedy(
        summary="Start the daemon anew, as the user who runs the programs and with the same "
        f"{FOLDER}" + ("; in a container mount that folder of the host and share its IPC" if inside else ""),
        commands=(
            "echo quit | nvidia-cuda-mps-control",
            "nvidia-cuda-mps-control -d",
            "echo get_server_list | nvidia-cuda-mps-control",
        ),
        needs=("restart",),
        reference=GUIDE,
    )
    without = unset_variable(
        system=system,
        name=FOLDER,
        summary=f"Or run without MPS: remove {FOLDER}, and the folder {DEFAULT_FOLDER} where an ended daemon left it",
    )
    return (start, without)
