"""Set and remove environment variables, in POSIX shell syntax; PowerShell's replaces it later."""

from collections.abc import Sequence

from gpudoctor.model import Container, Fix, Remedy
from gpudoctor.remedies.commands import quote, refused
from gpudoctor.remedies.fixes import fix


@fix
def unset_variable(*, name: str, summary: str = "", reference: str | None = None) -> Remedy:
    """Return how to remove a variable from this shell's environment; its origin must be changed too."""
    summary = summary or f"Remove {name} from the environment"
    name = name if name.isidentifier() else refused(name)
    commands = (f"unset {name}", f"printenv {name} || echo unset")
    return Remedy(summary=summary, commands=commands, needs=("restart",), reference=reference)


@fix
def set_variable(*, name: str, value: str, summary: str = "", reference: str | None = None) -> Remedy:
    """Return how to set a variable in this shell's environment before the program starts."""
    summary = summary or f"Set {name} to {value}"
    name = name if name.isidentifier() else refused(name)
    commands = (f"export {name}={quote(value)}", f"printenv {name}")
    return Remedy(summary=summary, commands=commands, needs=("restart",), reference=reference)


@fix
def show_hidden_gpus(*, name: str, container: Container) -> Fix:
    """Return how to remove a variable that hides GPUs, where it is set."""
    purpose = "unless the GPUs are hidden on purpose"
    if container.compose:
        return Fix("remove-variable-from-compose", name=name, purpose=purpose)
    places = "~/.bashrc, a job script, os.environ in the program"
    return Fix(
        "unset-variable", name=name, summary=f"Remove {name}, also where it is set for good ({places}), {purpose}"
    )


@fix
def show_devices(*, nvml_indices: Sequence[int], summary: str) -> Remedy:
    """Return how to make only these devices visible to CUDA, by nvidia-smi's numbers, which follow the PCI bus.

    UUIDs would also work, but they are masked in a snapshot, and a command must work on any machine.
    """
    numbers = ",".join(map(str, nvml_indices))
    commands = (
        "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
        f"export CUDA_VISIBLE_DEVICES={numbers}",
        "printenv CUDA_VISIBLE_DEVICES",
    )
    return Remedy(summary=summary, commands=commands, needs=("restart",))
