"""Compiled extensions of PyTorch against the installed PyTorch, by the versions of their wheels."""

from collections.abc import Iterator

from gpudoctor.model import BuiltExtension, Extensions, FailedExtension, Finding, Fix, Pytorch, Severity
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind


@check(family="torch", explains=("torch-import-failed",))
def extension_abi_mismatch(extensions: Extensions, pytorch: Pytorch, symptoms: Symptoms = None) -> Iterator[Finding]:
    """A compiled extension was built for a different PyTorch than the installed one.

    Why: PyTorch's C++ interface changes with every release. An extension for another release fails on import with
    "undefined symbol", and old source code does not compile. An extension for another CUDA version does not find its
    libcudart.
    Exception: only the versions in the name of the wheel are compared, as in 2.6.3+cu123torch2.3cxx11abifalse or
    2.1.2+pt20cu118. Minor versions of CUDA, and patch releases of PyTorch, may differ. If a program only warns about a
    part and continues, this is a warning.
    Reference: https://github.com/Dao-AILab/flash-attention#installation-and-features
    """
    too_old = of_kind(symptoms, "extension-source-too-old")[:1]
    for extension in extensions.failed:
        yield _failed(extension, pytorch)
    for symptom in too_old:
        described = f" {pytorch.described}" if pytorch.version is not None else ""
        summary = f"The source of the extension is older than the installed PyTorch{described}: {symptom.text}"
        facts = (symptom.fact,)
        yield Finding.error(symptom.names.get("header", "extension"), summary, facts, Fix("build-newer-extension"))
    if extensions.failed or too_old:
        return
    skip_unless(known(pytorch.installed, "torch.installed"), "PyTorch is not installed")
    built = known(extensions.built, "python.packages")
    skip_unless(built, "no extension names the PyTorch that it was built for")
    version = known(pytorch.version, "torch.version")
    wrong = tuple(extension for extension in built if _differs(extension, pytorch))
    if wrong:
        names = " and ".join(f"{extension.package.name} {extension.package.version}" for extension in wrong)
        by_abi = any(extension.cxx11_abi not in (None, pytorch.cxx11_abi) for extension in wrong)
        yield Finding.error(
            ", ".join(extension.package.name for extension in wrong),
            f"{names} {'was' if len(wrong) == 1 else 'were'} not built for the installed PyTorch {pytorch.described}",
            (*(extension.fact for extension in wrong), *pytorch.paths("version", *(("cxx11_abi",) if by_abi else ()))),
            *(Fix("replace-extension", package=extension.package) for extension in wrong),
            details={"torch": str(version), "cuda": str(pytorch.cuda_version or "")},
        )


def _failed(extension: FailedExtension, pytorch: Pytorch) -> Finding:
    symptom, name = extension.symptom, f"{extension.name} {extension.version or ''}".strip()
    if extension.name == "torch_extensions":
        name = "An extension in the cache torch_extensions"
    version = f" {pytorch.described}" if pytorch.version is not None else ""
    asks = f" (it asks for {extension.abi})" if extension.abi else ""
    return Finding.of(
        Severity.WARNING if "warned" in symptom.names else Severity.ERROR,
        extension.name or "extension",
        f"{name or 'A compiled extension'} was not built for the installed PyTorch{version}{asks}: "
        f"{symptom.text[:200]}",
        extension.facts,
        Fix("reinstall-extension", name=extension.name),
        details={"torch": str(pytorch.version or ""), "symbol": symptom.names.get("symbol", "")},
    )


def _differs(extension: BuiltExtension, pytorch: Pytorch) -> bool:
    version, cuda = pytorch.version, pytorch.cuda_version
    if extension.torch is not None and version is not None and version.minor_release != extension.torch:
        return True
    if extension.cuda_major is not None and cuda is not None and cuda.major != extension.cuda_major:
        return True
    return None not in (extension.cxx11_abi, pytorch.cxx11_abi) and extension.cxx11_abi != pytorch.cxx11_abi
