"""What leaves the machine in a snapshot names no person, host or device, and contains no secret."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Protocol

# Patterns are texts, which `re` compiles when one is asked for: most texts give no occasion.
_OTHER_HOME = (
    r"(/home/|/[Uu]sers/|[A-Za-z]:\\{1,2}(?:Users|Documents and Settings)\\{1,2})(?!user\b|\.)"
    r"(?:<[^/\\\s\"':<>]{1,60}>|(?<=\\)[\w.'-]{1,40}(?: [\w.'-]{1,40}){1,3}(?=\\)|[^/\\\s\"':>]{1,200})"
)
_UUID = r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
_MASKED_UUID = "00000000-0000-0000-0000-"

# Where a key may begin: after no letter but one of an escape, as it is ("\x1b[31m") or written out ("\\n", "\\x1b").
_COLOURED = "".join(rf"|(?<=[\[;]{digits}[A-Za-z])" for digits in ("", r"\d", r"\d\d", r"\d\d\d"))
_BEGIN = rf"(?:(?<![A-Za-z0-9])|(?<=\\[abefnrtv])|(?<=\\x[0-9a-fA-F]{{2}})|(?<=\\u[0-9a-fA-F]{{4}}){_COLOURED})"

_KEY = (
    r"(?:token|secret|passwd|password|passphrase|(?<=_)pass|pwd|cookie|auth|authorization|credentials?|(?<![a-z])sig"
    r"|(?:api|access|account|private|secret|shared|storage)[_-]?key(?:[_-]?id)?)"
)
_IN_KEYS = ("token", "secret", "pass", "pwd", "cookie", "auth", "credential", "sig", "key")
_NAME_OF_KEY = rf"[\w-]{{0,60}}?{_KEY}"
_ASSIGNS = r"(?:[\"']\]?)?\s?[=:](?!=)\s?[\"']?"
_QUOTED = r"(?<=\")[^\"\n]{6,200}(?=\")|(?<=')[^'\n]{6,200}(?=')"
_END_OF_NAME = rf"{_KEY}[\"'\s=:\]]"  # few texts have one
_VALUE = r"(?:(?:bearer|basic|token)\s)?(?=[^\s\"',;&]{0,200}[A-Za-z])[^\s\"',;&]{6,}"
_ASSIGNED = rf"(?i)(?<![\w-])(?=[\w-]{{2,80}}{_ASSIGNS})({_NAME_OF_KEY}{_ASSIGNS})(?:{_QUOTED}|{_VALUE})"
_OPTION = rf"(?i){_BEGIN}(--{_NAME_OF_KEY}\s{{1,4}}[\"']?){_VALUE}"
_URL_USER = r"(://)[^\s/]{1,300}@"
# Keys without any mark: 40 hex digits, as of Weights & Biases, and 40 characters, as AWS secrets are. Commits stay.
_BARE = (
    r"(?<![\w/+=@.:-])(?<!commit )(?<!HEAD )(?<!revision )(?:[0-9a-f]{40}"
    r"|(?=[a-z/+\d]{0,39}[A-Z])(?=[A-Z/+\d]{0,39}[a-z])(?=[A-Za-z/+]{0,39}\d)[A-Za-z0-9/+]{40})(?![\w/+=.-])"
)
# What a command or a file takes without the name of a key: "curl -u me:...", "sshpass -p ...", .netrc
_POSITIONS = {
    "login": rf"(?i)({_BEGIN}login\s{{1,9}}\S{{1,80}}\s{{1,9}}password\s{{1,9}})\S{{6,}}",
    "wandb login": rf"({_BEGIN}wandb login\s)[\w-]{{16,}}",
    "authtoken": r"(authtoken\s)\w{16,}",
    "cookie": rf"(?i)({_BEGIN}(?:set-)?cookie:\s?)[^\n\"']{{6,}}",
    "/t/": r"(\w/t/)[\w-]{10,}(?=/)",
    " -p": (
        rf"({_BEGIN}(?:(?:sshpass|mysql\w{{0,5}})\b[^\n]{{0,80}}?\s-p\s?|login\b[^\n]{{0,80}}?\s-p\s)[\"']?)"
        r"[^\s\"'-][^\s\"']{3,}"
    ),
    "curl": rf"({_BEGIN}curl\b[^\n]{{0,80}}?\s(?:-u|--user)[= ]?[\"']?[^\s:\"']{{1,60}}:)[^\s\"']{{3,}}",
}
# Of "flash-attn@2.8.1" and of the name of a wheel or of a branch the part after "@" is not a domain.
_MAIL = (
    r"\b[\w.+-]{1,64}@(?!v?\d+\.\d)(?:[A-Za-z0-9-]{1,63}\.){1,5}"
    r"(?!(?:whl|git|zip|gz|txt|py)\b)[A-Za-z]{2,24}\b(?![\w-])"
)
# "(base) alice@lab42:~$", "[alice@lab42 work]$"
_BEFORE_PROMPT = r"(?m)^([^\S\n]{0,40}(?:\([^()\n]{1,60}\)[^\S\n]{0,9})?\[?"
_PROMPT = _BEFORE_PROMPT + r")(?!root@|user@|git@)[\w.-]{1,40}@(?=[\w.-]{1,60}[: ])"
_PROMPT_HOST = _BEFORE_PROMPT + r"(?:root|user)@)(?![0-9a-f]{12}[: ])[\w.-]{1,60}(?=[: ])"
_SHOWN_PROMPT = _BEFORE_PROMPT + r")([\w.-]{1,40})@([\w.-]{1,60})(?=[: ])"
_SHOWN_USER = (
    r"\bwhoami[^\S\n]{0,9}\n([\w.-]{1,40})(?=[^\S\n]{0,9}\n)"
    r"|\b(?:USER|LOGNAME|USERNAME|HOME)=[\"']?(?:[\w:.~-]{0,80}[/\\]){0,9}([\w.-]{1,40})"
)
_PLACE_OF_NAME = r"(?m)(?:(?<=[/\\])|(?<=\d\d:\d\d:\d\d )|^)[\w.-]{1,60}(?![\w.-])"
_MOST_NAMES = 200  # of one text
_SHORTEST_NAME = 3  # a shorter one would hit parts of other words
_STARS = "***"


@cache
def _table() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "privacy.json"), encoding="utf-8") as file:
        table: dict[str, Any] = json.load(file)
    return table


class Owner(Protocol):
    """The names of persons and hosts on a machine."""

    @property
    def home(self) -> str: ...

    @property
    def host_name(self) -> str: ...

    @property
    def user_names(self) -> Sequence[str]: ...


def mask(value: Any, setting: Owner) -> Any:
    """Return the JSON value with the home directory as "~", other users' as "user" and the host's name as "host".

    A shell expands "~", so that advised commands keep working. Keys are masked too: some are paths.
    """
    together = "\n".join(_texts(value))
    unnamed = _without_names(together, setting)
    if mask_secrets(unnamed) != unnamed:  # seldom, and looked for ten times as fast in all texts together
        return _changed(value, lambda text: mask_text(text, setting))
    return value if unnamed == together else _changed(value, lambda text: _without_names(text, setting))


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, keys too."""
    return (text.partition("=")[2] for text in _named_texts(value, ""))


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return the JSON value with every text in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _changed(item, change) for key, item in value.items()}
    return [_changed(item, change) for item in value] if isinstance(value, list) else value


