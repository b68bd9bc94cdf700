"""Limit files of both versions of control groups."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.cgroup import cpu_limit, memory_limit_bytes


@pytest.mark.parametrize(
    ("texts", "limit"),
    [
        pytest.param({"/a/memory.max": "max"}, 0, id="version 2, none"),
        pytest.param({"/a/b/memory.max": "max", "/a/memory.max": "1073741824"}, 2**30, id="limit of the parent"),
        pytest.param({"/a/memory.limit_in_bytes": "9223372036854771712"}, 0, id="version 1, none"),
        pytest.param({"/a/memory.limit_in_bytes": "536870912"}, 2**29, id="version 1"),
        pytest.param({"/a/cgroup.controllers": "cpu memory"}, 0, id="root of version 2, without a file"),
    ],
)
def test_memory(texts: dict[str, str], limit: int) -> None:
    assert memory_limit_bytes(texts) == limit


@pytest.mark.parametrize(
    ("texts", "limit"),
    [
        pytest.param({"/a/cpu.max": "max 100000"}, 0.0, id="version 2, none"),
        pytest.param({"/a/cpu.max": "150000 100000", "/cpu.max": "max 100000"}, 1.5, id="version 2"),
        pytest.param({"/a/cpu.cfs_quota_us": "-1", "/a/cpu.cfs_period_us": "100000"}, 0.0, id="version 1, none"),
        pytest.param({"/a/cpu.cfs_quota_us": "200000", "/a/cpu.cfs_period_us": "50000"}, 4.0, id="version 1"),
        pytest.param({"/a/cpu.cfs_quota_us": "200000", "/a/cpu.cfs_period_us": "0"}, 0.0, id="period of zero"),
    ],
)
def test_cpu(texts: dict[str, str], limit: float) -> None:
    assert cpu_limit(texts) == limit


def test_another_text() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        memory_limit_bytes({"/a/memory.max": "lots"})
    with pytest.raises(ValueError, match="invalid literal"):
        cpu_limit({"/a/cpu.max": "1 2 3"})
