"""Signs of a fault in the hardware: Xid errors of the driver, memory errors, a device that is lost."""

from collections.abc import Iterable, Iterator
from typing import Any

from gpudoctor.data.errors import xid_meaning
from gpudoctor.model import FaultSign, Finding, Fix, GpuFault, GpuFaults, Severity
from gpudoctor.registry import CUDA_FAILS, Skip, check
from gpudoctor.symptoms import Symptoms
from gpudoctor.symptoms.answers import answers


@check(family="device", explains=(*CUDA_FAILS, "nccl-p2p-problem"))
def gpu_hardware_xid_ecc(gpu_faults: GpuFaults, symptoms: Symptoms = None) -> Iterator[Finding]:
    """The driver logged a hardware fault, memory has uncorrectable errors, or a device is lost.

    Why: programs end with "uncorrectable ECC error" or "unspecified launch failure", or hang. No change in software
    helps. A device that fell off the bus needs at least a restart.
    Exception: Xid errors that the catalogue attributes to a program (13, 31, 43, 45 and others) are advice only, and so
    are numbers that it does not list, and PCIe errors that the hardware corrected. Lifetime error counts are ignored if
    there are no current errors.
    Reference: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
    """
    said = () if gpu_faults.faulty else answers(symptoms, "gpu-hardware-xid-ecc")
    yield from (*map(_finding, gpu_faults.faulty), *said)
    if gpu_faults.not_started is not None:
        # The module nvidia stays loaded only if it found a GPU: nvidia_init_module in kernel-open/nvidia/nv.c.
        summary = "The driver is loaded, but nvidia-smi finds no device: the driver could not initialise the GPU"
        facts: tuple[str, ...] = (gpu_faults.not_started.fact,)
        yield Finding.warning("GPU", summary, facts, Fix("find-why-gpu-does-not-start"), Fix("start-cold"))
    of_programs = gpu_faults.of_programs
    if of_programs:
        summary = f"The driver logged {_listed(of_programs)}, which need no reset of the device, according to NVIDIA"
        facts = tuple(sign.fact for sign in of_programs)
        yield Finding.advice(
            "kernel log", summary, facts, Fix("find-illegal-memory-access"), details={"xids": _xids(of_programs)}
        )
    elif not (said or gpu_faults.faulty or gpu_faults.not_started or gpu_faults.known):
        raise Skip("Xid errors and memory errors of the GPUs are unknown")


def _finding(fault: GpuFault) -> Finding:
    named = fault.subject if fault.nvml_index is not None else f"The GPU at {fault.subject}"
    gpu = "The GPU" if fault.subject == "GPU" else named
    return Finding.of(
        Severity.ERROR if fault.severe else Severity.WARNING,
        fault.subject,
        f"{gpu} shows {_listed(fault.signs)}",
        dict.fromkeys(sign.fact for sign in fault.signs),
        Fix("replace-device") if fault.worn_out else None,
        Fix("reset-gpu", nvml_index=fault.nvml_index, lost=fault.lost),
        details={"xids": _xids(fault.signs)},
    )


def _listed(signs: Iterable[FaultSign]) -> str:
    return ", ".join(dict.fromkeys(sign.text for sign in signs))


def _xids(signs: Iterable[FaultSign]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for xid in (sign.xid for sign in signs if sign.xid is not None):
        rows.append({"number": xid.number, "pci_address": xid.pci_address, "text": xid.text})
        meaning = xid_meaning(xid.number)
        if meaning is not None:
            rows[-1] |= {"mnemonic": meaning.mnemonic, "action": meaning.action, "investigation": meaning.investigation}
    return rows
