import pytest

from gpudoctor.model import ComputeCapability, Device, Outcome, Severity
from gpudoctor.testing import run_check


def device(capability: str | None, name: str = "GPU", index: int = 0) -> Device:
    return Device(
        nvml_index=index, name=name, compute_capability=ComputeCapability.parse(capability) if capability else None
    )


@pytest.mark.parametrize(
    ("capability", "name", "abilities"),
    [
        ("8.0", "NVIDIA A100", "(Ampere, tensor cores; native fp16 bf16 tf32 int8; without fp8 fp4)"),
        ("7.5", "Tesla T4", "(Turing, tensor cores; native fp16 int8; emulated bf16; without tf32 fp8 fp4)"),
        ("6.1", "GTX 1080", "(Pascal, no tensor cores; slow fp16; emulated bf16; without tf32 int8 fp8 fp4)"),
        ("9.0", "NVIDIA H100", "(Hopper, tensor cores; native fp16 bf16 tf32 int8 fp8; without fp4)"),
        ("12.0", "RTX 5090", "(Blackwell (RTX), tensor cores; native fp16 bf16 tf32 int8 fp8 fp4)"),
    ],
)
def test_what_a_device_gives(capability: str, name: str, abilities: str) -> None:
    (finding,) = run_check("compute-capability", devices=(device(capability, name),)).findings
    assert finding.severity is Severity.INFO
    assert finding.summary == f"GPU 0 ({name}): compute capability {capability} {abilities}"


def test_a_gtx_16_has_the_number_of_an_rtx_20_and_no_tensor_cores() -> None:
    (finding,) = run_check("compute-capability", devices=(device("7.5", "NVIDIA GeForce GTX 1660 Ti"),)).findings
    assert "(Turing, no tensor cores; native fp16; emulated bf16; without tf32 int8 fp8 fp4)" in finding.summary
    row = finding.details["devices"][0]
    assert (row["tensor_cores"], row["int8"]) == (False, "none")


def test_equal_devices_are_one_line_and_each_has_its_row() -> None:
    devices = (*(device("9.0", "NVIDIA H200", n) for n in range(8)), device("8.9", "NVIDIA L4", 8))
    h200, l4 = run_check("compute-capability", devices=devices).findings
    assert h200.subject == "GPUs 0-7 (NVIDIA H200)"
    assert [row["nvml_index"] for row in h200.details["devices"]] == list(range(8))
    assert l4.subject == "GPU 8 (NVIDIA L4)"


def test_a_newer_device_is_named_and_not_called_wrong() -> None:
    (finding,) = run_check("compute-capability", devices=(device("19.0"),)).findings
    assert finding.severity is Severity.INFO
    assert finding.summary == "GPU 0 (GPU): compute capability 19.0, which the tables of this version do not know"


def test_an_unknown_capability_is_no_pass() -> None:
    result = run_check("compute-capability", devices=(device(None, "No Such GPU"),))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "devices[0].compute_capability is unknown")
