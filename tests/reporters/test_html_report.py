import base64
import hashlib
import html
import re
from dataclasses import replace

import pytest

from gpudoctor.model import Device, Report, Snapshot
from gpudoctor.reporters.html_report import render
from tests.reporters import reports
from tests.reporters.html_pages import Page, contrast


@pytest.mark.parametrize("report", reports.ALL.values(), ids=reports.ALL)
def test_every_page_is_well_formed_and_needs_nothing_else(report: Report) -> None:
    text = render(report)
    assert text.isascii()
    assert text.startswith("<!DOCTYPE html>\n<html")
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert names.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form", "base"})
    attributes = {name for _, found in page.tags for name in found}
    assert not [name for name in attributes if name.startswith("on") or name in ("src", "style")]
    assert "url(" not in text
    assert "@import" not in text


def test_the_policy_allows_the_style_of_the_page_and_nothing_else() -> None:
    text = render(reports.ERROR)
    policy = next(meta["content"] for meta in Page(text).all("meta") if meta.get("http-equiv"))
    css = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@pytest.mark.parametrize(
    ("report", "kind", "words"),
    [
        (reports.ERROR, "error", "1 error, 1 warning fix driver-library-mismatch first"),
        (reports.WARNING, "warning", "1 warning shm-too-small"),
        (reports.HEALTHY, "healthy", f"healthy {reports.PROOF}"),
        (reports.UNKNOWN, "unknown", "unknown too little is known for a verdict"),
    ],
)
def test_the_verdict_is_the_title(report: Report, kind: str, words: str) -> None:
    heading = re.search(r'<h1 class="([a-z-]+)">(.*?)<small>(.*?)</small></h1>', render(report))
    assert heading is not None
    assert (heading[1], f"{heading[2]} {heading[3]}") == (kind, words)


def test_the_root_cause_comes_first_and_what_follows_stands_in_it() -> None:
    text = Page(render(reports.ERROR)).text
    order = ["the kernel module is 550.54.14", "550.90.07 (name of", "sudo reboot", "Needs root and a reboot."]
    order += ["sudo modprobe nvidia", "Also caused by this", "torch-cuda-unavailable", "nvml-unavailable"]
    order += [
        "/dev/shm has 64.0 MiB",
        "persistence mode is off",
        "GPUs",
        "Skipped: 5",
        "Not applicable: 1",
        "Passed: 5",
    ]
    places = [text.index(words, text.index("driver 550.54.14\n")) for words in order]
    assert places == sorted(places)
    assert [section.get("class") for section in Page(render(reports.ERROR)).all("section")][:2] == [
        "finding error",
        "finding warning",
    ]


def test_an_unknown_verdict_says_what_to_do_next() -> None:
    text = render(reports.UNKNOWN)
    assert "<code>lspci -nnk -d 10de:</code>" in text
    words = Page(text).text
    order = ["Understood", "no CUDA-capable device", "Missing for a verdict", "the driver version", "Possible causes"]
    order += ["Without a driver no program sees it.", "Next: run this", "Run it on the host.", "Skipped: 2"]
    places = [words.index(part) for part in order]
    assert places == sorted(places)


def test_a_command_stands_whole_in_an_element_of_its_own() -> None:
    assert "<code>sudo nvidia-smi -pm 1</code>" in render(reports.ERROR)
    assert f"<code>{reports.INSTALL}</code>" in render(reports.CRASHED)


def test_what_was_not_checked_is_folded_away() -> None:
    page = Page(render(reports.ERROR))
    assert len(page.all("details")) == 3
    assert "not WSL" in page.text


def test_a_crash_is_shown() -> None:
    assert "crashed, which is a bug in gpudoctor: KeyError: 3" in Page(render(reports.CRASHED)).text


def test_devices_are_a_table_that_a_screen_reader_can_follow() -> None:
    page = Page(render(reports.HEALTHY))
    assert {header["scope"] for header in page.all("th")} == {"col", "row"}
    assert "NVIDIA H200" in page.text


def test_the_table_of_devices_has_what_is_known_or_what_failed() -> None:
    lost = Device(nvml_index=2, name="NVIDIA L4", error="GPU is lost")
    page = render(replace(reports.HEALTHY, snapshot=Snapshot(devices=(reports.RTX_4090, reports.H200, lost))))
    part = page.partition("<h2>GPUs</h2>")[2].partition("</section>")[0]
    rows = [re.findall(r"<t[hd][^>]*>([^<]*)", row) for row in re.findall("<tr>.*?</tr>", part, re.DOTALL)]
    assert [[html.unescape(cell) for cell in row] for row in rows] == [
        ["GPU", "name", "compute capability", "memory", "busy", "state"],
        ["0", "NVIDIA GeForce RTX 4090", "8.9", "1.5 of 24.0 GiB", "3 %", "41 °C"],
        ["1", "NVIDIA H200", "unknown", "141.0 GiB", "", ""],
        ["2", "NVIDIA L4", "unknown", "unknown", "", "GPU is lost"],
    ]


def test_checks_of_one_reason_are_listed_together() -> None:
    items = re.findall(r"<li>(.*?)</li>", render(reports.ERROR))
    listed = [re.sub("<[^>]*>", "", item) for item in items]
    assert "CuPy is not installed: cupy-multiple-packages, cupy-nvrtc-missing, cupy-a, cupy-b" in listed


@pytest.mark.parametrize(
    ("reference", "linked"),
    [
        ("https://pytorch.org/get-started/locally/", True),
        ("javascript:alert(1)", False),
        ("https://a b", False),
        ('https://x"onclick="y', False),
    ],
)
def test_only_an_address_of_the_web_is_a_link(reference: str, linked: bool) -> None:
    remedy = replace(reports.CPU_BUILD.remedies[0], reference=reference)
    page = Page(render(reports.report(replace(reports.CPU_BUILD, remedies=(remedy,)))))
    assert [link["href"] for link in page.all("a")] == ([reference] if linked else [])
    assert reference in page.text


def test_text_from_outside_stays_text() -> None:
    text = render(reports.HOSTILE)
    page = Page(text)
    assert "<script>alert(1)</script>" in page.text  # as words to read
    assert "<script" not in text
    assert page.all("a") == []
    assert all(part.isprintable() for part in page.texts if part.strip())


def test_colours_stand_out_from_their_background() -> None:
    css = render(reports.NOTHING).partition("<style>")[2]
    palettes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in css.split("color-scheme:")[1:4]]
    assert len(palettes) == 3  # light, dark, print
    for colors in palettes:
        assert min(contrast(colors[word], colors["back"]) for word in ("text", "quiet", "bad", "warn", "c1")) >= 4.5
