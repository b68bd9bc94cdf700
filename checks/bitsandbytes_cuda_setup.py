"""The CUDA libraries in bitsandbytes against PyTorch's CUDA version."""

from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.data.packages import first_bitsandbytes
from gpudoctor.model import CudaVersion, Finding, Fix, PackageVersion, Place, Python, Pytorch, Severity, Symptom
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, most_telling, of_kind


@check(family="torch")
def bitsandbytes_cuda_setup(
    pytorch: Pytorch, place: Place, python: Python = Python(), symptoms: Symptoms = None
) -> Iterator[Finding]:
    """bitsandbytes finds no CUDA library that matches the installed PyTorch.

    Why: it loads libbitsandbytes_cuda128.so for a PyTorch built with CUDA 12.8. If its wheel has no such library,
    quantised layers and 8-bit optimizers fail with "compiled without GPU support".
    Exception: conda's package is built for the CUDA of its environment and passes. So does every version that the table
    of this check does not list as too old.
    Reference: https://huggingface.co/docs/bitsandbytes/main/en/installation
    """
    found = python.package("bitsandbytes")
    said = most_telling(symptoms, "bitsandbytes-fails")
    if said is not None:
        failed = _failed(said, pytorch, found, _cuda(symptoms))
        yield replace(failed, fixes=(Fix("leave-bitsandbytes-on-mac"),)) if place.is_mac else failed
        return
    packages = known(python.packages, "python.packages")
    skip_unless(found, "bitsandbytes is not installed")
    skip_unless(known(pytorch.build_read, "torch.build") == "cuda", "PyTorch is not built for CUDA")
    cuda = known(pytorch.cuda_version, "torch.cuda_version")
    by_conda = any(each.name == "bitsandbytes" and each.installer == "conda" for each in packages)
    needed = first_bitsandbytes(cuda)
    if found is None or by_conda or needed is None or not (0,) < found[1].release < needed:
        return
    summary = (
        f"bitsandbytes {found[1]} has no library for CUDA {cuda}, which PyTorch was built with: "
        f"{'.'.join(map(str, needed))} is the first version that has one"
    )
    facts = (found[0], *pytorch.paths("cuda_version"))
    yield Finding.error(f"bitsandbytes {found[1]}", summary, facts, Fix("update-bitsandbytes", cuda=cuda))


def _failed(
    symptom: Symptom, pytorch: Pytorch, found: tuple[str, PackageVersion] | None, asked_for: CudaVersion | None
) -> Finding:
    cuda = pytorch.cuda_version or asked_for
    fixes = [Fix("upgrade-failed-bitsandbytes", cuda=cuda), Fix("ask-bitsandbytes")]
    if symptom.kind != "bnb-windows-path":
        fixes.append(Fix("libcudart-for-bitsandbytes"))
    if cuda:
        digits = f"{cuda.major}{cuda.minor}"
        there = f"Set BNB_CUDA_VERSION to a version whose libbitsandbytes_cuda*.so is installed: {digits}"
        fixes.append(Fix("set-variable", name="BNB_CUDA_VERSION", value=digits, summary=there))
    return Finding(
        # Without CUDA in PyTorch that is the cause, and comes first.
        severity=Severity.WARNING if pytorch.build_read == "cpu" else Severity.ERROR,
        summary=f"bitsandbytes{f' {found[1]}' if found else ''} finds no matching CUDA library"
        f"{f' for CUDA {cuda}' if cuda else ''}: {symptom.text}",
        subject="bitsandbytes",
        facts=(symptom.fact, found[0] if found else ""),
        fixes=tuple(fixes),
    )


def _cuda(symptoms: Symptoms) -> CudaVersion | None:
    """Return the CUDA version that bitsandbytes looks for: "117" is 11.7."""
    for symptom in of_kind(symptoms, "bnb-cuda-version", "bnb-binary-missing"):
        digits = symptom.names.get("digits", "")
        if len(digits) == 3:
            return CudaVersion(int(digits[:2]), int(digits[2]))
    return None
