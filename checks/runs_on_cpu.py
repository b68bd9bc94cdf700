"""A program that computes on the CPU."""

from collections.abc import Iterator

from gpudoctor.model import CpuUse, Finding, Fix, Place, Pytorch, Severity
from gpudoctor.registry import check, skip_unless
from gpudoctor.symptoms import Symptoms, of_kind

NAMES = {
    "torch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "onnxruntime": "ONNX Runtime",
    "ollama": "Ollama",
    "llama-cpp": "llama.cpp",
    "lm-studio": "LM Studio",
    "ctranslate2": "CTranslate2",
    "paddle": "PaddlePaddle",
    "opencv": "OpenCV",
    "xgboost": "The boosting library",
    "mxnet": "MXNet",
    "lightgbm": "LightGBM",
    "dgl": "DGL",
    "dlib": "dlib",
    "tch": "tch",
}
# These support AMD and Apple GPUs without CUDA.
WITHOUT_CUDA = ("ollama", "llama-cpp", "torch", "")


@check(family="vendor", explains=("amp-unsupported",))
def runs_on_cpu(cpu_use: CpuUse, place: Place, pytorch: Pytorch, symptoms: Symptoms = None) -> Iterator[Finding]:
    """A program computes on the CPU, although there is a GPU or one is wanted.

    Why: most programs fall back to the CPU silently, and are ten to a hundred times slower. Usually the installed build
    has no GPU support. If gpudoctor knows the cause, that finding is first and this one follows from it.
    Exception: no-nvidia-gpu reports a machine without a GPU. If PyTorch sees the GPU, each program chooses its own
    device. CPU builds of JAX and TensorFlow have their own checks. What people say about it is advice and the first
    possible cause if no message and no CPU build confirms it: a working machine gives them the same impression.
    Reference: https://docs.pytorch.org/docs/stable/notes/cuda.html
    """
    skip_unless(cpu_use.fact, "no program says that it computes on the CPU")
    if cpu_use.cause:
        return
    name = NAMES.get(cpu_use.program, "A program")
    confirmed = pytorch.build_read == "cpu" and cpu_use.program in ("torch", "")
    guess = cpu_use.by_person and not confirmed
    yield Finding.of(
        Severity.INFO if guess else Severity.ERROR,
        name if cpu_use.program else "program",
        f'{name} {"probably " if guess else ""}computes on the CPU: "{cpu_use.text[:200]}"',
        (cpu_use.fact, *pytorch.paths("build", "version")) if confirmed else (cpu_use.fact,),
        *_fixes(cpu_use, pytorch, symptoms),
        Fix("start-container-in-its-way-with-gpu") if place.about_container else None,
        certain=not guess,
    )


def _of_llama(symptoms: Symptoms) -> Iterator[Fix]:
    """Yield the ways of llama.cpp to the GPU: a build that lists it needs layers there; its programs are no wheel."""
    if of_kind(symptoms, "framework-gpu-listed"):
        yield Fix("offload-layers-of-llama-cpp")
        return
    fixes = [Fix("use-gpu-llama-cpp"), Fix("use-gpu-llama-cpp-itself")]
    yield from reversed(fixes) if of_kind(symptoms, "llama-run-options") else fixes


def _fixes(cpu_use: CpuUse, pytorch: Pytorch, symptoms: Symptoms) -> Iterator[Fix]:
    """Yield the program's own ways to the GPU: only what computes with PyTorch, or may, has PyTorch installed again."""
    if cpu_use.without_cuda and cpu_use.program in WITHOUT_CUDA:
        yield Fix(f"use-gpu-without-cuda-{cpu_use.program or 'torch'}")
        return
    if cpu_use.program == "llama-cpp":
        yield from _of_llama(symptoms)
    else:
        yield Fix(f"use-gpu-{cpu_use.program or 'of-program'}")
    if cpu_use.program == "jax" and not cpu_use.without_cuda:
        yield Fix("install-jax-for-cuda")
    if cpu_use.program in ("torch", "") and pytorch.build != "cuda":
        yield Fix("install-torch")
