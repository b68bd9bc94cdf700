"""The causes that are possible: at most three, none that what is known excludes."""

import math

import pytest

from gpudoctor.data.tables import load_table
from gpudoctor.triage.possible import _counts, _logarithms, _score, possible_causes
from tests.own_checks import own_checks

ROWS = load_table("possible_causes")["causes"]


def causes(*features: str, excluded: tuple[str, ...] = ()) -> list[str]:
    return [cause.check for cause in possible_causes(frozenset(features), excluded)]


@pytest.mark.parametrize(
    "features", [("os:linux",), ("os:windows", "about:torch"), ("os:darwin",), ("place:docker", "os:linux"), ("live",)]
)
def test_at_most_three_with_the_observation_that_decides(features: tuple[str, ...]) -> None:
    found = possible_causes(frozenset(features))
    assert 1 <= len(found) <= 3
    assert all(cause.why and cause.confirm for cause in found)


def test_what_excludes_a_cause_leaves_it_out() -> None:
    rows = [row for row in ROWS if "os:darwin" in row.get("excluded_by", ())]
    assert rows
    assert not {row["check"] for row in rows} & set(causes("os:darwin", "about:torch"))


def test_a_cause_needs_what_it_needs() -> None:
    in_containers = {"container-nvml-lost", "nvidia-container-toolkit-missing", "container-without-gpu"}
    assert in_containers & set(causes("place:docker", "os:linux", "gpu:nvidia"))
    assert not in_containers & set(causes("os:linux", "gpu:nvidia"))


def test_the_most_frequent_comes_first_and_an_excluded_one_never() -> None:
    first, *_ = causes("os:windows", "about:torch", "gpu:nvidia")
    assert first not in causes("os:windows", "about:torch", "gpu:nvidia", excluded=(first,))


def test_every_confirmed_cause_is_a_check_or_a_possible_cause() -> None:
    known = {check.id for check in own_checks()} | {row["check"] for row in ROWS}
    assert {report["cause"] for report in load_table("confirmed_causes")["reports"]} <= known


def test_what_is_as_good_an_answer_counts_less_than_the_cause() -> None:
    shared = [report for report in load_table("confirmed_causes")["reports"] if report.get("also")]
    assert shared
    assert all(report["cause"] not in report["also"] for report in shared)
    assert {cause for report in shared for cause in report["also"]} <= {row["check"] for row in ROWS} | {
        check.id for check in own_checks()
    }


def test_a_feature_counts_for_the_causes_it_was_seen_with() -> None:
    without_any, gained = _logarithms("out-of-memory")
    seen = {
        f for r in load_table("confirmed_causes")["reports"] if r["cause"] == "out-of-memory" for f in r["features"]
    }
    assert seen < gained.keys()
    assert max(gained, key=gained.__getitem__) in seen
    assert _score("out-of-memory", frozenset(gained)) == pytest.approx(without_any + sum(gained.values()))


def test_what_a_report_does_not_say_counts_too() -> None:
    """A cause that always comes with a feature is less likely without it."""
    assert _logarithms("out-of-memory")[0] < math.log(_counts().causes["out-of-memory"])


def test_each_report_counts_once_and_no_feature_is_sure_or_impossible() -> None:
    counts, reports = _counts(), load_table("confirmed_causes")["reports"]
    assert sum(counts.causes.values()) == pytest.approx(len(reports))
    for feature, share in counts.shares.items():
        number = sum(feature in report["features"] for report in reports)
        assert share == pytest.approx((number + 1) / (len(reports) + 2))  # the rule of succession


def test_what_the_text_itself_speaks_of_is_the_first_even_if_it_seldom_fits() -> None:
    features = frozenset({"os:darwin"})
    assert "driver-too-old" not in [cause.check for cause in possible_causes(features)]
    assert possible_causes(features, first=("driver-too-old",), only_suggested=True)[0].check == "driver-too-old"
