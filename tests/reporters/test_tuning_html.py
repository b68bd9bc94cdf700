import base64
import hashlib
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from gpudoctor.model.tuning import Tuning
from gpudoctor.reporters.tuning_html import render
from tests.reporters import tunings
from tests.reporters.html_pages import Page, contrast

SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)


def pictures(tuning: Tuning) -> list[ElementTree.Element]:
    """Return the pictures, without the samples of the legend; that they parse as XML is part of every test."""
    trees = [ElementTree.fromstring(text) for text in SVG.findall(render(tuning))]
    return [tree for tree in trees if tree.get("role") == "img"]


@pytest.mark.parametrize("tuning", tunings.ALL.values(), ids=tunings.ALL)
def test_every_page_is_well_formed(tuning: Tuning) -> None:
    text = render(tuning)
    assert text.isascii()
    assert text.startswith("<!DOCTYPE html>\n<html")
    Page(text)
    pictures(tuning)


@pytest.mark.parametrize("tuning", tunings.ALL.values(), ids=tunings.ALL)
def test_every_page_needs_nothing_else(tuning: Tuning) -> None:
    page = Page(render(tuning))
    names = {tag for tag, _ in page.tags}
    assert names.isdisjoint(
        {"script", "link", "img", "iframe", "object", "embed", "form", "base", "use", "foreignobject"}
    )
    attributes = [(name, value) for _, found in page.tags for name, value in found.items()]
    assert not [
        name for name, _ in attributes if name.startswith("on") or name in ("src", "href", "style", "xlink:href")
    ]
    assert "url(" not in render(tuning)
    assert "@import" not in render(tuning)


def test_the_policy_allows_the_style_of_the_page_and_nothing_else() -> None:
    text = render(tunings.GPU)
    policy = next(meta["content"] for meta in Page(text).all("meta") if meta.get("http-equiv"))
    css = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_the_recommendation_and_its_reasons_come_first() -> None:
    text = Page(render(tunings.GPU)).text
    order = [
        "bf16, batch 192",
        "5,203 images/s, 3.2x fp32",
        "8.2 of 22.5 GiB left free (36 %)",
        "288",
        "cudnn.benchmark",
    ]
    order += ["another process held", "Why", "bf16 is 1.8 times", "Throughput and memory", "Precisions", "Runners-up"]
    order += ["Switches tried", "Numerics", "Moving data to the device", "The profile", "Every measurement"]
    places = [text.index(words) for words in order[:2]] + [text.rindex(words) for words in order[12:]]
    assert places == sorted(places)
    assert [words for words in order if words not in text] == []


def test_a_precision_that_failed_says_why() -> None:
    page = Page(render(tunings.GPU))
    assert "fp16 unsafe: gradients are not finite in 7 of 20 steps" in page.text
    assert {"class": "bad"} in page.all("span")


def test_what_is_not_measured_is_a_dash_and_never_zero() -> None:
    row = re.search(r"<tr><th scope=\"row\" class=\"\">fp32</th>(.*?)</tr>", render(tunings.OUT_OF_MEMORY_ALL))
    assert row is not None
    assert re.findall(r"<td[^>]*>(?:<span[^>]*>)?([^<]*)", row[1]) == ["too large"] + ["&#8211;"] * 8


@pytest.mark.parametrize("tuning", [tunings.OUT_OF_MEMORY_ALL, tunings.NOTHING])
def test_nothing_that_ran_is_no_picture(tuning: Tuning) -> None:
    assert "<svg" not in render(tuning)


def test_tables_have_headers_for_screen_readers() -> None:
    page = Page(render(tunings.GPU))
    assert {header["scope"] for header in page.all("th")} == {"col", "row"}
    assert len(page.all("caption")) == len(page.all("table")) == 7
    assert page.all("html")[0]["lang"] == "en"


def test_a_picture_has_a_text_for_screen_readers() -> None:
    throughput, memory = pictures(tunings.GPU)
    labels = (throughput.get("aria-labelledby") or "").split()
    assert labels == [throughput[0].get("id"), throughput[1].get("id")]
    assert throughput[0].text == "throughput in images/s against batch size"
    assert "bf16: highest 4,964 images/s at batch 256." in (throughput[1].text or "")
    assert (memory[1].text or "").endswith("The trials may use 22.5 GiB.")


def test_ids_are_unique_on_the_page() -> None:
    ids = [attributes["id"] for _, attributes in Page(render(tunings.GPU)).tags if "id" in attributes]
    assert len(ids) == len(set(ids)) == 4