def mask_document(value: Any, *, pasted: bool = False) -> Any:
    """Return the JSON value without secrets, each known by itself or by its name in the document.

    pasted: it is of another machine, and names of people and addresses are masked too.
    """
    mask = mask_pasted if pasted else mask_secrets
    texts = [*_named_texts(value, "")]
    noise = "".join(chr(0x86 + byte % 26) for byte in os.urandom(6))  # in no text, and no part of a secret
    together = mask(f"\n{noise}\n".join(texts))  # ten times as fast as one by one
    masked = [text.removeprefix("\n").removesuffix("\n") for text in f"\n{together}\n".split(noise)]
    if masked == texts:
        return value
    return _rebuilt(value, "", iter(masked if len(masked) == len(texts) else map(mask, texts)))


def _rebuilt(value: Any, name: str, masked: Iterator[str]) -> Any:
    """Return the JSON value with the next of the masked texts, in the order of `_named_texts`, for each of its own."""
    if isinstance(value, str):
        text = next(masked)
        return text[len(name) + 1 :] if text.startswith(f"{name}=") else _STARS
    if isinstance(value, dict):
        return {_rebuilt(key, "", masked): _rebuilt(item, key, masked) for key, item in value.items()}
    return [_rebuilt(item, name, masked) for item in value] if isinstance(value, list) else value


