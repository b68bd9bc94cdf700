"""What follows from the measured transfers and loading: pinned memory, workers of a DataLoader, data on the device."""

from collections.abc import Sequence

from gpudoctor.model.tuning import Loading, Transfer

NEAR_BEST = 0.97
"""A simpler setting is preferred where it reaches this share of the best."""


def choose_transfer(transfers: Sequence[Transfer], *, pinned_in_background: bool = False) -> Transfer | None:
    """Return the simplest way of copying that is nearly as fast as the fastest; None where none was measured.

    Pageable memory is simpler than pinned, and waiting than not waiting.
    pinned_in_background: a thread of the DataLoader copies into pinned memory, while the device computes.
    """
    rates = [(pinned_in_background and transfer.copy_gb_s) or transfer.gb_s for transfer in transfers]
    near = [each for each, rate in zip(transfers, rates, strict=True) if rate >= NEAR_BEST * max(rates)]
    return min(near, key=lambda transfer: (transfer.pinned, transfer.non_blocking), default=None)


def choose_workers(loadings: Sequence[Loading]) -> int | None:
    """Return the smallest number of workers with which steps are nearly as fast as with any; None if none was measured.

    A step that waits for a share `w` of its time runs at 1 - w of its speed. Where the time of a step is unknown, the
    samples a second count.
    """
    waits = [loading.wait_fraction for loading in loadings if loading.wait_fraction is not None]
    speeds = [1.0 - wait for wait in waits]
    if len(waits) < len(loadings):
        speeds = [loading.samples_per_second for loading in loadings]
    near = [each for each, speed in zip(loadings, speeds, strict=True) if speed >= NEAR_BEST * max(speeds)]
    return min((loading.workers for loading in near), default=None)


def fits_on_device(dataset_bytes: int | None, usable_bytes: int | None, peak_bytes: int | None) -> bool | None:
    """Return whether the whole data set fits beside the step, and so should live on the device; None where unknown.

    usable_bytes: what the device has for this program; peak_bytes: what the recommended step takes of it.
    """
    if dataset_bytes is None or usable_bytes is None or peak_bytes is None:
        return None
    return dataset_bytes <= usable_bytes - peak_bytes


def wait_fraction(batch_seconds: float, step_seconds: float | None, workers: int) -> float | None:
    """Return the share of a step's time that waits for its batch; None where the time of a step is unknown.

    batch_seconds: in which one batch is loaded. Workers load while the device computes; without any, the step begins
    when the batch is there.
    """
    if step_seconds is None:
        return None
    waiting = batch_seconds if workers == 0 else max(0.0, batch_seconds - step_seconds)
    return waiting / (waiting + step_seconds) if waiting else 0.0
