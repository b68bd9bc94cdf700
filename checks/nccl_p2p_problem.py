"""What stands between GPUs that talk to each other, and how NCCL fails there."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpudoctor.conclusions.error_codes import in_wsl
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import Device, Environment, Finding, Remedy, Severity, Symptom, System
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.remedies import set_variable, unset_variable

TROUBLESHOOTING = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
SWITCHES = {
    "NCCL_P2P_DISABLE": "transfers between GPUs over NVLink and PCIe",
    "NCCL_IB_DISABLE": "InfiniBand and RoCE between machines",
    "NCCL_SHM_DISABLE": "shared memory between processes",
}


# Kinds of symptoms, each with what they say and which remedies come first: of paths between GPUs, of the network.
PATH_KINDS = {
    "nccl-p2p-failed": "One GPU does not reach the memory of another",
    "nccl-p2p-slow": "Transfers from one GPU to another are slower than PCIe, as through an IOMMU",
    "nccl-p2p-not-on-geforce": "These GPUs have no peer-to-peer transfers, and NCCL is not told so",
    "nccl-p2p-switch-helps": "The job runs without peer-to-peer transfers and not with them",
    "nccl-hang": "A collective operation of NCCL does not return",
    "nccl-timeout": "A collective operation of NCCL did not end in time",
    "nccl-cuda-error": "A call of CUDA failed in NCCL",
}
HANGS = "job-hangs-told"
NETWORK_KINDS = {
    "nccl-socket": "NCCL's processes do not reach each other over the network",
    "nccl-system-error": "A system call failed in NCCL",
}
# What NCCL reports is then a consequence: of an error of CUDA with a name of its own, of a full memory or /dev/shm.
OTHER_CAUSES = (
    *("shm-*", "host-*", "torch-nvml-assert", "fabric-manager-*"),
    *("gpu-fallen-*", "gpu-is-lost", "gpu-handle-*", "gpu-requires-*", "gpu-ecc-*", "gpu-nvlink-*", "gpu-error-*"),
)


@check(family="multi-gpu")
def nccl_p2p_problem(
    devices: tuple[Device, ...] | None = None,
    environment: Environment | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """NCCL hangs or fails, or something stands between the GPUs of a job: a path switched off, an IOMMU, ACS.

    Why: a path that NCCL may not use makes training slow; an IOMMU or PCIe Access Control Services that redirect
    transfers between GPUs make NCCL hang or deliver wrong data. Where nothing failed, both are advice: whether a job
    suffers shows in the job.
    Exception: one GPU, GPUs with NVLink, and virtual machines, which need the IOMMU. An error of CUDA with a name of
    its own, a full memory and a full /dev/shm are causes of their own.
    Reference: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    failed = next(_failures(symptoms), None)
    if failed is not None:
        yield _failure(*failed, system=system)
        return
    stuck = _stuck(symptoms)
    if stuck is not None:
        yield replace(_failure(*stuck, system=system), severity=Severity.WARNING)
        return
    if devices is None:
        raise Skip("devices: not known")
    skip_unless(len(devices) > 1, "there is only one GPU")
    yield from _switches(environment, system)
    if system is None or not system.iommu or in_wsl(system) or any(device.nvlinks_active for device in devices):
        return
    if environment is not None and (environment.get("NCCL_P2P_DISABLE") or "0") != "0":
        return
    yield Finding(
        severity=Severity.INFO,
        summary=f"An IOMMU is on, and {len(devices)} GPUs without NVLink exchange data over PCIe: NCCL may hang",
        subject="IOMMU",
        facts=("system.iommu",),
        remedies=_path_remedies(system),
    )


def _switches(environment: Environment | None, system: System | None) -> Iterator[Finding]:
    """Yield each path that a variable switches off."""
    for name, path in SWITCHES.items():
        value = environment.get(name) if environment is not None else None
        if value and value != "0":
            yield Finding(
                severity=Severity.INFO,
                summary=f"{name}={value} keeps NCCL from using {path}",
                subject=name,
                facts=(f"environment.{name}",),
                remedies=(unset_variable(system=system, name=name),),
            )


