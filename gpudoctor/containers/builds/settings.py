"""The settings that USER, EXPOSE, VOLUME and their like give an image: one text for one setting, in both places.

The classic builder and BuildKit write each of them into the history in a way of its own, some as Go prints a map.
"""

import re
from collections.abc import Sequence

SETTINGS = ("EXPOSE", "HEALTHCHECK", "SHELL", "STOPSIGNAL", "USER", "VOLUME")
"""They change no file by themselves; but the commands after USER and SHELL are others, and so is the container."""

LABELS = ("LABEL", "MAINTAINER")
"""The command line of a build may add labels of its own, which the classic builder writes too."""

_PORTS = re.compile(r"(\d+)(?:-(\d+))?(?:/([a-z]+))?")
_TEST = re.compile(r"&\{\[(.*)\](?: \"[^\"]*\")+ '.*'\}", re.DOTALL)


def setting_asked_for(name: str, words: Sequence[str], rest: str) -> str:
    """Return the setting that the instruction `name` with these words makes. rest: all that follows its flags."""
    if name == "EXPOSE":
        return _ports(" ".join(words))
    if name != "HEALTHCHECK" or rest.upper() == "NONE":
        return _plain(" ".join(words))
    test = rest.partition(" ")[2].strip()  # after CMD
    return _plain(f"{'CMD' if test.startswith('[') else 'CMD-SHELL'} {test}")


def setting_written(name: str, text: str) -> str:
    """Return the setting that the history tells with `text`, which follows the name of the instruction."""
    if name == "EXPOSE":
        return _ports(text)
    if name == "HEALTHCHECK":
        return _plain(_TEST.sub(r"\1", text, count=1))
    return _plain(text)


def _ports(text: str) -> str:
    """Return the ports one by one: 80-82, or map[80/tcp:{} 81/tcp:{} 82/tcp:{}]."""
    found: set[str] = set()
    for first, last, protocol in _PORTS.findall(text.lower()):
        found.update(f"{port}/{protocol or 'tcp'}" for port in range(int(first), min(int(last or first), 65535) + 1))
    return " ".join(sorted(found))


def _plain(text: str) -> str:
    return re.sub(r"[\s\"'\[\],\\]+", "", text)
