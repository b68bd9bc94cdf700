"""What leaves the machine in a snapshot names no person, no host and no device, and holds no secret."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

# Patterns are texts, which `re` compiles when one is asked for: most texts give no occasion.
_OTHER_HOME = r"(/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})(?!user\b)[^/\\\s\"':>]+"
_SHORTEST_HOST_NAME = 3  # a shorter name would hit parts of other words

_UUID = r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
_MASKED_UUID = "00000000-0000-0000-0000-"

# Keys of services by the form that their makers give them, and whatever stands after such a word.
# Source: https://docs.github.com/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
_SERVICE_KEY_MARKS = (
    *("hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
    *("sk-", "AKIA", "xox", "nvapi-", "eyJ", "wandb_v"),
)
_SERVICE_KEY = (
    r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{20,}"
    r"|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}|nvapi-[\w-]{20,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}|wandb_v\d_\w{20,})"
)
_SECRET_WORDS = ("token", "secret", "passwd", "password", "apikey", "api_key")
_ASSIGNED = r"[\"']?\s?[=:](?!=)\s?[\"']?"
_SECRET = rf"(?i)((?:{'|'.join(_SECRET_WORDS)}){_ASSIGNED})(?=[^\s\"',;&]{{0,200}}[A-Za-z])[^\s\"',;&]{{6,}}"
_URL_USER = r"(://)[^\s/@]{1,300}@"
_MAIL = r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}\b"
# "(base) alice@lab42:~$", "[alice@lab42 work]$"
_BEFORE_PROMPT = r"(?m)^([^\S\n]*(?:\([^()\n]{1,60}\)[^\S\n]*)?\[?"
_PROMPT = _BEFORE_PROMPT + r")(?!root@|user@)[\w.-]{1,40}@(?=[\w.-]{1,60}[: ])"
_PROMPT_HOST = _BEFORE_PROMPT + r"(?:root|user)@)(?![0-9a-f]{12}[: ])[\w.-]{1,60}(?=[: ])"
_STARS = "***"


class Owner(Protocol):
    """Whose machine it is: what names a person or a host there."""

    @property
    def home(self) -> str: ...

    @property
    def host_name(self) -> str: ...


def mask(value: Any, setting: Owner) -> Any:
    """Return the JSON value with the home directory as "~", other users' as "user" and the host's name as "host".

    A shell expands "~", so that advised commands keep working. Keys are masked too: some are paths.
    """
    together = "\n".join(_texts(value))
    if mask_text(together, setting) == together:  # mostly, and ten times as fast as text by text
        return value
    return _changed(value, lambda text: mask_text(text, setting))


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for item in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(item)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return the JSON value with every text in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _changed(item, change) for key, item in value.items()}
    return [_changed(item, change) for item in value] if isinstance(value, (list, tuple)) else value


def mask_text(text: str, setting: Owner) -> str:
    """Return `text` without the names of people and of the host, and without secrets."""
    if len(setting.home) > 1 and setting.home in text:
        text = re.sub(re.escape(setting.home) + r"(?![\w.-])", "~", text)
    if len(setting.host_name) >= _SHORTEST_HOST_NAME and setting.host_name in text:
        text = re.sub(rf"(?<![\w.-]){re.escape(setting.host_name)}(?![\w-])", "host", text)
    text = re.sub(_OTHER_HOME, r"\1user", text) if "/home/" in text or "Users" in text else text
    return mask_secrets(text)


def mask_pasted(text: str) -> str:
    """Return the text of another machine without home directories, prompts' users and hosts, addresses and secrets.

    The host names that Docker gives containers (twelve hex digits) stay: they tell that there is a container.
    """
    text = re.sub(_PROMPT_HOST, r"\1host", re.sub(_PROMPT, r"\1user@", text))
    return mask_secrets(re.sub(_MAIL, _masked_mail, re.sub(_OTHER_HOME, r"\1user", text)))


def _masked_mail(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith(("git@", "root@", "user@")) else "user@host"


def mask_secrets(text: str) -> str:
    """Return `text` with "***" for keys of services, passwords and the user part of URLs."""
    if _within(text, _SERVICE_KEY_MARKS):
        text = re.sub(_SERVICE_KEY, _STARS, text)
    lowered = text.lower()
    if any(re.search(word + _ASSIGNED, lowered) for word in _within(lowered, _SECRET_WORDS)):
        text = re.sub(_SECRET, rf"\1{_STARS}", text)
    return re.sub(_URL_USER, rf"\1{_STARS}@", text) if "://" in text else text


def _within(text: str, words: Sequence[str]) -> list[str]:
    """Return those of `words` that stand in `text`."""
    return [word for word in words if word in text]


def mask_uuids(document: Any) -> Any:
    """Return the JSON value with its UUIDs replaced by numbers in their form, equal ones by the same.

    They are numbered in the order in which they stand in the document's snapshot, so that a finding that names one
    reads the same whether it comes from the machine or from its snapshot. What is masked already stays.
    """
    numbers: dict[str, str] = {}
    snapshot = document.get("snapshot", document) if isinstance(document, dict) else document
    for text in (*_texts(snapshot), *_texts(document)):
        for uuid in re.findall(_UUID, text) if "-" in text else ():
            if not uuid.startswith(_MASKED_UUID):
                numbers.setdefault(uuid.lower(), f"{_MASKED_UUID}{len(numbers) + 1:012d}")

    def numbered(text: str) -> str:
        return re.sub(_UUID, lambda match: numbers.get(match[0].lower(), match[0]), text) if "-" in text else text

    return _changed(document, numbered)
