"""HTML and SVG as trees of elements: every text is cleaned and escaped by construction, every tag closed.

A page needs nothing else: no network, no font, no script.
"""

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path
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


def page(title: str, style: str, *body: Content) -> str:
    """Return the page, in ASCII. style: name of the sheet in this folder that follows the common one."""
    css = "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("page.css", style))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(css)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        style_sheet(css),
    )
    return document(element("html", head, element("body", body), lang="en"))


def _policy(css: str) -> str:
    """Return a policy that allows the page its own style and nothing else: no script, no image, no connection."""
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def style_sheet(css: str) -> Element:
    """Return a style element; `css` is the program's own and stays as it is."""
    sheet = Element("style")
    sheet.text = css
    return sheet


def document(root: Element) -> str:
    """Return the page as text, in ASCII with character references: no encoding can go wrong on the way."""
    return f"<!DOCTYPE html>\n{tostring(root, encoding='us-ascii', method='html').decode('ascii')}\n"
