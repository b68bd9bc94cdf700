"""The gfx target of an AMD GPU against those of the ROCm build."""

import pytest

from gpudoctor.model import Environment, Outcome, PackageVersion, Severity, Symptom, System, Torch, TorchRuntime
from gpudoctor.testing import run_check

BY_BINARY = Torch(
    installed=True,
    version=PackageVersion("2.13.0+rocm7.2"),
    build="rocm",
    architectures=("gfx90a", "gfx942:sramecc+", "gfx1030", "gfx1100"),
)
BY_TABLE = Torch(installed=True, version=PackageVersion("2.8.0+rocm6.4"), build="rocm")


def gpu(*targets: str) -> System:
    return System(os="linux", amd_gfx_targets=targets)


@pytest.mark.parametrize(
    ("torch", "target"),
    [
        pytest.param(BY_BINARY, "gfx1010", id="by the binary"),
        pytest.param(BY_TABLE, "gfx1151", id="by the table"),
    ],
)
def test_found(torch: Torch, target: str) -> None:
    finding = run_check("rocm-unsupported-gfx", torch=torch, system=gpu(target)).findings[0]
    assert finding.severity is Severity.ERROR
    assert finding.summary.startswith(f"The ROCm build of PyTorch has no code for {target}, only for gfx9")
    assert "HSA_OVERRIDE_GFX_VERSION" in finding.remedies[0].summary


def test_a_near_target_can_stand_in() -> None:
    finding = run_check("rocm-unsupported-gfx", torch=BY_BINARY, system=gpu("gfx1032")).findings[0]
    assert finding.remedies[0].commands[0] == "export HSA_OVERRIDE_GFX_VERSION=10.3.0"


@pytest.mark.parametrize(
    "message",
    [
        "HIP error: invalid device function",
        "hipErrorNoBinaryForGpu: Unable to find code object for all current devices!",
    ],
)
def test_a_message_is_enough(message: str) -> None:
    runtime = TorchRuntime(availability_error=message)
    assert run_check("rocm-unsupported-gfx", torch_runtime=runtime).outcome is Outcome.FOUND


@pytest.mark.parametrize(
    ("targets", "variables"),
    [
        pytest.param(("gfx1100",), {}, id="in the build"),
        pytest.param(("gfx942",), {}, id="in the build with features"),
        pytest.param(("gfx1100", "gfx1036"), {}, id="one of two"),
        pytest.param(("gfx1032",), {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}, id="overridden"),
        pytest.param(("gfx90c",), {"HSA_OVERRIDE_GFX_VERSION": "9.0.10"}, id="overridden, in hex"),
    ],
)
def test_passes(targets: tuple[str, ...], variables: dict[str, str]) -> None:
    result = run_check(
        "rocm-unsupported-gfx",
        torch=BY_BINARY,
        system=gpu(*targets),
        environment=Environment(variables=variables),
    )
    assert result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("torch", "system", "reason"),
    [
        pytest.param(Torch(build="cuda"), gpu("gfx1010"), "PyTorch is not a ROCm build", id="CUDA build"),
        pytest.param(None, gpu("gfx1010"), "torch.build is unknown", id="no section"),
        pytest.param(BY_BINARY, System(), "system.amd_gfx_targets is unknown", id="targets unknown"),
        pytest.param(BY_BINARY, gpu(), "there is no AMD GPU", id="no AMD GPU"),
        pytest.param(
            Torch(version=PackageVersion("2.5.0"), build="rocm"),
            gpu("gfx1010"),
            "torch.architectures is unknown",
            id="not in the table",
        ),
    ],
)
def test_skipped(torch: Torch | None, system: System, reason: str) -> None:
    result = run_check("rocm-unsupported-gfx", torch=torch, system=system)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def said(kind: str, text: str = "as printed", **names: str) -> Symptom:
    return Symptom(kind=kind, text=text, names=names)


