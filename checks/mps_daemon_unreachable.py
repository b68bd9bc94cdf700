"""Programs that are to share a device by the Multi-Process Service (MPS), and its daemon."""

from collections.abc import Iterator

from gpudoctor.model import DriverState, Environment, Finding, Fix, Origin
from gpudoctor.registry import CUDA_FAILS, Skip, check, skip_unless
from gpudoctor.symptoms import Symptoms, first, with_code

FOLDER = "CUDA_MPS_PIPE_DIRECTORY"
DEFAULT_FOLDER = "/tmp/nvidia-mps"  # noqa: S108 - MPS's own default, which a program reads if the variable is unset
ERRORS = {
    "cuda-805": "A program cannot reach the daemon of the Multi-Process Service (MPS): error 805",
    "cuda-806": "The server of the Multi-Process Service (MPS) does not answer a program: error 806",
    "cuda-807": "The server of the Multi-Process Service (MPS) accepts no programs at the moment: error 807",
}


@check(family="device", explains=CUDA_FAILS)
def mps_daemon_unreachable(
    origin: Origin, driver_state: DriverState, environment: Environment = Environment(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """The daemon or server of the Multi-Process Service (MPS) does not answer.

    Why: a program looks for the daemon's pipes in CUDA_MPS_PIPE_DIRECTORY, else in /tmp/nvidia-mps. If that folder
    exists and no daemon of this user answers, every CUDA call fails with error 805, 806 or 807.
    Exception: without one of these errors nothing is wrong, whatever the MPS variables say.
    Reference: https://docs.nvidia.com/deploy/mps/index.html
    """
    said = first(*(with_code(symptoms, code) for code in ERRORS))
    if said is None:
        skip_unless(not origin.is_report, "no message reports this problem")
        if not driver_state.asked:
            raise Skip("driver.cuda_init_code is unknown")
        return
    folder = environment.get(FOLDER)
    without = f"Run without MPS: remove {FOLDER}, and the folder {DEFAULT_FOLDER} if a daemon that ended left it"
    summary = ERRORS[said.code] + (f'; {FOLDER} is "{folder}"' if folder else "")
    facts = (said.fact, f"environment.{FOLDER}" if folder else "")
    yield Finding.error(
        "MPS", summary, facts, Fix("restart-mps-daemon"), Fix("unset-variable", name=FOLDER, summary=without)
    )
