"""The caching allocator: memory comes from the device in segments, and is handed out in blocks of them.

Sizes as in CUDACachingAllocator.cpp of torch 2.13: a segment can be given back only if no block of it is in use, and a
block is one piece of a segment, so that memory that is free may be of no use.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MIB = 2**20
UNIT = 512
SMALL, SMALL_SEGMENT = MIB, 2 * MIB
LARGE, LARGE_SEGMENT = 10 * MIB, 20 * MIB
ROUND = 2 * MIB


class NoMemory(Exception):
    """There is no room for that many bytes."""


@dataclass(eq=False)
class Segment:
    """Memory that came from the device in one piece. blocks: in the order of their addresses."""

    size: int
    blocks: list[Block] = field(default_factory=list)


@dataclass(eq=False)
class Block:
    """A piece of a segment."""

    size: int
    segment: Segment
    is_used: bool = False


@dataclass
class Count:
    """Bytes now, at most since the last reset, and in all."""

    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def add(self, size: int) -> None:
        self.current += size
        self.peak = max(self.peak, self.current)
        self.allocated += max(size, 0)
        self.freed += max(-size, 0)


@dataclass
class Allocator:
    """The memory of one GPU in this process.

    free_bytes: returns what the device has left. publish: is told what this process has.
    """

    total: int
    free_bytes: Callable[[], int]
    publish: Callable[[int], None]
    limit: int = 0
    allocated: Count = field(default_factory=Count)
    reserved: Count = field(default_factory=Count)
    retries: int = 0
    failures: int = 0

    def __post_init__(self) -> None:
        self.limit = self.total
        self._segments: list[Segment] = []
        self._lock = threading.RLock()
        names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
        self._expandable = any("expandable_segments:true" in os.environ.get(name, "").lower() for name in names)

    def allocate(self, size: int) -> Block:
        """Return a block. Raises NoMemory: there is no room, not even once the cache is emptied."""
        size = -(-size // UNIT) * UNIT
        with self._lock:
            block = self._find(size) or self._grow(size)
            if block is None:
                self.empty_cache()
                self.retries += 1
                block = self._find(size) or self._grow(size)
            if block is None:
                self.failures += 1
                raise NoMemory
            self._use(block, size)
            return block

    def free(self, block: Block) -> None:
        """Take a block back, and join it with its free neighbours."""
        with self._lock:
            block.is_used = False
            self.allocated.add(-block.size)
            blocks = block.segment.blocks
            position = blocks.index(block)
            for other in (position + 1, position - 1):
                if 0 <= other < len(blocks) and not blocks[other].is_used:
                    block.size += blocks[other].size
                    del blocks[other]
            if self._expandable:
                self._segments.remove(block.segment)

    def empty_cache(self) -> None:
        """Give the segments of which nothing is used back to the device."""
        with self._lock:
            self._segments = [segment for segment in self._segments if any(block.is_used for block in segment.blocks)]
            kept = self._mapped() if self._expandable else sum(segment.size for segment in self._segments)
            self._reserve(kept - self.reserved.current)

    def reset_peaks(self) -> None:
        """Let the peaks begin at what there is now."""
        for count in (self.allocated, self.reserved):
            count.peak = count.current

    def statistics(self) -> dict[str, Any]:
        """Return them as `torch.cuda.memory_stats` has them before it flattens them."""
        counts = {"allocated_bytes": self.allocated, "active_bytes": self.allocated, "reserved_bytes": self.reserved}
        pieces = [segment.blocks for segment in self._segments if len(segment.blocks) > 1]
        split = sum(block.size for blocks in pieces for block in blocks if not block.is_used)
        return {
            "num_alloc_retries": self.retries,
            "num_ooms": self.failures,
            "inactive_split_bytes": {"all": {"current": split}},
            **{name: {"all": dict(vars(count))} for name, count in counts.items()},
        }

    def _find(self, size: int) -> Block | None:
        """Return the smallest free block that is large enough, of the pool for that size."""
        free = (
            block
            for segment in self._segments
            if (segment.size == SMALL_SEGMENT) == (size <= SMALL)
            for block in segment.blocks
            if not block.is_used and block.size >= size
        )
        return min(free, key=lambda block: block.size, default=None)

    def _grow(self, size: int) -> Block | None:
        """Return a new segment as one block; None if there is no room for it."""
        if self._expandable:
            needed = max(-(-(self.allocated.current + size) // ROUND) * ROUND - self.reserved.current, 0)
            length = size
        else:
            rounded = -(-size // ROUND) * ROUND
            needed = length = SMALL_SEGMENT if size <= SMALL else LARGE_SEGMENT if size < LARGE else rounded
        if self.reserved.current + needed > self.limit or needed > self.free_bytes():
            return None
        self._reserve(needed)
        segment = Segment(length)
        segment.blocks.append(Block(length, segment))
        self._segments.append(segment)
        return segment.blocks[0]

    def _use(self, block: Block, size: int) -> None:
        rest = block.size - size
        if rest >= UNIT if size <= SMALL else rest > SMALL:
            block.size = size
            blocks = block.segment.blocks
            blocks.insert(blocks.index(block) + 1, Block(rest, block.segment))
        block.is_used = True
        self.allocated.add(block.size)

    def _reserve(self, size: int) -> None:
        self.reserved.add(size)
        self.publish(self.reserved.current)

    def _mapped(self) -> int:
        return -(-self.allocated.current // ROUND) * ROUND
