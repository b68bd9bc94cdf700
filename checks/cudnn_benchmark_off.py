"""cuDNN's choice of convolution algorithms."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, TorchDevices, TorchRuntime
from gpudoctor.registry import check, known, skip_unless, usable_devices


@check(family="precision")
def cudnn_benchmark_off(torch_devices: TorchDevices, torch_runtime: TorchRuntime) -> Iterator[Finding]:
    """cuDNN chooses convolution algorithms by a heuristic, without trying them.

    Why: with torch.backends.cudnn.benchmark the first call of each convolution tries the algorithms on the real shapes
    and keeps the fastest. This helps convolutional networks whose input shapes stay the same.
    Exception: this is advice. If shapes change from step to step, each new shape costs a search. Networks without
    convolutions gain nothing. The chosen algorithm, and so its rounding, may differ from run to run.
    Reference: https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.torch.backends.cudnn.benchmark
    """
    usable_devices(torch_devices)
    skip_unless(known(torch_runtime.cudnn_version, "torch_runtime.cudnn_version"), "PyTorch has no cuDNN")
    if known(torch_runtime.cudnn_benchmark, "torch_runtime.cudnn_benchmark"):
        return
    summary = "torch.backends.cudnn.benchmark is False: cuDNN chooses convolution algorithms without trying them"
    facts = ("torch_runtime.cudnn_benchmark", "torch_runtime.cudnn_version")
    yield Finding.advice("torch.backends.cudnn", summary, facts, Fix("turn-on-cudnn-benchmark"))
