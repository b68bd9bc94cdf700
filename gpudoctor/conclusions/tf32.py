"""Whether float32 products run in TF32, and why."""

from collections.abc import Iterator

from gpudoctor.data.numerics import has_tf32_error
from gpudoctor.model import ComputeCapability, Environment, KnownGpu, Pytorch, Symptom, Tf32, Tf32Product, TorchRuntime
from gpudoctor.symptoms import Symptoms, first, of_kind

FIRST_WITH_TF32 = ComputeCapability(8, 0)  # Source: NVIDIA A100 whitepaper
# Each of them allows or forces TF32 if it is 1. Source: aten/src/ATen/Context.cpp of PyTorch; CuPy's reference of its
# variables; NVIDIA_TF32_OVERRIDE is read by cuBLAS and cuDNN, and its 0 wins over everything else.
OVERRIDE = "NVIDIA_TF32_OVERRIDE"
VARIABLES = ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUPY_TF32", OVERRIDE)
# Words that are sufficient evidence together with the GPU.
OF_PRODUCTS = ("float32-error-like-tf32", "product-wrong-on-tf32-gpu")
# PyTorch releases that allow it by default: from the first one up to, but not including, the second.
FIRST_BY_DEFAULT, FIRST_WITHOUT = (1, 7), (1, 12)


def tf32(
    torch_runtime: TorchRuntime,
    pytorch: Pytorch,
    known_gpus: tuple[KnownGpu, ...],
    environment: Environment,
    symptoms: Symptoms,
) -> Tf32:
    """Return the evidence that float32 products run in TF32."""
    gpu = first(of_kind(symptoms, "gpu-named-ampere"))
    set_to = {name: environment.get(name) for name in VARIABLES}
    by_default = _by_default(torch_runtime, pytorch)
    return Tf32(
        possible=not known_gpus or gpu is not None or any(one.capability >= FIRST_WITH_TF32 for one in known_gpus),
        forbidden=set_to[OVERRIDE] == "0",
        variables=tuple(name for name, value in set_to.items() if value == "1"),
        products=tuple(_products(torch_runtime)),
        default_of=pytorch.version if by_default else None,
        default_fact=pytorch.facts["version"] if by_default else "",
        differing=first(of_kind(symptoms, *OF_PRODUCTS, "numerical-difference")),
        gpu=gpu,
        said=_said(symptoms) if gpu is not None or known_gpus else (),
    )


def _products(runtime: TorchRuntime | None) -> Iterator[Tf32Product]:
    for number, result in enumerate((runtime.precision_results if runtime is not None else None) or ()):
        if has_tf32_error(result) and result.relative_error is not None:
            fact = f"torch_runtime.precision_results[{number}].relative_error"
            yield Tf32Product(device=result.device, relative_error=result.relative_error, fact=fact)


def _by_default(runtime: TorchRuntime | None, pytorch: Pytorch) -> bool:
    version = pytorch.version
    if version is None or not FIRST_BY_DEFAULT <= version.release[:2] < FIRST_WITHOUT:
        return False
    switched_off = runtime is not None and runtime.matmul_tf32 is False
    return not switched_off and (pytorch.build == "cuda" or pytorch.cuda_version is not None)


def _said(symptoms: Symptoms) -> tuple[Symptom, ...]:
    """Return the symptom that names TF32, or that compares a float32 product with a device without TF32."""
    named = of_kind(symptoms, "tf32-mentioned")[:1] or of_kind(symptoms, *OF_PRODUCTS)[:1]
    product = of_kind(symptoms, "float32-product-mentioned")[:1]
    other = of_kind(symptoms, "compared-with-another-device")[:1]
    return named or (product + other if product and other else ())
