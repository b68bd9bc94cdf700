"""What stands between GPUs that talk to each other, and how NCCL fails there."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.model import Devices, Environment, Finding, Fix, Place, Severity, Symptom, System
from gpudoctor.registry import Skip, check, skip_unless
from gpudoctor.symptoms import Symptoms, first, most_telling, of_kind
from gpudoctor.symptoms.answers import answers

SWITCHES = {
    "NCCL_P2P_DISABLE": "transfers between GPUs over NVLink and PCIe",
    "NCCL_IB_DISABLE": "InfiniBand and RoCE between machines",
    "NCCL_SHM_DISABLE": "shared memory between processes",
}
WEAK = ("nccl-hang", "nccl-timeout", "nccl-cuda-error", "nccl-system-error")  # they also follow from other faults

REDIRECTED = ("iommu-page-fault", "wrong-data-on-several-gpus")
"""Symptoms of an IOMMU between GPUs. Copying through main memory only goes around it."""


def _set(name: str, value: str, summary: str) -> Fix:
    return Fix("set-variable", name=name, value=value, summary=summary)


THROUGH_MEMORY = "If a job hangs in its first collective operation, make NCCL copy through main memory"
WITHOUT_P2P = _set("NCCL_P2P_DISABLE", "1", THROUGH_MEMORY)
WITHOUT_IB = _set("NCCL_IB_DISABLE", "1", "Also disable InfiniBand for NCCL")
WHERE_IT_STOPS = (
    "If that does not help, make NCCL show where it stops, and check whether one of the processes died first"
)
LOG = _set("NCCL_DEBUG", "INFO", WHERE_IT_STOPS)


@check(family="multi-gpu")
def nccl_p2p_problem(
    place: Place,
    devices: Devices = None,
    environment: Environment = Environment(),
    system: System = System(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """NCCL hangs or fails, or something can disturb it: a disabled path, an IOMMU or ACS.

    Why: a disabled path makes training slow. An IOMMU or PCIe Access Control Services that redirect transfers between
    GPUs make NCCL hang or deliver wrong data. If nothing failed, both are advice: only the job shows whether it is
    affected.
    Exception: one GPU, GPUs with NVLink, and virtual machines, which need the IOMMU, pass. CUDA errors with their own
    name, full memory and a full /dev/shm have their own checks.
    Reference: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    skip_unless(not place.is_windows, "there is no NCCL for Windows")
    failed = _failed(symptoms)
    if failed is not None:
        yield _failure(failed)
        return
    hangs = of_kind(symptoms, "job-hang-reported") if of_kind(symptoms, "nccl-job-named") else ()
    reported = first(hangs, of_kind(symptoms, "wrong-data-on-several-gpus", "iommu-page-fault"))
    if reported is not None and not _has_other_cause(symptoms):
        yield replace(_failure(reported), severity=Severity.WARNING)
        return
    if devices is None:
        raise Skip("devices: not known")
    skip_unless(len(devices) > 1, "there is only one GPU")
    variables = {name: environment.get(name) or "0" for name in SWITCHES}
    for name, value in variables.items():
        if value != "0":
            facts = (f"environment.{name}",)
            yield Finding.advice(
                name, f"{name}={value} keeps NCCL from using {SWITCHES[name]}", facts, Fix("unset-variable", name=name)
            )
    direct = not place.in_wsl and not any(device.nvlinks_active for device in devices)
    if system.iommu and direct and variables["NCCL_P2P_DISABLE"] == "0":
        summary = f"An IOMMU is on, and {len(devices)} GPUs without NVLink exchange data over PCIe: NCCL may hang"
        yield Finding.advice("IOMMU", summary, ("system.iommu",), WITHOUT_P2P, Fix("turn-iommu-to-passthrough"))


def _failed(symptoms: Symptoms) -> Symptom | None:
    weak = () if _has_other_cause(symptoms) else (of_kind(symptoms, kind) for kind in WEAK)
    return most_telling(symptoms, "nccl-fails") or first(*weak)


def _has_other_cause(symptoms: Symptoms) -> bool:
    memory_or_coded = any(symptom.code or symptom.kind.endswith("-out-of-memory") for symptom in symptoms or ())
    return memory_or_coded or bool(of_kind(symptoms, "@nccl-only-suffers"))


def _failure(said: Symptom) -> Finding:
    fixes: tuple[Fix, ...] = (WITHOUT_P2P, Fix("check-acs-and-iommu"), LOG)
    if said.kind == "nccl-duplicate-gpu":
        fixes = (Fix("give-each-process-a-gpu"),)
    elif said.kind in ("nccl-socket", "nccl-system-error"):
        fixes = (Fix("name-network-interface"), Fix("share-memory-and-network"), LOG)
    elif said.kind in REDIRECTED:
        fixes = (Fix("check-acs-and-iommu"), WITHOUT_P2P, LOG)
    elif said.kind == "imex-channel-missing":
        fixes = (Fix("make-imex-channel"),)
    elif said.kind == "imex-daemon-failed":
        fixes = (Fix("connect-imex-daemons"),)
    elif said.kind == "nccl-p2p-not-on-geforce":
        fixes = (WITHOUT_P2P, WITHOUT_IB)
    (found,) = answers((said,), "nccl-p2p-problem")
    return replace(found, fixes=fixes)
