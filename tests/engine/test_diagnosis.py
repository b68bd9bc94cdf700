"""The root cause comes first, and what it explains after it."""

from dataclasses import replace

from gpudoctor.engine.diagnosis import diagnose
from gpudoctor.model import Finding, Severity
from gpudoctor.registry import Check


def catalog(*checks: tuple[str, str, tuple[str, ...]]) -> dict[str, Check]:
    return {
        check_id: Check(
            id=check_id, family=family, sections=(), optional=(), explains=explains, function=lambda: iter(())
        )
        for check_id, family, explains in checks
    }


def finding(check_id: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(check_id=check_id, severity=severity, summary=check_id)


CHECKS = catalog(
    ("driver-gone", "driver", ("torch-blind", "cupy-blind")),
    ("torch-blind", "torch", ("slow",)),
    ("cupy-blind", "cupy", ()),
    ("slow", "precision", ()),
    ("disk-full", "tool", ()),
)


def order(*findings: Finding) -> list[tuple[str, str | None]]:
    return [(found.check_id, found.caused_by) for found in diagnose(findings, CHECKS)]


def test_a_cause_stands_before_what_it_explains() -> None:
    assert order(finding("slow"), finding("cupy-blind"), finding("torch-blind"), finding("driver-gone")) == [
        ("driver-gone", None),
        ("torch-blind", "driver-gone"),
        ("slow", "torch-blind"),
        ("cupy-blind", "driver-gone"),
    ]


def test_a_root_cause_is_named_rather_than_what_lies_between() -> None:
    checks = catalog(("a", "driver", ("z",)), ("m", "container", ("a", "z")), ("z", "torch", ()))
    found = diagnose([finding("a"), finding("m"), finding("z")], checks)
    assert [(item.check_id, item.caused_by) for item in found] == [("m", None), ("a", "m"), ("z", "m")]


def test_one_fault_is_one_error() -> None:
    found = diagnose([finding("torch-blind"), finding("driver-gone"), finding("cupy-blind")], CHECKS)
    assert [item.severity for item in found] == [Severity.ERROR, Severity.INFO, Severity.INFO]


def test_independent_findings_stand_by_severity_then_by_depth() -> None:
    found = [finding("disk-full", Severity.WARNING), finding("cupy-blind"), finding("torch-blind")]
    assert order(*found) == [("torch-blind", None), ("cupy-blind", None), ("disk-full", None)]


def test_advice_explains_nothing() -> None:
    found = [finding("torch-blind"), finding("driver-gone", Severity.INFO)]
    assert order(*found) == [("torch-blind", None), ("driver-gone", None)]


def test_two_checks_that_explain_each_other_lose_no_finding() -> None:
    checks = catalog(("hen", "driver", ("egg",)), ("egg", "torch", ("hen",)))
    found = diagnose([finding("egg"), finding("hen")], checks)
    assert sorted(item.check_id for item in found) == ["egg", "hen"]
    assert [item.caused_by is None for item in found] == [True, False]


def test_a_cause_takes_over_the_severity_of_what_it_explains() -> None:
    found = diagnose([finding("driver-gone", Severity.WARNING), finding("torch-blind")], CHECKS)
    assert [(item.check_id, item.severity) for item in found] == [
        ("driver-gone", Severity.ERROR),
        ("torch-blind", Severity.INFO),
    ]


def test_the_order_does_not_depend_on_the_order_found() -> None:
    found = [finding("cupy-blind"), finding("torch-blind"), finding("driver-gone"), finding("slow")]
    assert order(*found) == order(*reversed(found))


def of_setup(check_id: str, number: int) -> Finding:
    fact = f"containers.setups[{number}].torch"
    return Finding(check_id=check_id, severity=Severity.ERROR, summary=f"{check_id} {number}", facts=(fact,))


def test_a_container_seen_from_outside_explains_nothing_of_the_machine() -> None:
    assert order(of_setup("driver-gone", 0), finding("torch-blind")) == [("driver-gone", None), ("torch-blind", None)]


def test_a_container_seen_from_outside_explains_only_itself() -> None:
    found = [of_setup("driver-gone", 0), of_setup("torch-blind", 1), of_setup("cupy-blind", 0)]
    assert order(*found) == [("driver-gone", None), ("cupy-blind", "driver-gone"), ("torch-blind", None)]


def test_the_machine_explains_its_containers() -> None:
    found = [finding("driver-gone"), of_setup("torch-blind", 1)]
    assert order(*found) == [("driver-gone", None), ("torch-blind", "driver-gone")]


def severities(chosen: dict[str, Severity], *findings: Finding) -> list[tuple[str, Severity]]:
    return [(found.check_id, found.severity) for found in diagnose(findings, CHECKS, chosen)]


def test_the_severity_that_the_user_chose_covers_what_follows() -> None:
    both = (finding("driver-gone"), finding("torch-blind"))
    for chosen in (Severity.WARNING, Severity.INFO):
        assert severities({"driver-gone": chosen}, *both) == [("driver-gone", chosen), ("torch-blind", Severity.INFO)]


def test_a_higher_severity_of_what_follows_is_the_causes() -> None:
    both = (finding("driver-gone", Severity.WARNING), finding("torch-blind", Severity.WARNING))
    assert severities({"torch-blind": Severity.ERROR}, *both)[0] == ("driver-gone", Severity.ERROR)


def test_findings_stand_by_the_severity_that_was_chosen() -> None:
    chosen = {"disk-full": Severity.ERROR, "torch-blind": Severity.WARNING}
    assert severities(chosen, finding("torch-blind"), finding("disk-full", Severity.INFO)) == [
        ("disk-full", Severity.ERROR),
        ("torch-blind", Severity.WARNING),
    ]


def test_an_unmet_demand_is_explained_by_its_fault_and_by_what_explains_that() -> None:
    demand = Finding(
        check_id="disk-full", severity=Severity.ERROR, summary="torch is asked for", same_fault_as=("torch-blind",)
    )
    for cause in ("torch-blind", "driver-gone"):
        first, second = diagnose([demand, finding(cause, Severity.WARNING)], CHECKS, {cause: Severity.INFO})
        assert (first.check_id, first.severity, second.caused_by) == (cause, Severity.INFO, cause)
        assert second.severity is Severity.ERROR
    (alone, _) = diagnose([demand, finding("cupy-blind")], CHECKS)[::-1]
    assert alone.caused_by is None


def test_advice_that_names_the_same_fault_explains_it_only_if_nothing_worse_does() -> None:
    checks = catalog(("a", "driver", ()), ("b", "driver", ("z",)), ("c", "driver", ("b",)), ("z", "torch", ()))
    missing = replace(finding("z"), same_fault_as=("a",))
    for severity, cause in ((Severity.INFO, "b"), (Severity.ERROR, "a")):
        found = diagnose([finding("a", severity), finding("b"), finding("c"), missing], checks)
        assert {item.check_id: item.caused_by for item in found}["z"] == cause
