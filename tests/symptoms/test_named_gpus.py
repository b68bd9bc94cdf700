"""The GPUs that a report names."""

from gpudoctor.model import ComputeCapability, Gpu, KnownGpu, Symptom
from gpudoctor.symptoms.named_gpus import capabilities

AMPERE, ADA = ComputeCapability(8, 6), ComputeCapability(8, 9)
BY_NVML = KnownGpu(name="A10", capability=AMPERE, fact="devices[0].compute_capability")


def test_gpus_that_a_report_only_names_count_after_those_that_were_read() -> None:
    named = (Symptom(kind="nvidia-gpu-named", text="RTX 4090", fact="symptoms[0]"),)
    assert capabilities(Gpu(known=(BY_NVML,)), named) == (AMPERE, ADA)


def test_a_name_without_known_capability_adds_none() -> None:
    named = (Symptom(kind="nvidia-gpu-named", text="RTX 99999", fact="symptoms[0]"),)
    assert capabilities(Gpu(), named) == ()
