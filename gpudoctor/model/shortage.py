"""Why a job got no memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from gpudoctor.model.fact import Fact
from gpudoctor.model.record import record

GIB = 2**30


@record
class Shortage:
    """What is missing, in bytes, by the message with the most numbers. Unknown is None."""

    cause: Annotated[
        str,
        Fact(
            '"others" (another process holds the memory), "fragmented", "too-large", "unknown" (one of these), "host", '
            '"killed"; empty if no job lacked memory'
        ),
    ] = ""
    kind: Annotated[str, Fact("the kind of message that says so")] = ""
    library: str = ""
    text: str = ""
    fact: Annotated[str, Fact("path of the message")] = ""
    certain: Annotated[bool, Fact("the message has no other causes")] = True
    tried: Annotated[int | None, Fact("what the job asked for")] = None
    total: Annotated[int | None, Fact("memory of the device")] = None
    free: int | None = None
    mine: Annotated[int | None, Fact("held by the job")] = None
    reserved: Annotated[int | None, Fact("kept by the job's allocator, unused")] = None
    others: Annotated[int | None, Fact("held by other processes")] = None

    @property
    def numbers(self) -> str:
        """What is known of the sizes, for a sentence: "the job asked for 1.50 GiB, the device has 15.70 GiB"."""
        return ", ".join(self._numbers())

    def _numbers(self) -> Iterator[str]:
        if self.tried is not None:
            yield f"the job asked for {shown_bytes(self.tried)}"
        if self.free is not None:
            total = f" of {shown_bytes(self.total)}" if self.total is not None else ""
            yield f"{shown_bytes(self.free)}{total} are free"
        elif self.total is not None:
            yield f"the device has {shown_bytes(self.total)}"
        if self.mine is not None:
            yield f"the job holds {shown_bytes(self.mine)}"
        if self.cause == "fragmented" and self.reserved:
            yield f"{shown_bytes(self.reserved)} are reserved but unallocated"
        if self.cause == "others" and self.others:
            yield f"other processes hold {shown_bytes(self.others)}"


def shown_bytes(size: int) -> str:
    """Return a size for a sentence: "2.00 GiB", "20 MiB"."""
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / 2**20:.0f} MiB"
