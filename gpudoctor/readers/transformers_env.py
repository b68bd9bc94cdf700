"""The reports of `transformers env`, `diffusers-cli env`, `trl env`, `llamafactory-cli env` and their like."""

from __future__ import annotations

from gpudoctor.readers.accelerate_env import is_of_accelerate
from gpudoctor.readers.environment_lists import environment_lists, list_facts
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import Text

SOURCE = "transformers env"
_FIRST = (
    *("transformers", "diffusers", "datasets", "peft", "trl"),
    *("sentence-transformers", "llamafactory", "huggingface"),
)


def read(text: Text) -> Facts:
    """Return what the last such list in the text tells."""
    if "version" not in text.lowered:
        return {}
    lists = [items for items in environment_lists(text) if not is_of_accelerate(items) and _is_one(items)]
    return list_facts(lists[-1]) if lists else {}


def _is_one(items: dict[str, str]) -> bool:
    """Tell whether the list is of an environment: it names one of the libraries, or both platform and PyTorch."""
    named = any(name.split(" ")[0].startswith(_FIRST) and name.endswith("version") for name in items)
    return "pytorch version" in items and (named or "asks for" in items or "platform" in items)
