"""The GPUs that a report names."""

from gpudoctor.data.gpu_names import capability_of
from gpudoctor.model import ComputeCapability, Gpu
from gpudoctor.symptoms import Symptoms, of_kind


def capabilities(gpu: Gpu, symptoms: Symptoms) -> tuple[ComputeCapability, ...]:
    """Return the compute capabilities of the GPUs that were read, then of those that the report names."""
    named = [capability_of(symptom.text) for symptom in of_kind(symptoms, "nvidia-gpu-named")]
    return (*(one.capability for one in gpu.known), *(found for found in named if found is not None))
