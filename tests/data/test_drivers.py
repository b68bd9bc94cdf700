"""Drivers and the CUDA versions that they run."""

import datetime

import pytest

from gpudoctor.data.drivers import (
    driver_can_run,
    driver_for,
    end_is_exact,
    end_of_life,
    first_driver,
    minimum_driver,
    offered_cuda_can_run,
    old_torch_cuda,
    packaged_driver,
    supported_cuda,
    tensorflow_cuda,
    windows_driver,
)
from gpudoctor.data.tables import load_table
from gpudoctor.model import ComputeCapability, CudaVersion, DriverVersion

cuda = CudaVersion.parse
driver = DriverVersion.parse


@pytest.mark.parametrize(
    ("version", "needed"),
    [
        pytest.param("13.2", "580", id="13: one floor for the major"),
        pytest.param("13.5", "580", id="13.5 has no driver of its own in the table, the floor holds"),
        pytest.param("12.8", "525.60.13", id="12: the driver of 12.0"),
        pytest.param("11.8", "450.80.02", id="11: minor-version compatibility starts here"),
        pytest.param("10.2", "440.33", id="10: the driver of the toolkit itself"),
        pytest.param("10.0", "410.48", id="10.0"),
    ],
)
def test_minimum_driver(version: str, needed: str) -> None:
    assert minimum_driver(cuda(version)) == driver(needed)


def test_windows_has_its_own_numbers() -> None:
    assert minimum_driver(cuda("12.4"), "windows") == driver("527.41")
    assert driver_can_run(driver("526.98"), cuda("12.4"), "windows") is False
    assert driver_can_run(driver("528.33"), cuda("12.4"), "windows") is True


@pytest.mark.parametrize("version", ["14.0", "9.1"])
def test_a_major_outside_the_table_has_no_known_minimum(version: str) -> None:
    assert minimum_driver(cuda(version)) is None


@pytest.mark.parametrize(
    ("version", "offered"),
    [
        pytest.param("535.129.03", "12.2", id="R535"),
        pytest.param("565.57.01", "12.7", id="R565 offers a 12.7 that has no toolkit"),
        pytest.param("580.65.06", "13.0", id="R580"),
        pytest.param("615.71.09", "13.4", id="the newest branch"),
        pytest.param("537.13", "12.2", id="Windows number of R535"),
        pytest.param("474.44", "11.4", id="Windows number of R470"),
        pytest.param("616.41", "13.4", id="Windows number of R615"),
        pytest.param("620.10", None, id="newer than the table"),
        pytest.param("390.157", None, id="older than the table"),
    ],
)
def test_supported_cuda_by_branch(version: str, offered: str | None) -> None:
    assert supported_cuda(driver(version)) == (None if offered is None else cuda(offered))


@pytest.mark.parametrize(
    ("version", "program", "answer"),
    [
        pytest.param("535.129.03", "12.2", True, id="what it offers"),
        pytest.param("535.129.03", "12.8", True, id="the number of nvidia-smi is no ceiling within the major"),
        pytest.param("535.129.03", "11.8", True, id="older majors always run"),
        pytest.param("535.129.03", "13.0", False, id="a newer major does not"),
        pytest.param("525.60.13", "12.9", True, id="the floor of 12"),
        pytest.param("525.60.11", "12.9", False, id="just below the floor"),
        pytest.param("580.65.06", "13.5", True, id="a toolkit whose own driver is not known"),
        pytest.param("450.51.06", "11.0", True, id="11.0 on its own driver"),
        pytest.param("450.51.06", "11.1", False, id="below 450.80.02 there is no minor-version compatibility"),
        pytest.param("450.80.02", "11.8", True, id="the floor of 11"),
        pytest.param("418.39", "10.2", False, id="10 has no minor-version compatibility"),
        pytest.param("620.10", "13.4", True, id="a driver newer than the table runs what the table holds"),
        pytest.param("620.10", "14.0", None, id="both newer than the table"),
        pytest.param("580.65.06", "14.0", False, id="a known driver and a major that came after it"),
        pytest.param("390.157", "9.1", None, id="both older than the table"),
    ],
)
def test_driver_can_run(version: str, program: str, answer: bool | None) -> None:
    assert driver_can_run(driver(version), cuda(program)) is answer


