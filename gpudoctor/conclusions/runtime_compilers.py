"""The compilers that libraries call while a program runs, NVRTC and ptxas, and the GPU that they do not know."""

from __future__ import annotations

from gpudoctor.conclusions.messages import reported
from gpudoctor.data import capability_of, first_toolkit, last_toolkit
from gpudoctor.model import ComputeCapability, KnownGpu, Symptom


def refused_outside_cupy(symptoms: tuple[Symptom, ...] | None) -> tuple[str, str] | None:
    """Return the fact and the text in which NVRTC refuses an architecture; None where the report speaks of CuPy.

    CuPy has an NVRTC of its own choice; of the others PyTorch is the one that people have.
    """
    if reported(symptoms, "cupy-named"):
        return None
    return next(((fact, message.text) for fact, message in reported(symptoms, "nvrtc-architecture-refused")), None)


def gpu_named_beside(symptoms: tuple[Symptom, ...] | None) -> tuple[KnownGpu, ...]:
    """Return the GPU that the report names beside the error, else the one whose capability was asked for."""
    for fact, message in reported(symptoms, "nvrtc-architecture-device*"):
        name = message.names.get("device")
        capability = capability_of(name)
        if name and capability is not None:
            return (KnownGpu(name=name, capability=capability, fact=fact),)
    for fact, message in reported(symptoms, "nvrtc-architecture-option"):
        return (KnownGpu(name="the GPU", capability=ComputeCapability.parse(message.names["capability"]), fact=fact),)
    said = {message.text: fact for fact, message in reported(symptoms, "nvidia-gpu-named")}
    found = [(name, capability_of(name), fact) for name, fact in said.items()]
    # Of several GPUs that a report names it is not known which one fails.
    return tuple(
        KnownGpu(name=name, capability=known_one, fact=fact)
        for name, known_one, fact in found[:1]
        if known_one and len(found) == 1
    )


def toolkit_span(capability: ComputeCapability) -> str:
    """Return for which toolkits a device is too new or too old, as a part of a sentence; "" where it is not known."""
    last, first = last_toolkit(capability), first_toolkit(capability)
    if last is not None:
        return f", for which CUDA {last} was the last"
    return f", for which CUDA {first} is the first" if first is not None else ""
