"""NVIDIA GPUs with a known compute capability."""

from gpudoctor.model import Gpu, KnownGpu, TorchDevices


def known_gpus(torch_devices: TorchDevices, gpu: Gpu) -> tuple[KnownGpu, ...]:
    """Return the GPUs that PyTorch lists, else those of NVML."""
    listed = torch_devices.listed
    return (
        tuple(KnownGpu(name=one.name, capability=one.capability, fact=one.capability_fact) for one in listed)
        or gpu.known
    )
