"""HTML and SVG as trees of elements: every text is cleaned and escaped by construction, every tag closed."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

from gpudoctor.untrusted import clean

Content = Element | str | None | Iterable["Content"]


def element(tag: str, *content: Content, **attributes: str | float) -> Element:
    """Return an element. Content is text, elements, or iterables of them; None and "" are nothing.

    Attributes are named as in Python: class_ is "class", stroke_width "stroke-width".
    """
    made = Element(tag, {_attribute(key): _value(value) for key, value in attributes.items()})
    _append(made, content)
    return made


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-") if name != "viewBox" else name


def _value(value: str | float) -> str:
    return clean(value, None) if isinstance(value, str) else f"{value:.6g}"


def _append(parent: Element, content: Content) -> None:
    if isinstance(content, Element):
        parent.append(content)
    elif isinstance(content, str):
        _append_text(parent, clean(content, None))
    elif content is not None:
        for item in content:
            _append(parent, item)


def _append_text(parent: Element, text: str) -> None:
    """Add text where the tree keeps it: before the first child, or behind the last one."""
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text


def style_sheet(css: str) -> Element:
    """Return a style element; `css` is the program's own and stays as it is."""
    sheet = Element("style")
    sheet.text = css
    return sheet


def document(root: Element) -> str:
    """Return the page as text, in ASCII with character references: no encoding can go wrong on the way."""
    return f"<!DOCTYPE html>\n{tostring(root, encoding='us-ascii', method='html').decode('ascii')}\n"
