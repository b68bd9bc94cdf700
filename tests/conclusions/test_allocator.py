"""The variables of PyTorch's allocator: what it takes, what it refuses, and which slips can be corrected."""

import pytest

from gpudoctor.conclusions.allocator import allocator
from gpudoctor.model import AllocatorVariable, Environment, PackageVersion, Torch

NAME = "PYTORCH_CUDA_ALLOC_CONF"


def variable(value: str) -> AllocatorVariable:
    (found,) = allocator(Environment(variables={NAME: value}), Torch()).variables or ()
    return found


# What PyTorch 2.13.0 took, and what it refused, when it was given these settings.
@pytest.mark.parametrize(
    "value",
    [
        "expandable_segments:True",
        "max_split_size_mb:128 , expandable_segments:False",
        "max_split_size_mb:20",
        "max_split_size_mb:128,",
        "garbage_collection_threshold:0.8,max_split_size_mb:512",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[256:1,512:2,>:8],max_split_size_mb:512",
        "backend:cudaMallocAsync",
        "backend:native",
        "backend:hipMallocAsync",
        "garbage_collection_threshold:0.001",
        "garbage_collection_threshold:.999",
        "per_process_memory_fraction:0",
        "per_process_memory_fraction:1",
        "per_process_memory_fraction:1.0",
        "large_segment_size_mb:11",
        "max_non_split_rounding_mb:20",
        "pinned_max_cached_size_mb:0",
        "pinned_max_round_threshold_mb:0",
        "pinned_reserve_segment_size_mb:1",
        "pinned_num_register_threads:1",
    ],
)
def test_settings_that_pytorch_takes(value: str) -> None:
    assert variable(value).problems == ()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("max_split_size_mb:19", "max_split_size_mb:19 is less than 20 MiB"),
        ("max_split_size_mb:abc", "max_split_size_mb:abc is not a number of MiB"),
        ("max_split_size_mb:", "max_split_size_mb: is not a number of MiB"),
        ("expandable_segments:true", "expandable_segments:true is not True or False"),
        ("expandable_segments=True", "expandable_segments=True is not of the form key:value"),
        ("expandable_segments", "expandable_segments is not of the form key:value"),
        ("garbage_collection_threshold:1.5", "garbage_collection_threshold:1.5 is not between 0 and 1"),
        ("garbage_collection_threshold:1", "garbage_collection_threshold:1 is not between 0 and 1"),
        ("garbage_collection_threshold:x", "garbage_collection_threshold:x is not between 0 and 1"),
        ("per_process_memory_fraction:1.01", "per_process_memory_fraction:1.01 is not from 0 to 1"),
        ("per_process_memory_fraction:-1", "per_process_memory_fraction:-1 is not from 0 to 1"),
        ("large_segment_size_mb:10", "large_segment_size_mb:10 is less than 11 MiB"),
        ("max_non_split_rounding_mb:19", "max_non_split_rounding_mb:19 is less than 20 MiB"),
        ("pinned_reserve_segment_size_mb:0", "pinned_reserve_segment_size_mb:0 is less than 1 MiB"),
        ("pinned_num_register_threads:0", "pinned_num_register_threads:0 is not a power of 2"),
        ("garbage_collection_threshold:0", "garbage_collection_threshold:0 is not between 0 and 1"),
        ("max_split_size_mb:128,,", "a setting is empty"),
        ("roundup_power2_divisions:3", "roundup_power2_divisions:3 is not a power of 2"),
        ("backend:async", "backend:async is not native or cudaMallocAsync"),
        ("max_split_size:128", "max_split_size is not a key that PyTorch knows"),
        ("large_segment_size_mb:5", "large_segment_size_mb:5 is less than 11 MiB"),
    ],
)
def test_settings_that_pytorch_refuses(value: str, problem: str) -> None:
    assert variable(value).problems == (problem,)


@pytest.mark.parametrize(
    ("value", "corrected"),
    [
        ("expandable_segments=True", "expandable_segments:True"),
        ("expandable_segments:true", "expandable_segments:True"),
        ("expandable_segments:1;max_split_size_mb:64", "expandable_segments:True,max_split_size_mb:64"),
        ("'expandable_segments:False'", "expandable_segments:False"),
        *((f"expandable_segments:{word}", "expandable_segments:True") for word in ("TRUE", "1", "on")),
        *((f"expandable_segments:{word}", "expandable_segments:False") for word in ("false", "FALSE", "0", "off")),
        ("expandable_segments:onward", ""),
        ("max_split_size_mb:1", ""),
        ("expandable_segments:True", ""),
    ],
)
def test_a_slip_is_corrected_if_nothing_is_in_doubt(value: str, corrected: str) -> None:
    assert variable(value).corrected == corrected


@pytest.mark.parametrize(
    ("value", "ignored"),
    [
        ("backend:cudaMallocAsync,expandable_segments:True", ("expandable_segments",)),
        ("backend:cudaMallocAsync,max_split_size_mb:128", ("max_split_size_mb",)),
        ("backend:cudaMallocAsync,roundup_power2_divisions:4", ("roundup_power2_divisions",)),
        ("backend:cudaMallocAsync,garbage_collection_threshold:0.8", ("garbage_collection_threshold",)),
        ("backend:cudaMallocAsync,pinned_max_cached_size_mb:1", ()),
        ("backend:cudaMallocAsync,expandable_segments:False", ()),
        ("backend:native,expandable_segments:True", ()),
    ],
)
def test_the_asynchronous_backend_ignores_settings(value: str, ignored: tuple[str, ...]) -> None:
    assert variable(value).ignored == ignored


@pytest.mark.parametrize(("version", "too_old"), [("2.8.0", PackageVersion("2.8.0")), ("2.9.0", None), (None, None)])
def test_releases_that_do_not_read_the_new_name(version: str | None, too_old: PackageVersion | None) -> None:
    torch = Torch(version=PackageVersion(version) if version else None)
    assert allocator(Environment(), torch).too_old == too_old


def test_an_unknown_environment_has_unknown_variables() -> None:
    assert allocator(None, Torch()).variables is None
    assert allocator(Environment(), Torch()).variables == ()
