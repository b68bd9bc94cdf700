"""The machine code in PyTorch's build against the compute capability of each device."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.data.capabilities import toolkit_span
from gpudoctor.model import Devices, Finding, Fix, KnownGpu, Origin, Pytorch, Severity, Symptom, TorchKernels
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.symptoms import Symptoms, pasted
from gpudoctor.symptoms.answers import answers


@check(
    family="torch",
    explains=(
        *("torch-wrong-results", "torch-cuda-unavailable", "fp16-nan"),
        *("python-version-no-wheel", "wheel-index-wrong"),  # of the build that was to replace it
        "compute-capability-unsupported",
    ),
)
def torch_no_kernel_for_device(
    pytorch: Pytorch, torch_kernels: TorchKernels, origin: Origin, devices: Devices = None, symptoms: Symptoms = None
) -> Iterator[Finding]:
    """PyTorch's build has no machine code and no PTX that runs on the GPU.

    Why: torch.cuda.is_available() is true, but the first kernel fails with "no kernel image is available for execution
    on the device". A GPU newer than the build needs a build for a newer CUDA. A GPU that CUDA 13 dropped (before
    compute capability 7.5) needs an older one. Most wheels contain no PTX that the driver could compile.
    Exception: code for sm_86 runs on 8.9 too, as on every device of the same major and the same or a higher minor
    version. A device on which PyTorch computes passes. If another GPU runs the build, this is a warning.
    Reference: https://docs.nvidia.com/cuda/cuda-programming-guide/01-introduction/cuda-platform.html
    """
    kernels = torch_kernels
    others = answers(pasted(symptoms), "torch-no-kernel-for-device")
    if others and kernels.complaint is None:  # what PyTorch itself says is more exact
        yield others[0]
        return
    skip_unless(
        kernels.refused or kernels.failed or known(pytorch.installed, "torch.installed"), "PyTorch is not installed"
    )
    skip_unless(pytorch.build in (None, "cuda"), "PyTorch is not built for CUDA")
    skip_unless(devices != () or kernels.gpus, "there is no NVIDIA GPU")
    if kernels.refused:
        yield _refused(kernels.refused, kernels, pytorch)
        return
    if kernels.failed and not kernels.gpus:
        yield _for_unknown_gpu(kernels.failed, pytorch)
        return
    known(kernels.gpus or None, "devices[0].compute_capability")
    gpu = kernels.gpus[0]
    if not kernels.code:
        said = known(kernels.complaint, "torch.architectures")
        finding = _finding(gpu, f"{pytorch.label} says that its build has no code for {gpu}", said.fact, gpu.fact)
        # An error of CUDA does not show whether the kernel was one of PyTorch's.
        fixes = (_install(kernels), *((_compile_for(gpu),) if said.code else ()))
        yield replace(finding, fixes=fixes)
        return
    for missing in kernels.missing:
        summary = f"{pytorch.label} has machine code for {kernels.code}, which does not run on {missing}"
        finding = _finding(missing, summary, kernels.fact, *pytorch.paths("version"), missing.fact)
        yield replace(
            finding,
            severity=Severity.WARNING if any(kernels.runs) else Severity.ERROR,
            fixes=(Fix("install-torch-or-choose-gpus"),),
            details={**finding.details, **({"table": kernels.source} if kernels.source else {})},
        )
    if origin.is_report and all(kernels.runs):
        yield from _code_of_others(gpu, kernels, pytorch)
    if None in kernels.runs and not kernels.missing:
        raise Skip("torch.cuda_version is unknown, and the builds of this release differ in what they run on")


def _finding(gpu: KnownGpu, summary: str, *facts: str) -> Finding:
    return Finding.error(gpu.name, summary, dict.fromkeys(facts), details={"compute_capability": str(gpu.capability)})


def _refused(said: Symptom, kernels: TorchKernels, pytorch: Pytorch) -> Finding:
    """Return the finding if the NVRTC in PyTorch does not compile for the GPU.

    PyTorch's own machine code for an older device of the same major version may run there: the release is not kept.
    """
    fixes = (_install(kernels, keep_release=False), Fix("compare-cuda-of-gpu"))
    summary = f"The NVRTC of {pytorch.label} does not compile for"
    if not kernels.gpus:
        summary += " this GPU: its CUDA is older than the GPU"
        return Finding.error("torch", summary, (said.fact,), *fixes)
    gpu = kernels.gpus[0]
    finding = _finding(gpu, f"{summary} {gpu}{toolkit_span(gpu.capability)}", said.fact, gpu.fact)
    return replace(finding, fixes=fixes)


def _for_unknown_gpu(said: Symptom, pytorch: Pytorch) -> Finding:
    return Finding.error(
        pytorch.subject,
        f"The program has no code for the GPU: {pytorch.label} or an extension of it was built for other "
        f"compute capabilities ({said.quote})",
        (said.fact,),
        Fix("avoid-flash-attention") if "needed" in said.names else None,
        Fix("compare-compute-capability"),
        Fix("install-torch"),
        Fix("compile-failing-extension"),
    )


def _code_of_others(gpu: KnownGpu, kernels: TorchKernels, pytorch: Pytorch) -> Iterator[Finding]:
    """Yield the finding if code is missing, and not PyTorch's own: that of an extension or of Triton's ptxas."""
    built = f"{pytorch.label} has code for {gpu}"
    if kernels.failed:
        finding = _finding(gpu, f"{built}, and an extension has none", kernels.failed.fact, gpu.fact)
        yield replace(finding, fixes=(_compile_for(gpu),))
    elif kernels.ptxas:
        finding = _finding(gpu, f"{built}, and Triton's ptxas does not know it", kernels.ptxas.fact, gpu.fact)
        yield replace(finding, fixes=(Fix("use-newer-ptxas"),))


def _install(kernels: TorchKernels, *, keep_release: bool = True) -> Fix:
    return Fix("install-torch", gpus=kernels.gpus, keep_release=keep_release)


def _compile_for(gpu: KnownGpu) -> Fix:
    return Fix("compile-extension-for-gpu", capability=str(gpu.capability))
