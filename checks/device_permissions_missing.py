"""Whether this user may open the driver's device nodes."""

from collections.abc import Iterator

from gpudoctor.model import Driver, Finding, Fix, Place
from gpudoctor.registry import CUDA_FAILS, check, known, skip_unless
from gpudoctor.symptoms import Symptoms
from gpudoctor.symptoms.answers import answers


@check(family="driver", explains=(*CUDA_FAILS, "driver-not-loaded"))
def device_permissions_missing(place: Place, driver: Driver = Driver(), symptoms: Symptoms = None) -> Iterator[Finding]:
    """The driver's device nodes exist, but this user cannot open them.

    Why: libcuda opens /dev/nvidiactl, /dev/nvidia-uvm and /dev/nvidia0. Without permission CUDA sees no device,
    although nvidia-smi works for root.
    Exception: a batch system that grants some GPUs denies the others on purpose. Containers have their own check.
    Reference: https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/faq.html
    """
    skip_unless(not place.in_container, "a container gets its device nodes from the host")
    skip_unless(not place.in_wsl, "WSL has no NVIDIA device nodes")
    said = answers(symptoms, "device-permissions-missing")
    if said:
        yield from said
        return
    nodes = known(driver.gpu_nodes, "driver.device_files")
    refused = [node for node in nodes if node.accessible is False]
    gpus = [node for node in nodes if node.path[-1].isdigit()]
    if not refused or (all(node in gpus for node in refused) and any(node not in refused for node in gpus)):
        return
    first = refused[0]
    more = f" and {len(refused) - 1} more device nodes" if len(refused) > 1 else ""
    reason = f" ({first.error})" if first.error else ""
    summary = f"This user cannot open {first.path}{more} (mode {first.mode or 'unknown'}){reason}"
    facts = (f"driver.device_files[{(driver.device_files or ()).index(node)}].accessible" for node in refused)
    yield Finding.error(
        first.path, summary, facts, Fix("ask-batch-system" if first.refused_by_cgroup else "join-device-group")
    )
