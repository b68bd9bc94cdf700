"""Devices on which mixed precision brings nothing."""

import re
from collections.abc import Iterator

from gpudoctor.conclusions.messages import reported
from gpudoctor.data import Features, device_capability, features, has_tensor_cores
from gpudoctor.model import ComputeCapability, Device, Finding, Python, Remedy, Severity, Symptom, known_facts
from gpudoctor.registry import Skip, check, known, reachable
from gpudoctor.remedies import python_command

NAMED = ("gpu-named-without-tensor-cores", "gpu-named-gtx-16")
REFERENCE = "https://docs.pytorch.org/docs/stable/amp.html"
SHOW = "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"


@check(family="precision", explains=("fp16-nan",))
def amp_unsupported(
    devices: tuple[Device, ...] | None = None,
    python: Python | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """Mixed precision gains no speed on a device without tensor cores, or fails on the device that was asked.

    Why: autocast has no check of the compute capability. On Pascal 6.1 fp16 arithmetic runs at 1/64 of the fp32 rate,
    and the GTX 16 series reports 7.5 like an RTX 2080 while it has no tensor cores. On the CPU many operators have no
    fp16: "not implemented for 'Half'".
    Exception: it is advice only as long as no program failed, for fp16 still halves memory; P100 and Jetson TX2 pass,
    whose fp16 arithmetic is fast, unless somebody measured no gain.
    Reference: https://docs.pytorch.org/docs/stable/amp.html
    """
    failed = tuple(_failed(symptoms, python))
    yield from failed
    slow = reported(symptoms, "amp-no-gain")[:1]
    named = reported(symptoms, *NAMED)[:1]
    if slow and named and not devices:
        failed = (_slow(slow[0], named[0]),)
        yield from failed
    if failed and devices is None:
        return
    findings: dict[tuple[ComputeCapability, str | None], Finding] = {}
    unknown: list[str] = []
    for path, device in reachable(known(devices, "devices")):
        number = known(device_capability(device), f"{path}.compute_capability")
        table = features(number)
        tensor_cores = has_tensor_cores(device, table)
        if table is None or tensor_cores is None:
            unknown.append(f"whether compute capability {number} has tensor cores is not in the tables")
        elif not tensor_cores and (slow or not _has_fast_fp16(table)):
            findings.setdefault((number, device.name), _finding(path, device, table, slow))
    yield from findings.values()
    if unknown and not findings and not failed:
        raise Skip(unknown[0])


def _failed(symptoms: tuple[Symptom, ...] | None, python: Python | None) -> Iterator[Finding]:
    """Yield what a report says of mixed precision that failed."""
    for fact, message in reported(symptoms, "half-on-cpu")[:1]:
        if re.search("cuda|cublas|cusolver", message.names.get("operator", "").lower()):
            yield _without_kernel(fact, message)
            continue
        yield Finding(
            severity=Severity.ERROR,
            summary=f"fp16 was asked of the CPU, which has no {message.names.get('operator', 'such operator')} in it",
            subject="fp16",
            facts=(fact,),
            remedies=(
                Remedy(
                    summary="Run the model on the GPU, after a look whether PyTorch sees one",
                    commands=(python_command(python, "-c", SHOW),),
                ),
                Remedy(
                    summary="On the CPU use float32 (torch_dtype=torch.float32, --no-half --precision full, "
                    "--precision fp32, amp=False), or bfloat16",
                    reference=REFERENCE,
                ),
            ),
        )
    for fact, message in reported(symptoms, "amp-check-failed", "fp16-type-refused")[:1]:
        yield Finding(
            severity=Severity.WARNING if message.kind == "amp-check-failed" else Severity.ERROR,
            summary=f"Mixed precision does not work on this device: {message.text}",
            subject="mixed precision",
            facts=(fact,),
            remedies=(
                Remedy(
                    summary="Compute in float32: amp=False, fp16=False, --no_amp; in CTranslate2 and faster-whisper "
                    'compute_type="int8" or "float32"',
                    reference=REFERENCE,
                ),
            ),
        )
    for fact, message in reported(symptoms, "amp-fp16-gradients")[:1]:
        yield Finding(
            severity=Severity.ERROR,
            summary=f"A GradScaler got gradients in fp16: {message.text}",
            subject="GradScaler",
            facts=(fact,),
            remedies=(
                Remedy(
                    summary="Keep the weights that are trained in float32 (load the model with "
                    "torch_dtype=torch.float32, or model.float()) and let autocast choose fp16; with bf16 no "
                    "GradScaler is needed",
                    reference="https://docs.pytorch.org/docs/stable/notes/amp_examples.html",
                ),
            ),
        )


def _without_kernel(fact: str, message: Symptom) -> Finding:
    operator = message.names["operator"]
    return Finding(
        severity=Severity.ERROR,
        summary=f"PyTorch has no fp16 kernel of {operator}",
        subject=operator,
        facts=(fact,),
        remedies=(
            Remedy(
                summary="Convert to float32 there: tensor.float() under torch.autocast('cuda', enabled=False)",
                reference=REFERENCE,
            ),
        ),
    )


def _has_fast_fp16(table: Features) -> bool:
    """Return whether devices of this capability without tensor cores have fast arithmetic in fp16."""
    return table.fp16 == "native" and table.tensor_cores is False


def _slow(said: tuple[str, Symptom], named: tuple[str, Symptom]) -> Finding:
    return Finding(
        severity=Severity.WARNING,
        summary=f"{named[1].text} has no tensor cores, and mixed precision brought no speed: {said[1].text}",
        subject=named[1].text,
        facts=(said[0], named[0]),
        remedies=(_fp32(),),
    )


def _fp32() -> Remedy:
    return Remedy(
        summary="Compute in fp32 on it (amp=False); use fp16 only to save memory, and look for NaN in its results",
        reference=REFERENCE,
    )


def _finding(path: str, device: Device, table: Features, slow: tuple[tuple[str, Symptom], ...]) -> Finding:
    rate = f", fp16 {table.fp16}" if table.fp16 else ""
    return Finding(
        severity=Severity.WARNING if slow else Severity.INFO,
        summary=f"{device.label} has no tensor cores (compute capability {table.capability}{rate})",
        subject=device.label,
        facts=(*known_facts(path, device, "name", "compute_capability"), *(fact for fact, _ in slow)),
        remedies=(_fp32(),),
    )
