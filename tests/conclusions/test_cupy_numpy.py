"""The NumPy that is installed and the one that CuPy needs."""

from __future__ import annotations

import pytest

from gpudoctor.conclusions.cupy_numpy import allows, cupy_numpy
from gpudoctor.model import Cupy, CupyStatus, Package, PackageVersion, Python, Symptom

V13 = CupyStatus(version=PackageVersion("13.6.0"))


def test_the_metadata_comes_before_the_table() -> None:
    found = cupy_numpy(Cupy(numpy_requirement=">=1.22,<2.3"), V13, Python(), None)
    assert (found.requirement, found.requirement_fact) == (">=1.22,<2.3", "cupy.numpy_requirement")
    found = cupy_numpy(Cupy(version=PackageVersion("13.6.0")), V13, Python(), None)
    assert (found.requirement, found.requirement_fact) == (">=1.22,<3", "cupy.version")
    assert cupy_numpy(None, V13, Python(), None).requirement == ""


@pytest.mark.parametrize(
    ("numpy", "fits"), [("1.21.6", False), ("1.22.0", True), ("2.4.0", True), ("3.0.0", False), (None, None)]
)
def test_whether_it_fits(numpy: str | None, fits: bool | None) -> None:
    version = PackageVersion(numpy) if numpy else None
    found = cupy_numpy(Cupy(version=PackageVersion("13.6.0"), numpy_version=version), V13, Python(), None)
    assert found.fits is fits


def test_numpy_is_looked_up_among_the_packages() -> None:
    python = Python(packages=(Package(name="numpy", version=PackageVersion("2.1.0")),))
    found = cupy_numpy(None, V13, python, None)
    assert (str(found.version), found.version_fact) == ("2.1.0", "python.packages[0].version")


def test_what_cannot_be_read_is_no_misfit() -> None:
    assert allows("about 2", PackageVersion("1.0"))
    assert allows(">=2", PackageVersion("unknown"))


@pytest.mark.parametrize(
    ("version", "function", "fact", "counts"),
    [
        ("12.3.0", "product", "symptoms[0].text", True),
        ("12.4.0", "product", "symptoms[0].text", False),
        ("13.2.0", "compat", "symptoms[0].text", True),
        ("13.3.0", "compat", "symptoms[0].text", False),
        ("12.3.0", "product", "torch_runtime.warnings[0]", False),
        (None, "product", "symptoms[0].text", False),
    ],
)
def test_a_removed_function_counts_if_this_cupy_used_it(
    version: str | None, function: str, fact: str, counts: bool
) -> None:
    symptom = Symptom(kind="numpy-function-removed", text="x", names={"function": function}, fact=fact)
    status = CupyStatus(version=PackageVersion(version) if version else None)
    assert (cupy_numpy(None, status, Python(), (symptom,)).failure is symptom) is counts
