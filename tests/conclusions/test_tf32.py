"""What shows that float32 products run in TF32."""

import pytest

from gpudoctor.conclusions.tf32 import tf32
from gpudoctor.model import (
    ComputeCapability,
    Environment,
    KnownGpu,
    PackageVersion,
    Pytorch,
    Symptom,
    Tf32,
    TorchRuntime,
)
from tests.torch_runtimes import L4, T4, with_result, working

TURING = KnownGpu(name="T4", capability=ComputeCapability(7, 5), fact="devices[0].name")
AMPERE = KnownGpu(name="A100", capability=ComputeCapability(8, 0), fact="devices[1].name")
NAMED = Symptom(kind="gpu-named-ampere", text="RTX 3090")


def concluded(*gpus: KnownGpu, symptoms: tuple[Symptom, ...] = (), **variables: str) -> Tf32:
    return tf32(TorchRuntime(), Pytorch(), gpus, Environment(variables=variables), symptoms)


@pytest.mark.parametrize(
    ("gpus", "symptoms", "possible"),
    [
        ((TURING,), (), False),
        ((TURING, AMPERE), (), True),
        ((TURING,), (NAMED,), True),
        ((), (), True),
    ],
)
def test_tf32_is_possible_unless_every_gpu_is_older(
    gpus: tuple[KnownGpu, ...], symptoms: tuple[Symptom, ...], possible: bool
) -> None:
    assert concluded(*gpus, symptoms=symptoms).possible is possible


@pytest.mark.parametrize("name", ["TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUPY_TF32", "NVIDIA_TF32_OVERRIDE"])
def test_each_variable_allows_it(name: str) -> None:
    for value, expected in (("0", ()), ("1", (name,)), ("2", ())):
        found = tf32(TorchRuntime(), Pytorch(), (), Environment(variables={name: value}), ())
        assert found.variables == expected


def test_variables() -> None:
    assert concluded(CUPY_TF32="1", TORCH_ALLOW_TF32_CUBLAS_OVERRIDE="0").variables == ("CUPY_TF32",)
    assert [concluded(NVIDIA_TF32_OVERRIDE=value).forbidden for value in ("0", "1")] == [True, False]


@pytest.mark.parametrize(
    ("version", "build", "by_default"),
    [
        ("1.6.0", "cuda", False),
        ("1.7.0", "cuda", True),
        ("1.11.0", "cuda", True),
        ("1.12.0", "cuda", False),
        ("1.10.0", "cpu", False),
    ],
)
def test_releases_that_allow_it_by_default(version: str, build: str, by_default: bool) -> None:
    pytorch = Pytorch(version=PackageVersion(version), build=build, facts={"version": "torch.version"})
    found = tf32(TorchRuntime(), pytorch, (), Environment(), None)
    assert (found.default_of, found.default_fact) == ((pytorch.version, "torch.version") if by_default else (None, ""))


def test_a_program_that_switched_it_off_uses_no_default() -> None:
    pytorch = Pytorch(version=PackageVersion("1.10.0"), build="cuda", facts={"version": "torch.version"})
    assert tf32(working(L4, matmul_tf32=False), pytorch, (), Environment(), None).default_of is None


def test_a_product_with_the_error_of_tf32() -> None:
    (product,) = tf32(
        with_result(working(L4), "fp32", relative_error=3e-4), Pytorch(), (), Environment(), None
    ).products
    assert (product.device, product.relative_error) == ("cuda:0", 3e-4)
    assert product.fact == "torch_runtime.precision_results[0].relative_error"
    assert tf32(working(T4), Pytorch(), (), Environment(), None).products == ()


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (("tf32-mentioned",), 1),
        (("float32-product-mentioned", "compared-with-another-device"), 2),
        (("float32-product-mentioned",), 0),
        (("compared-with-another-device",), 0),
    ],
)
def test_what_shows_that_tf32_is_the_reason(kinds: tuple[str, ...], said: int) -> None:
    symptoms = tuple(Symptom(kind=kind, text="as printed") for kind in kinds)
    assert len(concluded(symptoms=(NAMED, *symptoms)).said) == said
    assert concluded(symptoms=symptoms).said == ()
