"""Two snapshots: which facts differ, and which findings come and go."""

from typing import Any

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.model import (
    CudaVersion,
    Device,
    DeviceProcess,
    Driver,
    DriverVersion,
    Environment,
    Package,
    PackageVersion,
    Python,
    Report,
    Snapshot,
    Torch,
    TorchRuntime,
)
from gpudoctor.snapshots.comparison import Change, _member_names, compare
from tests.own_checks import own_checks

OLD = Driver(version=DriverVersion.parse("470.57.02"), cuda_version=CudaVersion(11, 4))
NEW = Driver(version=DriverVersion.parse("580.65.06"), cuda_version=CudaVersion(13, 0))
TORCH = Torch(installed=True, build="cuda", version=PackageVersion("2.9.0+cu128"), cuda_version=CudaVersion(12, 8))


def report(snapshot: Snapshot) -> Report:
    return run_checks(own_checks(), snapshot)


def packages(*names: str) -> Snapshot:
    return Snapshot(python=Python(packages=tuple(Package(name=n, version=PackageVersion("1.0")) for n in names)))


def test_a_machine_does_not_differ_from_itself() -> None:
    one = report(Snapshot(driver=OLD, torch=TORCH))
    assert not compare(one, one).differs
    assert compare(one, one).stayed == one.findings


def test_a_new_driver_takes_its_finding_away() -> None:
    comparison = compare(report(Snapshot(driver=OLD, torch=TORCH)), report(Snapshot(driver=NEW, torch=TORCH)))
    assert Change(fact="driver.version", before="470.57.02", after="580.65.06") in comparison.changes
    assert "driver-too-old" in [finding.check_id for finding in comparison.gone]
    assert comparison.come == ()


def test_a_package_that_is_gone() -> None:
    comparison = compare(report(packages("numpy", "torch")), report(packages("numpy")))
    assert Change(fact="python.packages[torch].version", before="1.0", after=None) in comparison.changes
    assert comparison.differs


def test_the_members_show_that_a_list_is_empty_now() -> None:
    comparison = compare(report(packages("torch")), report(packages()))
    assert "python.packages" not in [change.fact for change in (*comparison.changes, *comparison.one_sided)]


def test_a_variable_that_is_new() -> None:
    unset, is_set = (
        Snapshot(environment=Environment(variables=variables)) for variables in ({}, {"CUDA_VISIBLE_DEVICES": "0"})
    )
    (change,) = compare(report(unset), report(is_set)).changes
    assert (change.fact, change.before, change.after) == ("environment.variables[CUDA_VISIBLE_DEVICES]", None, "0")


def test_facts_that_only_one_has_are_distinguished() -> None:
    comparison = compare(report(Snapshot()), report(Snapshot(torch_runtime=TorchRuntime(available=True))))
    assert comparison.one_sided == (Change(fact="torch_runtime.available", before=None, after=True),)
    assert not comparison.changes


def test_a_list_that_only_one_has_read_is_distinguished() -> None:
    looked, not_looked = report(packages("numpy")), report(Snapshot())
    fact = "python.packages[numpy].version"
    for before, after, change in (
        (looked, not_looked, Change(fact=fact, before="1.0", after=None)),
        (not_looked, looked, Change(fact=fact, before=None, after="1.0")),
    ):
        comparison = compare(before, after)
        assert comparison.changes == ()
        assert change in comparison.one_sided


def test_the_words_of_two_reports_are_no_difference() -> None:
    first, second = (report(Snapshot(driver=OLD, words=words)) for words in (("docker", "gpu"), ("conda",)))
    assert not compare(first, second).differs


def test_readings_of_the_moment_are_no_difference() -> None:
    cool, hot = (
        Snapshot(taken_at=str(t), devices=(Device(nvml_index=0, temperature_celsius=t, memory_used_bytes=t),))
        for t in (40, 80)
    )
    assert not compare(report(cool), report(hot)).differs


@pytest.mark.parametrize(
    "key", ["nvml_index", "kind", "name", "path", "soname", "number", "precision", "library", "address"]
)
def test_members_of_a_list_are_named_by_their_identity(key: str) -> None:
    assert _member_names([{key: "a", "other": 1}, {key: "b", "other": 1}]) == ["a", "b"]
    assert _member_names([{key: "a"}, {key: "a"}]) == (["a", "a 2"] if key == "kind" else ["0", "1"])


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("memory_used_bytes", 1, 2),
        ("power_draw_watts", 10.0, 20.0),
        ("clock_sm_mhz", 210, 2520),
        ("throttle_reasons", (), ("gpu_idle",)),
        ("performance_state", 8, 2),
        ("utilization_percent", 0, 99),
        ("temperature_celsius", 30, 70),
        ("pcie_generation", 1, 4),
        ("processes", (), (DeviceProcess(pid=1),)),
    ],
)
def test_what_changes_from_moment_to_moment_is_no_difference(field: str, before: Any, after: Any) -> None:
    one, other = (Snapshot(devices=(Device(nvml_index=0, **{field: value}),)) for value in (before, after))
    comparison = compare(report(one), report(other))
    assert (comparison.changes, comparison.one_sided) == ((), ())
