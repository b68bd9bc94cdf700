"""What an engine lacks to hand the GPU to a container that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.conclusions.container_setups import CDI_KIND, gpu_way, named
from gpudoctor.model import Container, ContainerEngine, ContainerSetup
from gpudoctor.model.record import record

NAMED = 5  # runtimes, devices and containers that a summary names
CDI = "container-cdi-unresolvable"


@record
class Lack:
    """What a container seen from outside cannot be given.

    kind: of the failure message by which an engine says so. text: in a sentence. facts: that show it, the first first.
    """

    setup: ContainerSetup
    kind: str
    text: str
    facts: tuple[str, ...]


def lacks_of_engine(
    path: str, setup: ContainerSetup, engine: ContainerEngine, container: Container | None
) -> Iterator[Lack]:
    """Yield what the engine lacks for the container, if anything.

    path: of the setup's facts. container: the engines of this machine, as their files tell.
    """
    runtime = setup.runtime or ""
    way = gpu_way(setup, engine)
    if runtime.startswith("nvidia") and engine.runtimes is not None and runtime not in engine.runtimes:
        yield Lack(
            setup=setup,
            kind="container-unknown-runtime",
            text=f"The {named(setup)} is started by the runtime {runtime[:40]}, which is not among the engine's: "
            f"{_some(engine.runtimes)}",
            facts=("containers.engine.runtimes", f"{path}.runtime"),
        )
    elif way == "cdi":
        yield from _lacks_of_cdi(path, setup, engine)
    elif way == "request" and _has_no_toolkit(engine, container):
        yield Lack(
            setup=setup,
            kind="container-no-device-driver",
            text=f"The {named(setup)} asks for a GPU, and the NVIDIA Container Toolkit, by which the engine hands it "
            "over, is not installed",
            facts=("container.toolkit_installed", f"{path}.gpu_requests"),
        )


def _has_no_toolkit(engine: ContainerEngine, container: Container | None) -> bool:
    """Return whether the engine can hand over no GPU.

    For --gpus Docker needs no runtime nvidia, but the toolkit's hook. Source: its daemon/nvidia_linux.go.
    """
    if engine.is_local is False or container is None or container.toolkit_installed is not False:
        return False
    return not ("nvidia" in (engine.runtimes or ()) or engine.cdi_devices or container.cdi_devices)


def _lacks_of_cdi(path: str, setup: ContainerSetup, engine: ContainerEngine) -> Iterator[Lack]:
    names = [name for request in setup.gpu_requests or () for name in request.device_ids if name.startswith(CDI_KIND)]
    asks = f"The {named(setup)} asks for the CDI device"
    if engine.cdi_folders == ():
        text, fact = f"{asks} {names[0][:80]}, and CDI is switched off", "cdi_folders"
    else:
        missing = [name for name in names if engine.cdi_devices is not None and name not in engine.cdi_devices]
        if not missing:
            return
        found = _some(engine.cdi_devices or ())
        text, fact = f"{asks} {missing[0][:80]}, which is not among the engine's: {found}", "cdi_devices"
    facts = (f"containers.engine.{fact}", f"{path}.gpu_requests")
    yield Lack(setup=setup, kind=CDI, text=text, facts=facts)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:NAMED]) or "none"
