"""Drivers and the CUDA versions that they run."""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpudoctor.data.capabilities import first_toolkit
from gpudoctor.data.tables import load_table
from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion

if TYPE_CHECKING:
    import datetime

# Windows numbers run ahead of the branch: 474 is of R470, 616.41 of R615; in the table never by more than 4.
_NUMBERS_PER_BRANCH = 5


def minimum_driver(cuda: CudaVersion, os: str | None = "linux") -> DriverVersion | None:
    """Return the oldest driver that runs programs built with `cuda`; None if the table does not know.

    From CUDA 11 on, minor-version compatibility makes this one version for the whole major (13.x: 580); for older
    ones it is the driver of the toolkit itself.
    """
    floor = _floors().get(cuda.major)
    if floor is not None:
        return DriverVersion.parse(floor["windows" if os == "windows" else "linux"])
    return driver_for(cuda, os)


def supported_cuda(driver: DriverVersion) -> CudaVersion | None:
    """Return the highest CUDA version that `driver` offers, by its branch; None for one outside the table."""
    number = driver.parts[0]
    if number >= max(_offered_by_branch()) + _NUMBERS_PER_BRANCH:
        return None
    return next((cuda for branch, cuda in _offered_by_branch().items() if branch <= number), None)


@functools.cache
def driver_can_run(driver: DriverVersion, cuda: CudaVersion, os: str | None = "linux") -> bool | None:
    """Return whether `driver` runs programs built with `cuda`; None if the table does not know.

    The CUDA version that nvidia-smi prints is not a ceiling: within a major from 11 on, minor-version compatibility
    applies, and every driver runs what older ones run. The forward-compatibility package is left out.
    """
    offered = supported_cuda(driver)
    if offered is not None and cuda <= offered:
        return True
    needed = minimum_driver(cuda, os)
    if needed is not None:
        return driver >= needed
    if offered is not None and cuda.major > max(_floors()):
        return False  # a major newer than the table, on a driver whose branch the table knows
    return None


def offered_cuda_can_run(offered: CudaVersion, cuda: CudaVersion) -> bool:
    """Return whether a driver that offers `offered` runs programs built with `cuda`, by minor-version compatibility."""
    return cuda <= offered or (cuda.major == offered.major and cuda.major in _floors())


def newest_cuda() -> int:
    """Return the newest CUDA major version that the tables know."""
    return max(_floors())


def driver_for(cuda: CudaVersion, os: str | None = "linux") -> DriverVersion | None:
    """Return the driver that corresponds to the first release of the toolkit `cuda`; None if it is not verified."""
    column = "windows" if os == "windows" else "linux"
    drivers = [row[column] for row in load_table("drivers")["toolkits"] if row["cuda"] == str(cuda) and row[column]]
    return min(map(DriverVersion.parse, drivers), default=None)


def windows_driver(number: str) -> DriverVersion:
    """Return the driver that Windows calls "31.0.15.2686" in its device manager: the last five digits, 526.86.

    Raises:
        ValueError: the text contains fewer than five digits.
    """
    digits = "".join(character for character in number if character.isdecimal())[-5:]
    if len(digits) < 5:
        raise ValueError(f"not a driver version of Windows: {number!r}")
    return DriverVersion((int(digits[:3]), int(digits[3:])))


def old_torch_cuda(release: str) -> CudaVersion | None:
    """Return the CUDA version of the wheel that PyPI carried of an old release of PyTorch ("1.4"); None if unknown."""
    rows = load_table("drivers")["old_torch"]
    return next((CudaVersion.parse(row["cuda"]) for row in rows if row["release"] == release), None)


def tensorflow_cuda(release: str) -> CudaVersion | None:
    """Return the CUDA version of the GPU builds of a release of TensorFlow ("2.10"); None if unknown."""
    minor = tuple(int(part) for part in release.split(".")[:2])
    rows = load_table("drivers")["tensorflow"]
    since = [row["cuda"] for row in rows if tuple(int(part) for part in row["release"].split(".")) <= minor]
    return CudaVersion.parse(since[-1]) if since else None


def first_driver(capability: ComputeCapability, os: str | None = "linux") -> DriverVersion | None:
    """Return the oldest driver that can know devices of this compute capability; None if that is not verified.

    It is the driver of the first CUDA toolkit that compiles for them, of whose branch the first ones were too.
    """
    toolkit = first_toolkit(capability)
    return driver_for(toolkit, os) if toolkit is not None else None


def packaged_driver(distribution: str | None, version: str | None) -> DriverVersion | None:
    """Return the driver in the own packages of a distribution release; None for one outside the table."""
    rows = load_table("drivers")["packaged"]
    major = (version or "").partition(".")[0]
    found = (row["driver"] for row in rows if (row["distribution"], row["version"]) == (distribution, major))
    return next(map(DriverVersion.parse, found), None)


def end_of_life(driver: DriverVersion) -> "datetime.date | None":
    """Return the last day of support of the driver's branch; None if no date was published or verified."""
    import datetime

    row = _branch_rows().get(driver.branch)
    if row is None or row["end_of_life"] is None:
        return None
    return datetime.date.fromisoformat(row["end_of_life"])


def end_is_exact(driver: DriverVersion) -> bool:
    """Return whether the branch's end of life is a published day, and not one by which it had ended."""
    return bool(_branch_rows()[driver.branch].get("exact", True))


@functools.cache
def _floors() -> Mapping[int, Mapping[str, Any]]:
    return {row["major"]: row for row in load_table("drivers")["floors"]}


@functools.cache
def _branch_rows() -> Mapping[str, Mapping[str, Any]]:
    return {row["branch"]: row for row in load_table("drivers")["branches"]}


@functools.cache
def _offered_by_branch() -> Mapping[int, CudaVersion]:
    """Return branch number → the CUDA version that it offers, newest branch first."""
    pairs = ((int(name[1:]), CudaVersion.parse(row["cuda"])) for name, row in _branch_rows().items())
    return dict(sorted(pairs, reverse=True))
