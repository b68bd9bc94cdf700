from gpudoctor.reporters.html_tree import Content, document, element, style_sheet


def test_text_and_attributes_are_escaped_and_cleaned() -> None:
    made = element("p", 'a < b & "c"\x1b', title='"><script>\ud800')
    assert document(made) == ('<!DOCTYPE html>\n<p title="&quot;&gt;<script&gt;\\ud800">a &lt; b &amp; "c"\\x1b</p>\n')


def test_text_stays_in_its_place() -> None:
    items: list[Content] = ["one", element("b", "two"), "three"]
    assert document(element("p", items, None, ["four", element("i")], "", "five")).endswith(
        "<p>one<b>two</b>threefour<i></i>five</p>\n"
    )


def test_names_of_attributes_are_written_as_in_python() -> None:
    made = element("line", class_="grid", stroke_width=1.25, viewBox="0 0 1 1", x1=1 / 3)
    assert '<line class="grid" stroke-width="1.25" viewBox="0 0 1 1" x1="0.333333"></line>' in document(made)


def test_a_style_sheet_stays_as_it_is() -> None:
    assert "<style>a > b {\n}</style>" in document(style_sheet("a > b {\n}"))


def test_the_page_is_ascii() -> None:
    assert document(element("p", "½")).endswith("<p>&#189;</p>\n")
