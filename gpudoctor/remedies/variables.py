"""Setting and removing environment variables, in the words of a POSIX shell: PowerShell's are put there later."""

from collections.abc import Sequence

from gpudoctor.model import Remedy
from gpudoctor.remedies.commands import quote, refused
from gpudoctor.remedies.fixes import fix


@fix
def unset_variable(*, name: str, summary: str = "", reference: str | None = None) -> Remedy:
    """Return how to remove a variable from the environment of this shell; what sets it must be changed too."""
    summary = summary or f"Remove {name} from the environment"
    name = name if name.isidentifier() else refused(name)
    commands = (f"unset {name}", f"printenv {name} || echo unset")
    return Remedy(summary=summary, commands=commands, needs=("restart",), reference=reference)


@fix
def set_variable(*, name: str, value: str, summary: str = "", reference: str | None = None) -> Remedy:
    """Return how to set a variable in the environment of this shell, before the program starts."""
    summary = summary or f"Set {name} to {value}"
    name = name if name.isidentifier() else refused(name)
    commands = (f"export {name}={quote(value)}", f"printenv {name}")
    return Remedy(summary=summary, commands=commands, needs=("restart",), reference=reference)


@fix
def show_devices(*, nvml_indices: Sequence[int], summary: str) -> Remedy:
    """Return how to let CUDA see only these devices, by the numbers of nvidia-smi, which follow the PCI bus.

    UUIDs would do as well, but they are masked in a snapshot, and a command must work on any machine.
    """
    numbers = ",".join(map(str, nvml_indices))
    commands = (
        "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
        f"export CUDA_VISIBLE_DEVICES={numbers}",
        "printenv CUDA_VISIBLE_DEVICES",
    )
    return Remedy(summary=summary, commands=commands, needs=("restart",))
