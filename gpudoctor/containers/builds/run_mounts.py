"""Folders and files of the context that a RUN sees by --mount: only what it makes of them is in the image.

Source: https://docs.docker.com/reference/dockerfile/#run---mounttypebind
"""

from collections.abc import Iterator, Mapping

from gpudoctor.containers.builds.dockerfile import Instruction

_NAMES = {"src": "source", "dst": "target", "destination": "target"}


def context_mounts(instruction: Instruction) -> Iterator[Mapping[str, str]]:
    """Yield the fields of each --mount of the build context: `source`, where it says one, and `target`."""
    for name, value in instruction.flags:
        fields = dict(_field(field) for field in value.split(",")) if name == "mount" else {}
        if fields and fields.get("type", "bind") == "bind" and not fields.get("from"):
            yield fields


def _field(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return _NAMES.get(name, name), value.strip("'\"")