def test_every_point_is_drawn_and_says_what_it_is() -> None:
    throughput, _ = pictures(tunings.GPU)
    titles = [title.text for title in throughput.iter("title")][1:]
    ran = [measured for measured in tunings.GPU.measurements if measured.throughput is not None]
    failed = [measured for measured in tunings.GPU.measurements if measured.status == "out-of-memory"]
    assert len(titles) == len(ran) + len(failed)
    assert "bf16, batch 192: 4,779 images/s, recommended" in titles
    assert "fp32, batch 192: out of memory" in titles


def test_points_lie_inside_the_picture_and_precisions_have_shapes_of_their_own() -> None:
    for picture in pictures(tunings.GPU):
        width, height = (float(number) for number in (picture.get("viewBox") or "").split()[2:])
        lines = [line for line in picture.iter("path") if line.get("class") == "line"]
        assert len(lines) == 4
        numbers = [float(text) for line in lines for text in re.findall(r"[\d.]+", line.get("d") or "")]
        assert min(numbers) > 0
        assert max(numbers[::2]) < width
        assert max(numbers[1::2]) < height
        shapes = [{e.tag for e in g.iter() if e.get("class") == "mark"} for g in picture.iter("g") if g.get("class")]
        assert sorted(map(sorted, filter(None, shapes))) == [["circle"], ["polygon"], ["polygon"], ["rect"]]


def test_a_point_has_a_bar_of_its_spread() -> None:
    (throughput,) = pictures(tunings.CPU)
    assert len([path for path in throughput.iter("path") if path.get("class") == "bar"]) == 10
    points = tuple(replace(tunings.INTERRUPTED.measurements[0], batch_size=n) for n in (4, 8, 16))
    two_steps, _ = pictures(replace(tunings.INTERRUPTED, measurements=points))
    assert not [path for path in two_steps.iter("path") if path.get("class") == "bar"]


def test_the_legend_names_what_is_drawn() -> None:
    def legend(tuning: Tuning) -> list[tuple[str, str]]:
        found = re.search(r'<ul class="legend">.*?</ul>', render(tuning), re.DOTALL)
        assert found is not None
        return re.findall(r'<li(?: class="(c\d)?")?>.*?<span>([^<]*)</span>', found[0], re.DOTALL)

    assert legend(tunings.GPU) == [
        *(("c1", "fp32"), ("c2", "tf32"), ("c3", "bf16"), ("c4", "fp16 (unsafe)")),
        *(("", "recommended"), ("", "out of memory")),
    ]
    assert legend(replace(tunings.CPU, recommendation=None)) == [("c1", "fp32"), ("c3", "bf16")]


def test_the_limit_of_memory_is_a_line() -> None:
    _, memory = pictures(tunings.GPU)
    assert [text.text for text in memory.iter("text") if text.get("class") == "limit-label"] == [
        "limit of the trials: 22.5 GiB"
    ]
    _, far_below = pictures(tunings.SIGNAL)
    assert not [line for line in far_below.iter("line") if line.get("class") == "limit"]


def test_text_from_outside_stays_text() -> None:
    text = render(tunings.HOSTILE)
    page = Page(text)
    assert "<script>alert(1)</script>" in page.text  # as words to read
    assert "<script" not in text
    assert all(part.isprintable() for part in page.texts if part.strip())


def test_a_run_with_very_many_measurements_is_cut_and_says_so() -> None:
    many = replace(tunings.CPU, measurements=tunings.CPU.measurements * 50)
    assert "100 more are in the JSON." in render(many)


def test_colours_stand_out_from_their_background() -> None:
    css = render(tunings.NOTHING).partition("<style>")[2]
    palettes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in css.split("color-scheme:")[1:4]]
    assert len(palettes) == 3  # light, dark, print
    for colors in palettes:
        for word in ("text", "quiet", "good", "bad", "warn"):
            assert contrast(colors[word], colors["back"]) >= 4.5
            assert contrast(colors[word], colors["panel"]) >= 4.5
        assert contrast(colors["text"], colors["warn-back"]) >= 4.5
        assert min(contrast(colors[f"c{number}"], colors["panel"]) for number in (1, 2, 3, 4)) >= 3


def test_what_was_not_compared_stands_by_the_verdict() -> None:
    fp32, *others = tunings.GPU.numerics
    tuning = replace(tunings.GPU, numerics=(replace(fp32, not_compared=("losses: none",)), *others))
    assert "safe (losses: none)" in Page(render(tuning)).text
    assert "safe (" not in Page(render(tunings.GPU)).text
