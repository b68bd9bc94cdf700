"""What leaves the machine in a snapshot names no person and no host."""

from __future__ import annotations

import re
from typing import Any

from gpudoctor.host import Setting

_OTHER_HOME = re.compile(r"(/home/|/Users/|[A-Za-z]:\\Users\\)(?!user\b)[^/\\\s\"':]+")
_SHORTEST_HOST_NAME = 3  # a shorter name would hit parts of other words


def mask(value: Any, setting: Setting) -> Any:
    """Return the JSON value with the home directory as "~", other users' as "user" and the host's name as "host".

    A shell expands "~", so that advised commands keep working. Keys are masked too: some are paths.
    """
    if isinstance(value, str):
        return mask_text(value, setting)
    if isinstance(value, dict):
        return {mask_text(key, setting): mask(item, setting) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask(item, setting) for item in value]
    return value


def mask_text(text: str, setting: Setting) -> str:
    """Return `text` without the names of people and of the host."""
    if len(setting.home) > 1 and setting.home in text:
        text = re.sub(re.escape(setting.home) + r"(?![\w.-])", "~", text)
    if len(setting.host_name) >= _SHORTEST_HOST_NAME and setting.host_name in text:
        text = re.sub(rf"(?<![\w.-]){re.escape(setting.host_name)}(?![\w-])", "host", text)
    return _OTHER_HOME.sub(r"\1user", text) if "/home/" in text or "Users" in text else text