def _failures(symptoms: tuple[Symptom, ...] | None) -> Iterator[tuple[str, Symptom]]:
    """Yield the messages that say that NCCL failed, the most telling kind first."""
    yield from reported(symptoms, "nccl-duplicate-gpu")
    network = reported(symptoms, "nccl-socket")
    paths = ("nccl-p2p-failed", "nccl-p2p-slow", "nccl-p2p-not-on-geforce", "nccl-p2p-switch-helps")
    for kind in (*paths, "nccl-socket"):
        yield from reported(symptoms, kind)
    if network or _has_other_cause(symptoms or ()):
        return
    for kind in (*PATH_KINDS, *NETWORK_KINDS):
        yield from reported(symptoms, kind)


def _stuck(symptoms: tuple[Symptom, ...] | None) -> tuple[str, Symptom] | None:
    """Return the words that say that a job does not go on, where it runs on several GPUs and nothing else failed."""
    told = reported(symptoms, HANGS)
    if not told or not reported(symptoms, "nccl-job-named") or _has_other_cause(symptoms or ()):
        return None
    return told[0]


def _has_other_cause(symptoms: Sequence[Symptom]) -> bool:
    """Return whether something else is reported that makes NCCL fail."""
    memory = any(message.kind.endswith("-out-of-memory") for message in symptoms)
    coded = any(message.code for message in symptoms)
    return memory or coded or bool(reported(tuple(symptoms), *OTHER_CAUSES))


def _failure(fact: str, message: Symptom, *, system: System | None) -> Finding:
    remedies: tuple[Remedy, ...]
    if message.kind == "nccl-duplicate-gpu":
        says, remedies = "Two processes of a job use the same GPU", (_own_device(),)
    elif message.kind in NETWORK_KINDS:
        says, remedies = NETWORK_KINDS[message.kind], _network_remedies(system)
    else:
        says = PATH_KINDS.get(message.kind, "A job on several GPUs does not go on")
        remedies = _path_remedies(system, message.kind)
    return Finding(
        severity=Severity.ERROR,
        summary=f'{says}: "{message.text[:160]}"',
        subject="NCCL",
        facts=(fact,),
        remedies=remedies,
    )


def _path_remedies(system: System | None, kind: str = "") -> tuple[Remedy, ...]:
    without = set_variable(
        system=system,
        name="NCCL_P2P_DISABLE",
        value="1",
        summary="Where a job hangs in its first collective operation, let NCCL copy through main memory",
    )
    if kind == "nccl-p2p-not-on-geforce":
        infiniband = set_variable(
            system=system, name="NCCL_IB_DISABLE", value="1", summary="And keep it from InfiniBand, too"
        )
        return without, infiniband
    direct = Remedy(
        summary="Or turn the IOMMU to passthrough (iommu=pt on the kernel's command line) and PCIe Access "
        "Control Services (ACS) off in the firmware; not in a virtual machine, which needs them",
        commands=("sudo lspci -vvv | grep -i 'ACSCtl: SrcValid+'", "nvidia-smi topo -m") if kind else (),
        needs=("root", "reboot"),
        reference=TROUBLESHOOTING,
    )
    return (without, direct, _log(system)) if kind else (without, direct)


def _log(system: System | None) -> Remedy:
    return set_variable(
        system=system,
        name="NCCL_DEBUG",
        value="INFO",
        summary="If that does not help, let NCCL say where it stops, and look whether one of the processes died first",
    )


def _network_remedies(system: System | None) -> tuple[Remedy, ...]:
    interface = Remedy(
        summary="Name the network interface that all machines of the job reach each other by (NCCL_SOCKET_IFNAME; lo "
        "on one machine alone), and open its ports in the firewall",
        commands=("ip -br addr", "export NCCL_SOCKET_IFNAME=eth0", "export NCCL_DEBUG=INFO"),
        needs=("restart",),
        reference=TROUBLESHOOTING,
    )
    shared = Remedy(
        summary="In a container also give it more shared memory and the host's network",
        commands=("docker run --gpus all --ipc=host --network=host IMAGE",),
        needs=("restart",),
        reference=TROUBLESHOOTING,
    )
    return interface, shared, _log(system)


def _own_device() -> Remedy:
    return Remedy(
        summary="Give each process a GPU of its own: torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before the "
        "process group is made, and no more processes than GPUs; MIG devices of one GPU cannot be in one job",
        commands=("torchrun --nproc-per-node=gpu train.py",),
        reference=TROUBLESHOOTING,
    )