def test_a_message_is_enough_and_a_product_names_its_target() -> None:
    symptoms = (
        said("hip-invalid-device-function"),
        said("amd-gpu-named", "Radeon RX 5700 XT", device="Radeon RX 5700 XT"),
    )
    (finding,) = run_check("rocm-unsupported-gfx", symptoms=symptoms).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "The ROCm build of PyTorch has no code for gfx1010 (Radeon RX 5700 XT)"
    assert "PYTORCH_ROCM_ARCH=gfx1010" in finding.remedies[0].summary


def test_a_target_of_a_family_that_the_build_has_gets_the_override_first() -> None:
    system = System(os="linux", amd_gfx_targets=("gfx1032",))
    (finding,) = run_check("rocm-unsupported-gfx", symptoms=(said("rocblas-no-tensile"),), system=system).findings
    assert finding.remedies[0].commands[0] == "export HSA_OVERRIDE_GFX_VERSION=10.3.0"


def test_a_newer_release_with_the_target_is_named() -> None:
    system = System(os="linux", amd_gfx_targets=("gfx1201",))
    (finding,) = run_check("rocm-unsupported-gfx", symptoms=(said("hip-no-binary"),), system=system).findings
    assert "PyTorch 2.8 or newer, rocm6.4" in finding.remedies[0].summary


def test_an_override_of_another_family_goes_first_after_a_memory_fault() -> None:
    (finding,) = run_check(
        "rocm-unsupported-gfx",
        symptoms=(said("rocm-memory-access-fault"),),
        system=System(amd_gfx_targets=("gfx1103",)),
        environment=Environment(variables={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}),
    ).findings
    assert finding.severity is Severity.WARNING
    assert finding.remedies[0].commands[0] == "unset HSA_OVERRIDE_GFX_VERSION"


FOREIGN = Torch(installed=True, version=PackageVersion("2.7.0+gitabc"), build="rocm")
NIGHTLY = Torch(installed=True, version=PackageVersion("2.7.0.dev20250123+rocm6.3"), build="rocm")


def test_a_release_whose_targets_are_not_verified_has_none_that_the_next_one_lacks() -> None:
    (finding,) = run_check("rocm-unsupported-gfx", torch=NIGHTLY, system=gpu("gfx1010")).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == "The ROCm build of PyTorch has no code for gfx1010"


@pytest.mark.parametrize(
    ("torch", "target"),
    [
        pytest.param(NIGHTLY, "gfx1102", id="the next one has it"),
        pytest.param(FOREIGN, "gfx1010", id="built by somebody else"),
        pytest.param(
            Torch(installed=True, version=PackageVersion("2.14.0+rocm7.14"), build="rocm"), "gfx1010", id="no next one"
        ),
    ],
)
def test_a_release_whose_targets_are_not_verified_is_no_fault(torch: Torch, target: str) -> None:
    result = run_check("rocm-unsupported-gfx", torch=torch, system=gpu(target))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "torch.architectures is unknown")


def test_another_program_is_not_called_pytorch() -> None:
    (finding,) = run_check("rocm-unsupported-gfx", symptoms=(said("ggml-invalid-device-function"),)).findings
    assert finding.summary == "This program for ROCm has no code for this AMD GPU"


@pytest.mark.parametrize(
    ("kinds", "outcome"),
    [
        (("torch-invalid-device-function", "rocm-in-use"), Outcome.FOUND),
        (("torch-invalid-device-function",), Outcome.SKIPPED),
        (("torch-invalid-device-function", "rocm-in-use", "nvidia-gpu-named"), Outcome.SKIPPED),
    ],
)
def test_cudas_name_of_the_error_counts_in_a_program_for_rocm(kinds: tuple[str, ...], outcome: Outcome) -> None:
    symptoms = tuple(said(kind) for kind in kinds)
    assert run_check("rocm-unsupported-gfx", symptoms=symptoms).outcome is outcome
