"""The failure messages of a pasted report, by their kind."""

from __future__ import annotations

from gpudoctor.model import Message


def reported(messages: tuple[Message, ...] | None, *kinds: str) -> tuple[tuple[str, Message], ...]:
    """Return the fact and the message of each message of these kinds: ("messages[0].text", Message(...)).

    kinds: ids of the table of failure messages; one that ends with "*" names all that begin so.
    """
    return tuple(
        (f"messages[{number}].text", message)
        for number, message in enumerate(messages or ())
        if any(message.kind == kind or (kind[-1] == "*" and message.kind.startswith(kind[:-1])) for kind in kinds)
    )
