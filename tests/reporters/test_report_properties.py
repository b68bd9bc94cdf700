"""Every format stays well-formed whatever stands in the report's fields."""

import json
import re
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from gpudoctor.reporters import github, html_report, junit, markdown, sarif
from tests.own_checks import own_checks
from tests.reporters import reports
from tests.reporters.html_pages import Page
from tests.reporters.json_schema import violations
from tests.reporters.markdown_pages import prose
from tests.reporters.test_sarif import schema

CHECKS = own_checks()
PARTS = ["```", "`", "~~~", "::", "%0A", "\\", "<b>", "&lt;", "]]>", "<!--", "-->", "</details>", "](", "[", "{", "}"]
PARTS += ["@me", "#1", "https://", "www.", "|", "$", '"', "'", ","]
PARTS += ["\n", "\r", "\x00", "\x85", "\u2028", "\ud800", "\ufffe"]
TEXTS = st.text(st.characters(), max_size=40) | st.lists(st.sampled_from(PARTS) | st.text(max_size=3), max_size=8).map(
    "".join
)


@settings(deadline=None, max_examples=60)
@given(TEXTS)
def test_junit_parses(text: str) -> None:
    root = ElementTree.fromstring(junit.render(reports.everywhere(text), checks=CHECKS, fail_on="error"))
    assert len(root.findall("testsuite/testcase")) == len(reports.everywhere(text).results)


@settings(deadline=None, max_examples=60)
@given(TEXTS)
def test_sarif_is_valid(text: str) -> None:
    document = sarif.render(reports.everywhere(text), checks=CHECKS[:3], exit_status=1, root=text)
    assert list(violations(json.loads(document), schema(), schema())) == []


@settings(deadline=None, max_examples=60)
@given(TEXTS)
def test_each_line_for_github_is_one_command(text: str) -> None:
    lines = github.render(reports.everywhere(text), root=text).split("\n")[:-1]
    assert len(lines) == 4  # three findings and a crash
    for line in lines:
        assert re.fullmatch(r"::(error|warning|notice) title=gpudoctor%3A [^:,]*::.*", line)
        assert line.isprintable()


@settings(deadline=None, max_examples=60)
@given(TEXTS)
def test_html_closes_what_it_opens_and_holds_no_tag_of_the_text(text: str) -> None:
    page = Page(html_report.render(reports.everywhere(text)))
    plain = Page(html_report.render(reports.everywhere("plain")))
    own = {"div", "a"}  # of a value of several lines, and of a reference
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags} | own


@settings(deadline=None, max_examples=60)
@given(TEXTS.filter(bool))
def test_markdown_has_the_same_blocks_whatever_the_text(text: str) -> None:
    lines, plain = (list(prose(markdown.render(reports.everywhere(words)))) for words in (text, "plain"))
    assert len(lines) == len(plain)
    assert [line for line in lines if "details>" in line] == [line for line in plain if "details>" in line]
