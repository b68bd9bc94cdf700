"""The report of `accelerate env`."""

from __future__ import annotations

from gpudoctor.readers.environment_lists import environment_lists, list_facts
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import Text

SOURCE = "accelerate env"


def is_of_accelerate(items: dict[str, str]) -> bool:
    """Tell whether the list is Accelerate's own: transformers' names Accelerate too, further down."""
    return next(iter(items)) == "accelerate version" or "accelerate bash location" in items


def read(text: Text) -> Facts:
    """Return what the last such list in the text tells."""
    if "accelerate" not in text.lowered:
        return {}
    lists = [items for items in environment_lists(text) if is_of_accelerate(items)]
    return list_facts(lists[-1]) if lists else {}
