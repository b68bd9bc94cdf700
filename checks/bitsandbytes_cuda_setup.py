"""The CUDA libraries in bitsandbytes against PyTorch's CUDA version."""

from collections.abc import Iterator

from gpudoctor.model import CudaVersion, Finding, Python, Severity, Torch, TorchRuntime
from gpudoctor.reasoning.installed import package, torch_fact, whole_torch
from gpudoctor.registry import applies, check, known
from gpudoctor.remedies import install_packages

# The first version of bitsandbytes whose wheels hold a library for this CUDA version.
# Source: https://github.com/bitsandbytes-foundation/bitsandbytes/releases (12.4 in 0.43.1),
# https://huggingface.co/docs/bitsandbytes/v0.44.1/installation (11.0 - 12.5) and v0.45.1 (11.7 - 12.6),
# https://github.com/bitsandbytes-foundation/bitsandbytes/issues/1510 (12.8 in 0.45.3).
FIRST_VERSIONS = (
    (CudaVersion(12, 8), (0, 45, 3)),
    (CudaVersion(12, 6), (0, 45, 0)),
    (CudaVersion(12, 5), (0, 43, 2)),
    (CudaVersion(12, 4), (0, 43, 1)),
)


@check(family="torch")
def bitsandbytes_cuda_setup(
    python: Python,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
) -> Iterator[Finding]:
    """bitsandbytes has no library for the CUDA version of the installed PyTorch.

    Why: it loads libbitsandbytes_cuda128.so for a PyTorch built with CUDA 12.8; where its wheel has none, quantised
    layers and 8-bit optimizers end with "compiled without GPU support".
    Exception: conda's package is built for the CUDA of its environment and passes, and so does every version that the
    list of this check does not call too old.
    Reference: https://huggingface.co/docs/bitsandbytes/main/en/installation
    """
    packages = known(python.packages, "python.packages")
    found = package(python, "bitsandbytes")
    applies(found, "bitsandbytes is not installed")
    whole = whole_torch(torch, torch_runtime)
    applies(known(whole.build, "torch.build") == "cuda", "PyTorch is not built for CUDA")
    cuda = known(whole.cuda_version, "torch.cuda_version")
    by_conda = any(each.name == "bitsandbytes" and each.installer == "conda" for each in packages)
    needed = next((version for first, version in FIRST_VERSIONS if cuda >= first), None)
    if found is None or by_conda or needed is None or not (0,) < found[1].release < needed:
        return
    yield Finding(
        severity=Severity.ERROR,
        summary=f"bitsandbytes {found[1]} has no library for CUDA {cuda}, with which PyTorch is built: none before "
        f"{'.'.join(map(str, needed))} has",
        subject=f"bitsandbytes {found[1]}",
        facts=(found[0], torch_fact("cuda_version", torch, torch_runtime)),
        remedies=(
            install_packages(
                python=python,
                requirements=("--upgrade", "bitsandbytes"),
                summary=f"Update bitsandbytes to a version with a library for CUDA {cuda}",
                verify="import bitsandbytes; print(bitsandbytes.__version__)",
            ),
        ),
    )
