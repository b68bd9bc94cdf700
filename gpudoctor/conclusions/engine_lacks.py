"""What a container engine lacks to give a container the requested GPU."""

from gpudoctor.model import Container, EngineLack, SeenSetup

NAMED = 5  # runtimes and devices that a message names
CDI = "container-cdi-unresolvable"


def engine_lack(seen: SeenSetup, container: Container) -> EngineLack | None:
    """Return what the engine lacks for the container; nothing for a running container.

    container: the engines of this machine, from their files.
    """
    runtime, engine = seen.setup.runtime or "", seen.engine
    if seen.setup.state == "running":
        return None
    if runtime.startswith("nvidia") and engine.runtimes is not None and runtime not in engine.runtimes:
        return EngineLack(
            kind="container-unknown-runtime",
            text=f"The {seen.label} uses the runtime {runtime[:40]}, which is not one of the engine's runtimes: "
            f"{_some(engine.runtimes)}",
            facts=("containers.engine.runtimes", seen.fact("runtime")),
        )
    if seen.gpu_access == "cdi":
        return _cdi_lack(seen)
    if seen.gpu_access == "request" and _has_no_toolkit(seen, container):
        return EngineLack(
            kind="container-no-device-driver",
            text=f"The {seen.label} asks for a GPU, but the NVIDIA Container Toolkit, which provides it, is not "
            "installed",
            facts=("container.toolkit_installed", seen.fact("gpu_requests")),
        )
    return None


def _has_no_toolkit(seen: SeenSetup, container: Container) -> bool:
    """Return whether the engine cannot give a GPU to any container.

    For --gpus Docker needs the toolkit's hook, not the nvidia runtime. Source: its daemon/nvidia_linux.go.
    """
    engine = seen.engine
    if engine.is_local is False or container.toolkit_installed is not False:
        return False
    return not ("nvidia" in (engine.runtimes or ()) or engine.cdi_devices or container.cdi_devices)


def _cdi_lack(seen: SeenSetup) -> EngineLack | None:
    engine, requests = seen.engine, seen.setup.gpu_requests or ()
    names = [name for request in requests for name in request.device_ids if name.startswith("nvidia.com/")]
    asks = f"The {seen.label} asks for the CDI device"
    if engine.cdi_folders == ():
        text, fact = f"{asks} {names[0][:80]}, but CDI is switched off", "cdi_folders"
    else:
        missing = [name for name in names if engine.cdi_devices is not None and name not in engine.cdi_devices]
        if not missing:
            return None
        found = _some(engine.cdi_devices or ())
        text, fact = f"{asks} {missing[0][:80]}, which is not one of the engine's devices: {found}", "cdi_devices"
    return EngineLack(kind=CDI, text=text, facts=(f"containers.engine.{fact}", seen.fact("gpu_requests")))


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:NAMED]) or "none"
