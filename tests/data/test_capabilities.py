"""What runs on which compute capability."""

import pytest

from gpudoctor.data.capabilities import (
    bf16_support,
    features,
    first_toolkit,
    is_minor_turing,
    last_driver_branch,
    last_toolkit,
    runs_on,
    toolkit_architectures,
)
from gpudoctor.model import ComputeCapability, CudaVersion

capability = ComputeCapability.parse


@pytest.mark.parametrize(
    ("architecture", "device", "answer"),
    [
        pytest.param("sm_86", "8.6", True, id="the same"),
        pytest.param("sm_86", "8.9", True, id="same major, higher minor: an RTX 4090 needs no sm_89"),
        pytest.param("sm_80", "8.6", True, id="sm_80 on 8.6"),
        pytest.param("sm_86", "8.0", False, id="same major, lower minor"),
        pytest.param("sm_90", "10.0", False, id="another major"),
        pytest.param("sm_100", "10.3", True, id="B300 runs code for B200"),
        pytest.param("sm_100", "11.0", False, id="10.x does not run on 11.0"),
        pytest.param("sm_101", "11.0", False, id="Thor's old name is another architecture"),
        pytest.param("sm_120", "12.1", True, id="GB10 runs code for RTX 50"),
        pytest.param("sm_120", "10.0", False, id="sm_120 is not newer code for 10.0"),
        pytest.param("sm_86", "8.7", False, id="desktop code on Orin"),
        pytest.param("sm_87", "8.7", True, id="Orin's own code"),
        pytest.param("sm_87", "8.9", False, id="Orin's code on a desktop"),
        pytest.param("sm_70", "7.2", False, id="desktop code on Xavier"),
        pytest.param("sm_72", "7.5", False, id="Xavier's code on a desktop"),
        pytest.param("sm_90a", "9.0", True, id="a: exactly this one"),
        pytest.param("sm_100a", "10.3", False, id="a: not a higher minor"),
        pytest.param("sm_100f", "10.3", True, id="f: the family"),
        pytest.param("compute_80", "12.0", True, id="PTX on a newer device"),
        pytest.param("compute_80", "8.7", True, id="PTX on Orin"),
        pytest.param("compute_90", "8.6", False, id="PTX for a newer device"),
        pytest.param("compute_90a", "9.0", True, id="PTX a: exactly this one"),
        pytest.param("compute_90a", "10.0", False, id="PTX a: nothing newer"),
        pytest.param("compute_100f", "12.0", False, id="PTX f: no other major"),
        pytest.param("gfx1100", "8.6", False, id="a gfx target is not NVIDIA's"),
        pytest.param("", "8.6", False, id="empty"),
    ],
)
def test_runs_on(architecture: str, device: str, answer: bool) -> None:
    assert runs_on([architecture], capability(device)) is answer


def test_one_architecture_that_fits_is_enough() -> None:
    assert runs_on(("sm_50", "sm_86", "nonsense"), capability("8.9"))
    assert not runs_on((), capability("8.9"))


def test_desktop_code_runs_on_orin_from_cuda_13_2() -> None:
    assert runs_on(["sm_80"], capability("8.7"), CudaVersion(13, 2))
    assert not runs_on(["sm_80"], capability("8.7"), CudaVersion(13, 1))
    assert not runs_on(["sm_100"], capability("11.0"), CudaVersion(13, 2))


@pytest.mark.parametrize(
    ("device", "branch"),
    [("3.7", "R470"), ("5.2", "R580"), ("6.1", "R580"), ("7.0", "R580"), ("7.2", None), ("7.5", None), ("13.0", None)],
)
def test_last_driver_branch(device: str, branch: str | None) -> None:
    assert last_driver_branch(capability(device)) == branch


def test_toolkits_of_a_device() -> None:
    assert last_toolkit(capability("7.0")) == CudaVersion(12, 9)
    assert last_toolkit(capability("8.6")) is None
    assert first_toolkit(capability("12.0")) == CudaVersion(12, 8)
    assert first_toolkit(capability("13.0")) is None


def test_toolkit_architectures() -> None:
    newest_of_12 = toolkit_architectures(CudaVersion(12, 9))
    assert newest_of_12 is not None
    assert "sm_121" in newest_of_12
    assert "sm_70" in newest_of_12
    first_of_13 = toolkit_architectures(CudaVersion(13, 0))
    assert first_of_13 is not None
    assert "sm_70" not in first_of_13


def test_toolkit_outside_the_table_is_unknown() -> None:
    assert toolkit_architectures(CudaVersion(12, 7)) is None
    assert toolkit_architectures(CudaVersion(14, 0)) is None


@pytest.mark.parametrize(
    ("device", "fp16", "bf16", "tf32", "fp8", "tensor_cores"),
    [
        pytest.param("5.2", "emulated", None, "none", "none", False, id="Maxwell"),
        pytest.param("6.0", "native", "emulated", "none", "none", False, id="P100"),
        pytest.param("6.1", "slow", "emulated", "none", "none", False, id="GTX 1080"),
        pytest.param("7.0", "native", "emulated", "none", "none", True, id="V100"),
        pytest.param("7.5", "native", "emulated", "none", "none", True, id="T4"),
        pytest.param("8.6", "native", "native", "native", "none", True, id="RTX 3090"),
        pytest.param("8.9", "native", "native", "native", "native", True, id="RTX 4090"),
        pytest.param("9.0", "native", "native", "native", "native", True, id="H100"),
    ],
)
def test_features(device: str, fp16: str, bf16: str | None, tf32: str, fp8: str, tensor_cores: bool) -> None:
    found = features(capability(device))
    assert found is not None
    assert (found.fp16, found.bf16, found.tf32, found.fp8) == (fp16, bf16, tf32, fp8)
    assert found.tensor_cores is tensor_cores
    assert found.source


def test_fp4_starts_with_blackwell() -> None:
    blackwell, hopper = features(capability("10.0")), features(capability("9.0"))
    assert blackwell is not None
    assert hopper is not None
    assert (blackwell.fp4, hopper.fp4) == ("native", "none")


def test_what_is_not_verified_is_unknown() -> None:
    xavier = features(capability("7.2"))
    assert xavier is not None
    assert xavier.tensor_cores is None
    assert features(capability("13.0")) is None


@pytest.mark.parametrize(
    ("name", "minor"),
    [
        ("NVIDIA GeForce GTX 1660 Ti", True),
        ("GeForce GTX 1650", True),
        ("Quadro T1000", True),
        ("NVIDIA T600 Laptop GPU", True),
        ("NVIDIA T1000 8GB", True),
        ("NVIDIA GeForce GTX 1080 Ti", False),
        ("NVIDIA GeForce RTX 2060", False),
        ("Tesla T4", False),
        ("Quadro RTX 4000", False),
        ("NVIDIA T4G", False),
    ],
)
def test_turing_chips_without_tensor_cores(name: str, minor: bool) -> None:
    assert is_minor_turing(name) is minor


@pytest.mark.parametrize(
    ("device", "support"),
    [("6.1", "emulated"), ("7.5", "emulated"), ("8.0", "native"), ("8.9", "native"), ("99.0", "native"), ("3.5", None)],
)
def test_bf16_is_native_from_8_0_on(device: str, support: str | None) -> None:
    assert bf16_support(capability(device)) == support
