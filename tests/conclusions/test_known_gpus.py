"""The GPUs whose compute capability is known."""

from gpudoctor.conclusions.known_gpus import known_gpus
from gpudoctor.model import ComputeCapability, Gpu, KnownGpu, TorchDevices
from gpudoctor.model.torch_conclusions import TorchDevice

AMPERE, ADA = ComputeCapability(8, 6), ComputeCapability(8, 9)
BY_NVML = KnownGpu(name="A10", capability=AMPERE, fact="devices[0].compute_capability")
LISTED = TorchDevice(cuda_index=1, name="NVIDIA L4", capability=ADA)


def test_what_pytorch_lists_counts_before_nvml() -> None:
    found = known_gpus(TorchDevices(listed=(LISTED,)), Gpu(known=(BY_NVML,)))
    assert found == (KnownGpu(name="NVIDIA L4", capability=ADA, fact="torch_runtime.device_capabilities[1]"),)


def test_nvml_counts_if_pytorch_lists_none() -> None:
    assert known_gpus(TorchDevices(), Gpu(known=(BY_NVML,))) == (BY_NVML,)
    assert known_gpus(TorchDevices(), Gpu()) == ()
