"""Devices on which mixed precision brings nothing."""

from collections.abc import Iterator

from gpudoctor.data.capabilities import Features, features, has_tensor_cores
from gpudoctor.data.gpu_names import device_capability
from gpudoctor.model import ComputeCapability, Device, Devices, Finding, Fix, Severity, Symptom, known_facts
from gpudoctor.registry import Skip, check, known, reachable
from gpudoctor.symptoms import Symptoms, of_kind
from gpudoctor.symptoms.answers import answers

NAMED = ("gpu-named-without-tensor-cores", "gpu-named-gtx-16")


@check(family="precision", explains=("fp16-nan",))
def amp_unsupported(devices: Devices = None, symptoms: Symptoms = None) -> Iterator[Finding]:
    """Mixed precision is not faster on a device without tensor cores, or the device does not support it.

    Why: autocast does not check the compute capability. On Pascal 6.1 fp16 arithmetic runs at 1/64 of the fp32 rate.
    The GTX 16 series reports 7.5 like an RTX 2080, but has no tensor cores. On the CPU, many operators do not support
    fp16: "not implemented for 'Half'".
    Exception: if no program failed, this is advice, because fp16 still halves memory. P100 and Jetson TX2 pass, because
    their fp16 arithmetic is fast, unless a measurement shows no gain.
    Reference: https://docs.pytorch.org/docs/stable/amp.html
    """
    failed = answers(symptoms, "amp-unsupported")
    yield from failed
    slow = (of_kind(symptoms, "amp-no-gain") or _slow_with_amp(symptoms))[:1]
    named = of_kind(symptoms, *NAMED)
    if slow and named and not devices:
        yield _named(slow[0], named[0])
    said = bool(failed or (slow and named and not devices))
    if said and devices is None:
        return
    findings: dict[tuple[ComputeCapability, str | None], Finding] = {}
    unknown = ""
    for path, device in reachable(known(devices, "devices")):
        number = known(device_capability(device), f"{path}.compute_capability")
        table = features(number)
        tensor_cores = has_tensor_cores(device, table)
        if table is None or tensor_cores is None:
            unknown = unknown or f"the tables do not say whether compute capability {number} has tensor cores"
        elif not tensor_cores and (slow or table.fp16 != "native" or table.tensor_cores is not False):
            findings.setdefault((number, device.name), _finding(path, device, table, slow))
    yield from findings.values()
    if unknown and not findings and not said:
        raise Skip(unknown)


def _slow_with_amp(symptoms: Symptoms) -> tuple[Symptom, ...]:
    """Return the complaint about a slow program that uses mixed precision by default, on a GTX 16."""
    is_of_16 = of_kind(symptoms, "gpu-named-gtx-16") and of_kind(symptoms, "amp-by-default")
    return of_kind(symptoms, "slow-program-reported") if is_of_16 else ()


def _named(slow: Symptom, gpu: Symptom) -> Finding:
    summary = f"{gpu.text} has no tensor cores, and mixed precision was not faster: {slow.text}"
    return Finding.warning(gpu.text, summary, (slow.fact, gpu.fact), Fix("compute-in-fp32"))


def _finding(path: str, device: Device, table: Features, slow: tuple[Symptom, ...]) -> Finding:
    rate = f", fp16 {table.fp16}" if table.fp16 else ""
    summary = f"{device.label} has no tensor cores (compute capability {table.capability}{rate})"
    facts = (*known_facts(path, device, "name", "compute_capability"), *(symptom.fact for symptom in slow))
    return Finding.of(Severity.WARNING if slow else Severity.INFO, device.label, summary, facts, Fix("compute-in-fp32"))
