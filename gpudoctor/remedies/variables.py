"""Setting and removing environment variables."""

from collections.abc import Sequence

from gpudoctor.model import Remedy, System
from gpudoctor.remedies.commands import quote
from gpudoctor.remedies.fixes import fix


@fix
def unset_variable(*, system: System | None, name: str, summary: str = "", reference: str | None = None) -> Remedy:
    """Return how to remove a variable from the environment of this shell; what sets it must be changed too."""
    if _is_windows(system):
        commands: tuple[str, ...] = (f"Remove-Item Env:{name}", f"Test-Path Env:{name}")
    else:
        commands = (f"unset {quote(name)}", f"printenv {quote(name)} || echo unset")
    summary = summary or f"Remove {name} from the environment"
    return Remedy(summary=summary, commands=commands, needs=("restart",), reference=reference)


@fix
def set_variable(
    *, system: System | None, name: str, value: str, summary: str = "", reference: str | None = None
) -> Remedy:
    """Return how to set a variable in the environment of this shell, before the program starts."""
    if _is_windows(system):
        literal = "'" + value.replace("'", "''") + "'"
        commands: tuple[str, ...] = (f"$env:{name} = {literal}", f"$env:{name}")
    else:
        commands = (f"export {quote(name)}={quote(value)}", f"printenv {quote(name)}")
    return Remedy(
        summary=summary or f"Set {name} to {value}", commands=commands, needs=("restart",), reference=reference
    )


@fix
def show_devices(*, system: System | None, nvml_indices: Sequence[int], summary: str) -> Remedy:
    """Return how to let CUDA see only these devices, by the numbers of nvidia-smi, which follow the PCI bus.

    UUIDs would do as well, but they are masked in a snapshot, and a command must work wherever it was worked out.
    """
    numbers = ",".join(map(str, nvml_indices))
    if _is_windows(system):
        commands: tuple[str, ...] = (
            "$env:CUDA_DEVICE_ORDER = 'PCI_BUS_ID'",
            f"$env:CUDA_VISIBLE_DEVICES = '{numbers}'",
            "$env:CUDA_VISIBLE_DEVICES",
        )
    else:
        commands = (
            f"export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={numbers}",
            "printenv CUDA_VISIBLE_DEVICES",
        )
    return Remedy(summary=summary, commands=commands, needs=("restart",))


def _is_windows(system: System | None) -> bool:
    return system is not None and system.os == "windows"