def _named_texts(value: Any, name: str) -> Iterator[str]:
    """Yield every text in a JSON value as "name=text", the names of its parts as "=name"."""
    if isinstance(value, str):
        yield f"{name}={value}"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"={key}"
            yield from _named_texts(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _named_texts(item, name)


def mask_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command line without secrets. One may be known by the option before it."""
    masked = [mask_secrets(word) for word in arguments]
    pairs = zip(("", *masked), masked, strict=False)
    return tuple(word if mask_secrets(f"{option} {word}") == f"{option} {word}" else _STARS for option, word in pairs)


def mask_text(text: str, setting: Owner) -> str:
    """Return `text` without the names of people and of the host, and without secrets."""
    return mask_secrets(_without_names(text, setting))


def _without_names(text: str, setting: Owner) -> str:
    if len(setting.home) > 1 and setting.home in text:
        text = re.sub(re.escape(setting.home) + r"(?![\w.-])", "~", text)
    if len(setting.host_name) >= _SHORTEST_NAME and setting.host_name in text:
        text = re.sub(rf"(?<![\w.-]){re.escape(setting.host_name)}(?![\w-])", "host", text)
    text = _masked_in_paths(text, _unusual(dict.fromkeys(setting.user_names, "user")))
    return re.sub(_OTHER_HOME, r"\1user", text) if "/home/" in text or "sers" in text else text


def mask_pasted(text: str) -> str:
    """Return the text of another machine without home directories, prompts' users and hosts, addresses and secrets.

    The host names that Docker gives containers (twelve hex digits) stay: they show that there is a container.
    """
    named = _named_by(text)
    if "@" in text:
        text = re.sub(_PROMPT_HOST, r"\1host", re.sub(_PROMPT, r"\1user@", text))
        text = re.sub(_MAIL, _masked_mail, text)
    if "/home/" in text or "sers" in text or "Documents and Settings" in text:
        text = re.sub(_OTHER_HOME, r"\1user", text)
    return mask_secrets(_masked_in_paths(text, named))


def _named_by(text: str) -> dict[str, str]:
    """Return user and host names in a text: from prompts, output of `whoami` and variables."""
    has_words = any(word in text for word in ("whoami", "USER", "LOGNAME", "HOME"))
    found = re.finditer(_SHOWN_USER, text) if has_words else ()
    users = [match[1] or match[2] for match in islice(found, _MOST_NAMES)]
    prompts = list(islice(re.finditer(_SHOWN_PROMPT, text), _MOST_NAMES)) if "@" in text else []
    hosts = dict.fromkeys((match[3] for match in prompts), "host")
    names = {**hosts, **dict.fromkeys((*users, *(match[2] for match in prompts)), "user")}
    return _unusual(names)


def _unusual(names: Mapping[str, str]) -> dict[str, str]:
    usual = _table()["usual"]
    return {name: shown for name, shown in names.items() if len(name) >= _SHORTEST_NAME and name.lower() not in usual}


def _masked_in_paths(text: str, names: Mapping[str, str]) -> str:
    """Return the text with the names replaced: folders of paths, and what begins a line or the message of a log."""

    def shown(match: re.Match[str]) -> str:
        first, _, rest = match[0].partition(".")
        return names.get(match[0]) or (f"host.{rest}" if names.get(first) == "host" else match[0])

    return re.sub(_PLACE_OF_NAME, shown, text) if any(name in text for name in names) else text


def _masked_mail(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith(("git@", "root@", "user@")) else "user@host"


def mask_secrets(text: str) -> str:
    """Return `text` with "***" for keys of services, passwords and the user part of URLs."""
    for row in _table()["keys"]:
        for mark in filter(text.__contains__, row["marks"]):
            text = re.sub(rf"{_BEGIN}{re.escape(mark)}{row['rest']}", _STARS, text)
    for mark in filter(text.__contains__, _table()["parts"]):
        text = re.sub(_table()["parts"][mark], _STARS, text)
    text = re.sub(_BARE, _STARS, text)
    lowered = text.lower()
    for mark in filter(lowered.__contains__, _POSITIONS):
        text = re.sub(_POSITIONS[mark], rf"\1{_STARS}", text)
    if any(word in lowered for word in _IN_KEYS) and re.search(_END_OF_NAME, lowered):
        text = re.sub(_ASSIGNED, rf"\1{_STARS}", text) if "=" in text or ":" in text else text
        text = re.sub(_OPTION, rf"\1{_STARS}", text) if "--" in text else text
    return re.sub(_URL_USER, rf"\1{_STARS}@", text) if "://" in text else text


def mask_uuids(document: Any) -> Any:
    """Return the JSON value with its UUIDs replaced by numbers in their form, equal ones by the same.

    They are numbered in the order of the document's snapshot, so that a finding that names one
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
