"""The CUDA libraries in bitsandbytes against PyTorch's CUDA version."""

from collections.abc import Iterator

from gpudoctor.conclusions.installed import package, torch_fact, whole_torch
from gpudoctor.conclusions.messages import reported
from gpudoctor.model import CudaVersion, Finding, Python, Remedy, Severity, Symptom, System, Torch, TorchRuntime
from gpudoctor.registry import Skip, check, known, skip_unless
from gpudoctor.remedies import install_packages, python_command, set_variable

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


# Most telling first.
KINDS = (
    "bnb-binary-missing",
    "bnb-library-lacks-function",
    "bnb-windows-path",
    "bnb-no-libcudart",
    "bnb-setup-failed",
    "bnb-without-gpu",
    "bnb-cuda-detection-failed",
    "bnb-broken",
)


@check(family="torch")
def bitsandbytes_cuda_setup(
    python: Python | None = None,
    torch: Torch | None = None,
    torch_runtime: TorchRuntime | None = None,
    system: System | None = None,
    symptoms: tuple[Symptom, ...] | None = None,
) -> Iterator[Finding]:
    """bitsandbytes finds no CUDA library that fits the installed PyTorch.

    Why: it loads libbitsandbytes_cuda128.so for a PyTorch built with CUDA 12.8; where its wheel has none, quantised
    layers and 8-bit optimizers end with "compiled without GPU support".
    Exception: conda's package is built for the CUDA of its environment and passes, and so does every version that the
    list of this check does not call too old.
    Reference: https://huggingface.co/docs/bitsandbytes/main/en/installation
    """
    said = [found for kind in KINDS for found in reported(symptoms, kind)]
    if said:
        whole = whole_torch(torch, torch_runtime)
        yield _told(said[0], whole, python, system, symptoms)
        return
    if python is None:
        raise Skip("python is unknown")
    packages = known(python.packages, "python.packages")
    found = package(python, "bitsandbytes")
    skip_unless(found, "bitsandbytes is not installed")
    whole = whole_torch(torch, torch_runtime)
    skip_unless(known(whole.build, "torch.build") == "cuda", "PyTorch is not built for CUDA")
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


def _told(
    said: tuple[str, Symptom],
    whole: Torch,
    python: Python | None,
    system: System | None,
    symptoms: tuple[Symptom, ...] | None,
) -> Finding:
    fact, message = said
    version = package(python, "bitsandbytes")
    cuda = whole.cuda_version or _cuda(symptoms)
    return Finding(
        # Without CUDA in PyTorch that is the cause, and stands first.
        severity=Severity.WARNING if whole.build == "cpu" else Severity.ERROR,
        summary=f"bitsandbytes{f' {version[1]}' if version else ''} finds no CUDA library that fits"
        f"{f' CUDA {cuda}' if cuda else ''}: {message.text}",
        subject="bitsandbytes",
        facts=(fact, *((version[0],) if version else ())),
        remedies=tuple(_remedies(message, cuda, python, system)),
    )


def _cuda(symptoms: tuple[Symptom, ...] | None) -> CudaVersion | None:
    """Return the CUDA version that bitsandbytes looks for: "117" is 11.7."""
    for _, message in reported(symptoms, "bnb-cuda-version", "bnb-binary-missing"):
        digits = message.names.get("digits") or message.names.get("digits2") or ""
        if len(digits) == 3:
            return CudaVersion(int(digits[:2]), int(digits[2]))
    return None


def _remedies(
    message: Symptom, cuda: CudaVersion | None, python: Python | None, system: System | None
) -> Iterator[Remedy]:
    windows = system is not None and system.os == "windows"
    suited = f", whose wheels hold the libraries for CUDA {cuda} and for Windows" if cuda else ""
    yield install_packages(
        python=python,
        requirements=("--upgrade", "bitsandbytes"),
        summary=f"Upgrade bitsandbytes{suited}: from 0.43 on it takes the CUDA libraries that PyTorch brought",
        verify="import bitsandbytes; print(bitsandbytes.__version__)",
    )
    yield Remedy(
        summary="Look whether PyTorch sees the GPU: without CUDA in it bitsandbytes takes its library for the CPU",
        commands=(
            python_command(
                python, "-c", "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"
            ),
            python_command(python, "-m", "bitsandbytes"),
        ),
    )
    if not windows and message.kind != "bnb-windows-path":
        yield Remedy(
            summary="Where it must stay as it is, put the folder of libcudart.so on LD_LIBRARY_PATH: a toolkit's, "
            "or of conda's cudatoolkit or cuda-runtime",
            commands=(
                "find / -name 'libcudart.so*' 2>/dev/null",
                'export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:/usr/local/cuda/lib64"',
                python_command(python, "-m", "bitsandbytes"),
            ),
        )
    digits = f"{cuda.major}{cuda.minor}" if cuda else ""
    if digits:
        yield set_variable(
            system=system,
            name="BNB_CUDA_VERSION",
            value=digits,
            summary=f"Or set BNB_CUDA_VERSION to one whose libbitsandbytes_cuda*.so is there: {digits}",
        )
