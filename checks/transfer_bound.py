"""Copies to the GPU that hold up the steps."""

from collections.abc import Iterator

from gpudoctor.model import Finding, Fix, Run, Steps, measured, share_text, size_text
from gpudoctor.registry import check, counted_steps

LEAST_SHARE = 0.1
PAGEABLE_BYTES_PER_MS = 6e6
"""Pageable memory reaches the GPU at 4 to 8 GB/s over PCIe 4.0, because the driver copies it once more."""

MS_PER_COPY = 0.02
"""One copy from pageable memory, however small: a call of the driver that waits."""

MANY_COPIES = 8
REPEATED = 2
"""Times that a data set goes to the GPU, from which on it should stay there."""

LEAST_BYTES = 256 * 2**10
"""A batch below it costs a stand-in, whose copies take no time, nothing that matters."""


@check(family="run")
def transfer_bound(run: Run) -> Iterator[Finding]:
    """Copying data to the GPU takes a large part of each step.

    Why: a copy from pageable memory blocks the program, and the GPU waits for it. Pinned memory is copied in the
    background, about twice as fast. Each small copy costs a driver call. Data that fits on the GPU needs to be copied
    only once.
    Exception: copies below a tenth of each step pass, and so do a few that run in the background.
    Reference: https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
    """
    steps = counted_steps(run)
    estimated_ms = steps.pageable_bytes / PAGEABLE_BYTES_PER_MS
    if steps.pageable_bytes:
        estimated_ms += steps.copies * MS_PER_COPY
    estimate = min(estimated_ms / steps.step_ms, 0.9)
    is_measured = steps.copies_share >= LEAST_SHARE
    if not is_measured and not (steps.is_stand_in and (estimate >= LEAST_SHARE or _is_wasteful(steps))):
        return
    kinds = []
    if steps.copies >= MANY_COPIES:
        kinds.append(f"in {steps.copies:.0f} copies")
    if steps.pageable_bytes:
        kinds.append("from pageable memory")
    again = _copied_again(steps)
    if again:
        kinds.append(f"the same {size_text(again)} again and again")
    is_in_background = steps.background_bytes >= steps.copy_bytes > 0
    if not kinds and (steps.is_stand_in or is_in_background):  # nothing is left to change
        return
    place = f" at {steps.copies_place}" if steps.copies_place else ""
    size = size_text(steps.copy_bytes)
    summary = f"Each step sends {size} to the GPU{place}, {', '.join(kinds) or 'blocking'}"
    if is_measured:
        summary += f": {share_text(steps.copies_share)} of its time"
    facts = ("run.steps.copies_share", "run.steps.copies", "run.steps.copy_bytes", "run.steps.pageable_bytes")
    fixes = (
        Fix("keep-data-on-gpu", size=_fits(again, run)) if _fits(again, run) else None,
        Fix("copy-in-one-piece") if steps.copies >= MANY_COPIES else None,
        Fix("pin-data-and-overlap-copies" if _has_data_in_memory(steps) else "pin-and-overlap-copies"),
    )
    share = steps.copies_share
    details = measured(share, steps.copies_place, saved=share if is_measured else None)
    yield Finding.warning("copies to the GPU", summary, facts, *fixes, details=details)


def _is_wasteful(steps: Steps) -> bool:
    """Return whether copies, which take a stand-in no time, would matter on a GPU."""
    return steps.pageable_bytes >= LEAST_BYTES or (steps.pageable_bytes > 0 and steps.copies >= MANY_COPIES)


def _has_data_in_memory(steps: Steps) -> bool:
    """Return whether batches come, without a loader, from data that can be pinned once: they are not made each step."""
    is_made = not steps.source_bytes and steps.prepare_share >= LEAST_SHARE
    return steps.loader is None and not is_made


def _copied_again(steps: Steps) -> int:
    """Return the size of a data set that was sent to the GPU more than once; 0 for none."""
    loader, total = steps.loader, steps.copy_bytes * steps.counted
    whole = steps.source_bytes or 0
    if not whole and loader is not None and loader.epochs >= REPEATED and loader.dataset_length and loader.batch_size:
        whole = round(steps.copy_bytes / loader.batch_size * loader.dataset_length)
    return whole if whole and total >= REPEATED * whole else 0


def _fits(size: int, run: Run) -> str:
    """Return "1.2 of 24.0 GiB" if data of this size fits on the GPU next to what is there; empty if not."""
    if not size or run.memory is None or run.memory.allocated_peak_bytes is None:
        return ""
    if size + run.memory.allocated_peak_bytes > run.memory.total_bytes * 0.8:
        return ""
    return f"{size_text(size)} of {size_text(run.memory.total_bytes)}"