@pytest.mark.parametrize(
    ("offered", "program", "answer"),
    [("12.2", "12.8", True), ("12.2", "13.0", False), ("13.0", "11.8", True), ("10.1", "10.2", False)],
)
def test_by_the_offered_cuda_version_alone(offered: str, program: str, answer: bool) -> None:
    assert offered_cuda_can_run(cuda(offered), cuda(program)) is answer


def test_driver_for_is_the_driver_of_the_toolkit_itself() -> None:
    assert driver_for(cuda("12.6")) == driver("560.28.03")
    assert driver_for(cuda("13.4")) is None  # its release notes name only the branch
    assert driver_for(cuda("12.6"), "windows") == driver("560.76")


def test_end_of_life() -> None:
    assert end_of_life(driver("535.129.03")) == datetime.date(2026, 6, 30)
    assert end_of_life(driver("595.71.05")) == datetime.date(2027, 3, 31)


@pytest.mark.parametrize(
    ("version", "ended", "exact"),
    [
        ("418.226.00", "2022-03-31", True),
        ("440.33", "2020-11-30", True),
        ("450.248.02", "2023-07-31", True),
        ("460.106.00", "2022-01-31", True),
        ("470.256.02", "2026-02-28", False),
        ("550.163.01", "2026-02-28", False),
        ("570.195.03", "2026-02-28", True),
    ],
)
def test_end_of_life_of_old_branches(version: str, ended: str, exact: bool) -> None:
    assert str(end_of_life(driver(version))) == ended
    assert end_is_exact(driver(version)) is exact


@pytest.mark.parametrize(
    ("distribution", "version", "packaged"),
    [
        ("debian", "11", "470.256.02"),
        ("debian", "12", "535.247.01"),
        ("debian", "13", "550.163.01"),
        ("debian", "14", None),
        ("debian", None, None),
        ("ubuntu", "12", None),
    ],
)
def test_the_driver_of_a_distribution(distribution: str, version: str | None, packaged: str | None) -> None:
    assert packaged_driver(distribution, version) == (packaged and driver(packaged))


def test_end_of_life_is_the_later_date_if_sources_disagree() -> None:
    assert end_of_life(driver("580.65.06")) == datetime.date(2028, 8, 31)


@pytest.mark.parametrize("version", ["590.48.01", "620.10"])
def test_end_of_life_that_no_page_gives_is_unknown(version: str) -> None:
    assert end_of_life(driver(version)) is None


def test_every_toolkit_runs_on_its_own_driver() -> None:
    rows = [row for row in load_table("drivers")["toolkits"] if row["linux"] is not None]
    for row in rows:
        # 11.0.1 was a release candidate: its driver is older than the branch's first release.
        assert driver_can_run(driver(row["linux"]), cuda(row["cuda"])) is True, row


@pytest.mark.parametrize(
    ("number", "driver"),
    [("31.0.15.2686", "526.86"), ("27.21.14.5671", "456.71"), ("32.0.15.6094", "560.94"), ("15.9159", "591.59")],
)
def test_a_driver_in_the_notation_of_windows(number: str, driver: str) -> None:
    assert windows_driver(number) == DriverVersion.parse(driver)


def test_less_than_five_digits_are_no_driver_of_windows() -> None:
    with pytest.raises(ValueError, match="not a driver version of Windows"):
        windows_driver("1.2")


def test_the_cuda_version_of_an_old_wheel() -> None:
    assert [old_torch_cuda(release) for release in ("1.2", "1.4", "1.6", "0.4")] == [
        CudaVersion(10, 0),
        CudaVersion(10, 1),
        CudaVersion(10, 2),
        None,
    ]


def test_the_first_driver_of_an_architecture() -> None:
    assert first_driver(ComputeCapability(8, 9)) == DriverVersion.parse("520.61.05")
    assert first_driver(ComputeCapability(6, 1)) is None


def test_the_cuda_version_of_tensorflow() -> None:
    found = [tensorflow_cuda(release) for release in ("1.4", "1.5", "1.13", "2.3", "2.10", "2.20")]
    assert [str(version) for version in found] == ["None", "9.0", "10.0", "10.1", "11.2", "12.5"]
