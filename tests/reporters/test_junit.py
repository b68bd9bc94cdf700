from dataclasses import replace
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from gpudoctor.model import Report
from gpudoctor.reporters import junit
from tests.own_checks import own_checks
from tests.reporters import reports

CHECKS = own_checks()


def suite(report: Report, fail_on: str = "error") -> Element:
    """Return the test suite, read back; that its counts are those of its cases is part of every test."""
    text = junit.render(report, checks=CHECKS, fail_on=fail_on)
    assert text.isascii()
    found = ElementTree.fromstring(text).find("testsuite")
    assert found is not None
    cases = found.findall("testcase")
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert found.get(name) == str(sum(case.find(tag) is not None for case in cases))
    assert found.get("tests") == str(len(cases))
    return found


def case(report: Report, check_id: str, fail_on: str = "error") -> Element:
    (found,) = (case for case in suite(report, fail_on).findall("testcase") if case.get("name") == check_id)
    return found


@pytest.mark.parametrize("report", reports.ALL.values(), ids=reports.ALL)
@pytest.mark.parametrize("fail_on", ["error", "warning", "never"])
def test_every_report_is_well_formed(report: Report, fail_on: str) -> None:
    assert len(suite(report, fail_on).findall("testcase")) >= len(report.results)


def test_a_check_is_a_test_of_its_family() -> None:
    found = case(reports.ERROR, "driver-library-mismatch")
    assert (found.get("classname"), found.get("name")) == ("driver", "driver-library-mismatch")


def test_an_error_is_a_failure_with_all_that_is_known() -> None:
    failure = case(reports.ERROR, "driver-library-mismatch").find("failure")
    assert failure is not None
    assert failure.attrib == {"message": reports.MISMATCH.summary, "type": "error"}
    assert failure.text == (
        "error: the kernel module is 550.54.14 and the libraries are 550.90.07\n"
        "  driver library version: 550.90.07 (name of libcuda.so.VERSION)\n"
        "fix: reboot\n  sudo reboot\n  nvidia-smi\n  needs root and a reboot\n"
        "or: load the new module\n  sudo modprobe nvidia\n  needs root"
    )


@pytest.mark.parametrize(("fail_on", "tag"), [("error", "system-out"), ("never", "system-out"), ("warning", "failure")])
def test_a_warning_is_a_failure_if_it_ends_the_run_as_one(fail_on: str, tag: str) -> None:
    (child,) = case(reports.WARNING, "shm-too-small", fail_on)
    assert (child.tag, (child.text or "").partition("\n")[0]) == (tag, "warning: /dev/shm has 64.0 MiB")


def test_an_error_is_a_failure_even_if_it_does_not_end_the_run() -> None:
    assert case(reports.ERROR, "driver-library-mismatch", "never").find("failure") is not None


def test_what_follows_and_advice_are_output() -> None:
    consequence = case(reports.ERROR, "cupy-device-unavailable").findtext("system-out")
    assert consequence == (
        "info: CuPy finds no device: cudaErrorInsufficientDriver\nfollows from driver-library-mismatch"
    )
    assert case(reports.ERROR, "amp-unused").find("failure") is None


def test_two_findings_of_a_check_are_one_failure() -> None:
    second = replace(reports.MISMATCH, summary="and again")
    report = replace(reports.report(reports.MISMATCH), findings=(reports.MISMATCH, second))
    failures = case(report, "driver-library-mismatch").findall("failure")
    assert [failure.get("message") for failure in failures] == [f"{reports.MISMATCH.summary} (and 1 more)"]
    assert "error: and again" in (failures[0].text or "")


def test_skipped_says_why() -> None:
    skipped = case(reports.UNKNOWN, "driver-missing").find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "driver: not known"


def test_an_unknown_verdict_is_an_error_with_what_to_do_next() -> None:
    error = case(reports.UNKNOWN, "verdict").find("error")
    assert error is not None
    assert error.attrib == {"message": "unknown: too little is known for a verdict", "type": "unknown"}
    assert "\n    nvidia-smi\n" in (error.text or "")


@pytest.mark.parametrize("report", [reports.HEALTHY, reports.WARNING, reports.ERROR])
def test_a_verdict_is_no_test_case_of_its_own(report: Report) -> None:
    assert "verdict" not in [found.get("name") for found in suite(report).findall("testcase")]


def test_a_crash_is_an_error() -> None:
    error = case(reports.CRASHED, "driver-missing").find("error")
    assert error is not None
    assert error.text == "crashed, which is a bug in gpudoctor: KeyError: 3"


def test_a_finding_of_no_registered_check_is_there_too() -> None:
    finding = replace(reports.MISMATCH, check_id="of-a-plugin")
    alone = replace(reports.report(finding), results=())
    assert case(alone, "of-a-plugin").get("classname") == "gpudoctor"


def test_the_suite_shows_its_time_and_its_machine() -> None:
    found = suite(replace(reports.ERROR, duration_s=1.23456))
    assert found.get("time") == "1.235"
    properties = {item.get("name"): item.get("value") for item in found.iter("property")}
    assert properties["verdict"] == "1 error, 1 warning; fix driver-library-mismatch first"
    assert (properties["machine"] or "").startswith("Ubuntu 24.04.1 LTS · Python 3.12.3")


def test_characters_that_xml_has_not_are_written_out() -> None:
    text = "".join(suite(reports.HOSTILE).itertext())
    assert r"\x1b[2J\r\n::error::x%\ud800 <script>" in text
    assert r"\x00" in text
