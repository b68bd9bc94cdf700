"""What BuildKit tells by the engine's API: messages of github.com/moby/buildkit/api/services/control/control.proto.

The engine sends each as base64 of protocol buffers. Only the two fields that a reader wants to see are taken out: the
names of steps, and what they write.
"""

from collections.abc import Iterator

_VERTEXES, _LOGS = 1, 3  # of StatusResponse
_NAME, _CACHED, _STARTED, _COMPLETED = 3, 4, 5, 6  # of Vertex
_MESSAGE = 4  # of VertexLog


def lines_of(message: bytes) -> Iterator[str]:
    """Yield what the StatusResponse `message` tells, as `docker build` would write it.

    Raises:
        ValueError: it is no such message.
    """
    for number, value in _fields(message):
        fields = dict(_fields(value)) if number in (_VERTEXES, _LOGS) and isinstance(value, bytes) else {}
        if number == _LOGS:
            yield _text(fields.get(_MESSAGE))
        elif fields.get(_CACHED):
            yield f"{_text(fields.get(_NAME))} CACHED"
        elif _STARTED in fields and _COMPLETED not in fields:
            yield _text(fields.get(_NAME))


def _text(value: int | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message: number and value. Source: https://protobuf.dev/programming-guides/encoding/"""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        length, place = _varint(message, place) if kind == 2 else ({1: 8, 5: 4}.get(kind, 0), place)
        if (not length and kind != 2) or place + length > len(message):
            raise ValueError("no message of BuildKit")
        yield key >> 3, message[place : place + length]
        place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            break
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("no message of BuildKit")
