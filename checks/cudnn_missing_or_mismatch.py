"""cuDNN against what PyTorch needs."""

from collections.abc import Iterator

from gpudoctor.data.cuda_libraries import cudnn_of_torch, cudnn_version
from gpudoctor.model import Finding, Fix, Python, Pytorch, Severity, Symptom, Torch, TorchRuntime
from gpudoctor.model.cuda_conclusions import CudaLibraries
from gpudoctor.registry import check, known, skip_unless
from gpudoctor.symptoms import Symptoms, first, of_kind, pasted
from gpudoctor.symptoms.answers import answers

OTHERS, MAYBE = "@cudnn-otherwise-wrong", "@cudnn-may-lack-memory"
OWN_CUDNN = "Remove LD_LIBRARY_PATH, so that PyTorch loads its own cuDNN"
OWN_OF_PACKAGE = "Remove LD_LIBRARY_PATH if it contains another cuDNN, so that the package loads its own"
LONGEST = 240


@check(
    family="cuda",
    explains=(
        *("torch-import-failed", "torch-library-missing", "torch-cuda-unavailable", "torch-wrong-results"),
        "runs-on-cpu",
    ),
)
def cudnn_missing_or_mismatch(
    cuda_libraries: CudaLibraries,
    pytorch: Pytorch,
    torch: Torch = Torch(),
    torch_runtime: TorchRuntime = TorchRuntime(),
    python: Python = Python(),
    symptoms: Symptoms = None,
) -> Iterator[Finding]:
    """cuDNN is missing, or is not the version that the framework was built with.

    Why: convolutions and attention run in cuDNN. PyTorch, TensorFlow and JAX refuse an older cuDNN, and parts of two
    versions do not work together: "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH". Usually LD_LIBRARY_PATH contains the
    cuDNN of a toolkit, or two packages need different major versions: CTranslate2 4.5 and PyTorch 2.4 or newer need
    cuDNN 9, older ones need cuDNN 8.
    Exception: another version that works is advice. Only the cuDNN wheel for PyTorch's CUDA major version is compared.
    Reference: https://docs.nvidia.com/deeplearning/cudnn/backend/latest/developer/forward-compatibility.html
    """
    said = _said(pasted(symptoms))
    on_path = (cuda_libraries.cudnn_fact,) if cuda_libraries.cudnn_fact else ()
    if said is not None:
        severity = Severity.WARNING if of_kind((said,), MAYBE) else Severity.ERROR
        yield Finding.of(
            severity, "cuDNN", _summary(said), (said.fact, *on_path), *_fixes(said, pytorch), details=dict(said.names)
        )
        return
    skip_unless(pytorch.installed is not False, "PyTorch is not installed")
    skip_unless(pytorch.build_read in (None, "cuda"), "PyTorch is not built for CUDA")
    missing = torch.missing_libraries or ()
    skip_unless(all("cudnn" in name for name in missing), "other libraries of PyTorch are missing too")
    own = Fix("unset-variable", name="LD_LIBRARY_PATH", summary=OWN_CUDNN)
    fixes = (own, Fix("reinstall-torch")) if on_path else (Fix("reinstall-torch"),)
    failed = first(of_kind(symptoms, "torch-own-cudnn-failed", "cudnn-version-status", "cudnn-older-than-torch"))
    if failed is not None:
        text = failed.text if len(failed.text) <= LONGEST else f"{failed.text[: LONGEST - 3]}..."
        leads = f", and LD_LIBRARY_PATH leads to {cuda_libraries.cudnn_path}" if on_path else ""
        yield Finding.error("cuDNN", f"PyTorch cannot use cuDNN: {text}{leads}", (failed.fact, *on_path), *fixes)
    elif missing:
        severity = Severity.WARNING if pytorch.import_error == "" else Severity.ERROR
        summary = f"PyTorch needs {missing[0]}, which the loader cannot find"
        yield Finding.of(severity, "cuDNN", summary, ("torch.missing_libraries",), Fix("reinstall-torch"))
    else:
        known(torch_runtime.cudnn_error, "torch_runtime.cudnn_error")
        loaded = torch_runtime.cudnn_version
        wheel = python.package(f"nvidia-cudnn-cu{pytorch.cuda_version.major}") if pytorch.cuda_version else None
        if loaded and wheel is not None and wheel[1].release[:3] != cudnn_version(str(loaded)):
            summary = f"PyTorch loads cuDNN {_dotted(str(loaded))}, but its own wheel has {wheel[1]}"
            yield Finding.advice("cuDNN", summary, ("torch_runtime.cudnn_version", wheel[0], *on_path), *fixes)


def _said(symptoms: tuple[Symptom, ...]) -> Symptom | None:
    """Return the message that says most about cuDNN; one that memory may explain only if there is none."""
    for kinds in ("@cudnn-versions-differ", "@cudnn-not-found", OTHERS):
        found = of_kind(symptoms, kinds)
        if found and not (kinds is OTHERS and _of_another_library(found[0], symptoms)):
            return found[0]
    full = any("out-of-memory" in symptom.kind for symptom in symptoms)
    return None if full else first(of_kind(symptoms, MAYBE))


def _of_another_library(symptom: Symptom, symptoms: tuple[Symptom, ...]) -> bool:
    """Return whether ONNX Runtime, which asks for CUDA and cuDNN in one breath, misses another library."""
    missing = of_kind(symptoms, "cuda-library-missing*", "cuda-dll-missing*")
    return symptom.library == "onnxruntime" and bool(missing)


def _summary(symptom: Symptom) -> str:
    names = symptom.names
    if "built_with" in names and "loaded" in names:
        who = {"torch": "PyTorch", "jax": "JAX"}.get(symptom.library, "The framework")
        built_with, loaded = _dotted(names["built_with"]), _dotted(names["loaded"])
        return f"{who} was built with cuDNN {built_with}, but cuDNN {loaded} is loaded"
    return answers((symptom,), "cudnn-missing-or-mismatch")[0].summary


def _dotted(text: str) -> str:
    return ".".join(map(str, cudnn_version(text)))


def _fixes(symptom: Symptom, pytorch: Pytorch) -> Iterator[Fix]:
    """Yield what helps: one cuDNN for all if two packages need different ones, else the one that is needed."""
    names, built_with = symptom.names, cudnn_version(symptom.names.get("built_with", ""))
    own = cudnn_of_torch(pytorch.version)
    major = int(names["major"]) if "major" in names else built_with[0] if built_with else own
    if of_kind((symptom,), MAYBE):
        yield Fix("look-for-full-memory")
    if built_with or of_kind((symptom,), OTHERS, MAYBE):
        yield Fix("unset-variable", name="LD_LIBRARY_PATH", summary=OWN_OF_PACKAGE)
    if major is not None and own is not None and major != own:
        yield Fix("use-one-cudnn", asked_for=major, of_torch=own)
    if symptom.kind == "cudnn-header-missing":
        yield Fix("install-cudnn-headers")
    version = f">={'.'.join(map(str, built_with[:2]))},<{built_with[0] + 1}" if built_with else ""
    version = version or (f"=={major}.*" if major else "")
    if own is None or major in (None, own):
        cuda_major = int(names["cuda_major"]) if "cuda_major" in names else None
        yield Fix("install-cudnn", version=version, major=major, cuda_major=cuda_major)
    if own is None and major is not None and "_" in names.get("library", "").partition("64_")[0]:
        yield Fix("ctranslate2-for-cudnn", asked_for=major)
    if pytorch.installed:
        yield Fix("reinstall-torch")
