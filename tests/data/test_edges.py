"""The first and the last row of each table: one number more or less there changes an answer."""

import pytest

from gpudoctor.data.capabilities import (
    features,
    first_toolkit,
    is_tegra,
    last_driver_branch,
    last_toolkit,
    runs_on,
    toolkit_architectures,
)
from gpudoctor.data.drivers import driver_can_run, driver_for, minimum_driver, old_torch_cuda, supported_cuda
from gpudoctor.data.errors import xid_meaning
from gpudoctor.data.gpu_names import capability_of
from gpudoctor.data.peaks import device_peak
from gpudoctor.data.torch_builds import torch_builds, torch_companions, torch_releases
from gpudoctor.model import ComputeCapability, CudaVersion, DriverVersion


def version(text: str) -> DriverVersion:
    return DriverVersion.parse(text)


@pytest.mark.parametrize(
    ("cuda", "linux", "windows"),
    [
        ("10.0", "410.48", "411.31"),
        ("13.3", "610.43.02", None),
        ("13.5", None, None),
        ("9.2", "396.26", "397.44"),
        ("9.1", None, None),
    ],
)
def test_the_driver_of_a_toolkit(cuda: str, linux: str | None, windows: str | None) -> None:
    found = [driver_for(CudaVersion.parse(cuda), os) for os in ("linux", "windows")]
    assert found == [None if text is None else version(text) for text in (linux, windows)]


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ("409.99", "9.2"),
        ("395.99", None),
        ("410.48", "10.0"),
        ("417.35", "10.0"),
        ("418.39", "10.1"),
        ("615.10", "13.4"),
        ("620.00", None),
    ],
)
def test_what_a_branch_offers(driver: str, cuda: str | None) -> None:
    assert supported_cuda(version(driver)) == (None if cuda is None else CudaVersion.parse(cuda))


@pytest.mark.parametrize(
    ("major", "linux", "windows"),
    [(11, "450.80.02", "452.39"), (12, "525.60.13", "527.41"), (13, "580", "580")],
)
def test_the_floor_of_a_major(major: int, linux: str, windows: str) -> None:
    cuda = CudaVersion(major, 1)
    assert [minimum_driver(cuda, os) for os in ("linux", "windows")] == [version(linux), version(windows)]
    assert driver_can_run(version(linux), cuda) is True
    below = {"450.80.02": "450.80.01", "525.60.13": "525.60.12", "580": "579.99"}[linux]
    assert driver_can_run(version(below), cuda) is False


@pytest.mark.parametrize(
    ("release", "cuda"),
    [("1.1", None), ("1.2", "10.0"), ("1.3", "10.1"), ("1.4", "10.1"), ("1.5", "10.2"), ("1.7", "10.2"), ("1.8", None)],
)
def test_the_cuda_version_of_an_old_wheel(release: str, cuda: str | None) -> None:
    assert old_torch_cuda(release) == (None if cuda is None else CudaVersion.parse(cuda))


def test_the_oldest_and_the_newest_capability() -> None:
    kepler, gb10 = ComputeCapability(3, 0), ComputeCapability(12, 1)
    assert (first_toolkit(kepler), last_toolkit(kepler)) == (CudaVersion(6, 0), CudaVersion(10, 2))
    assert (last_driver_branch(kepler), last_driver_branch(gb10)) == ("R470", None)
    assert (first_toolkit(gb10), last_toolkit(gb10)) == (CudaVersion(12, 9), None)
    old, new = features(kepler), features(gb10)
    assert old is not None
    assert new is not None
    assert (old.tensor_cores, new.tensor_cores, old.fp8, new.fp4) == (False, True, "none", "native")
    assert features(ComputeCapability(2, 9)) is None
    assert features(ComputeCapability(12, 2)) is None


def test_what_the_oldest_and_the_newest_toolkit_compile_for() -> None:
    oldest, newest = toolkit_architectures(CudaVersion(11, 7)), toolkit_architectures(CudaVersion(13, 5))
    assert oldest is not None
    assert newest is not None
    assert (oldest[0], oldest[-1], newest[0], newest[-1]) == ("sm_35", "sm_87", "sm_75", "sm_121")
    assert toolkit_architectures(CudaVersion(13, 6)) is None
    assert toolkit_architectures(CudaVersion(11, 6)) is None


@pytest.mark.parametrize("sm", ["3.2", "5.3", "6.2", "7.2", "8.7", "10.1", "11.0"])
def test_boards_run_only_their_own_machine_code(sm: str) -> None:
    board = ComputeCapability.parse(sm)
    assert is_tegra(board)
    assert runs_on([board.sm], board)
    assert not runs_on([f"sm_{board.major}0"], board) or board.minor == 0
    assert not runs_on([board.sm], ComputeCapability(board.major, board.minor + 1))


@pytest.mark.parametrize("sm", ["3.0", "5.2", "6.1", "7.0", "7.5", "8.6", "8.9", "10.0", "10.3", "11.1", "12.0"])
def test_other_devices_are_no_boards(sm: str) -> None:
    assert not is_tegra(ComputeCapability.parse(sm))


@pytest.mark.parametrize(("cuda", "runs"), [(None, False), ((13, 1), False), ((13, 2), True)])
def test_orin_runs_desktop_code_from_13_2_on(cuda: tuple[int, int] | None, runs: bool) -> None:
    assert runs_on(["sm_80"], ComputeCapability(8, 7), None if cuda is None else CudaVersion(*cuda)) is runs


def test_the_first_and_the_last_build() -> None:
    first, last = torch_builds()[0], torch_builds()[-1]
    assert (first.release, first.version, first.cuda, first.minimum_glibc) == (
        "1.2",
        "1.2.0",
        CudaVersion(9, 2),
        (2, 5),
    )
    assert (last.release, last.version, last.cuda, last.minimum_glibc) == (
        "2.15",
        "2.15.0",
        CudaVersion(13, 4),
        (2, 28),
    )
    assert (torch_releases()[0].versions, torch_releases()[-1].versions) == (("1.2.0",), ("2.15.0",))
    old, new = torch_companions("1.2.0"), torch_companions("2.15.0")
    assert old is not None
    assert new is not None
    assert (old.torchvision, old.torchaudio, new.torchvision, new.torchaudio) == ("0.4.0", "0.3.0", None, "2.11.0")


@pytest.mark.parametrize(
    ("name", "device", "capability"),
    [
        ("NVIDIA TITAN RTX", None, (7, 5)),
        ("Orin", None, (8, 7)),
        (None, "1E02", (7, 5)),
        (None, "1EFF", (7, 5)),
        (None, "2EFF", (12, 1)),
        (None, "1DFF", (7, 0)),
        (None, "3EFF", None),
    ],
)
def test_a_gpu_by_its_name_or_number(name: str | None, device: str | None, capability: tuple[int, int] | None) -> None:
    assert capability_of(name, device) == (None if capability is None else ComputeCapability(*capability))


def test_the_first_and_the_last_peak() -> None:
    gb200, t4 = device_peak("NVIDIA GB200"), device_peak("Tesla T4")
    assert gb200 is not None
    assert t4 is not None
    assert (gb200.tflops, gb200.bandwidth_gb_s) == ({"fp32": 80, "tf32": 1250, "bf16": 2500, "fp16": 2500}, 8000)
    assert (t4.tflops, t4.bandwidth_gb_s) == ({"fp16": 65.13}, None)


@pytest.mark.parametrize(("number", "known"), [(7, False), (8, True), (172, True), (173, False)])
def test_the_catalogue_of_xids(number: int, known: bool) -> None:
    assert (xid_meaning(number) is not None) is known
