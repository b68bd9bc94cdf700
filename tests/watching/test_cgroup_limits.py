"""The CPU limit of the program's cgroup, of both versions, and the periods that it cut short."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudoctor.watching import cpu_use
from gpudoctor.watching.cpu_use import CpuUse, allowed_cpus

CUT = "nr_periods 124\nnr_throttled 120\nthrottled_time 4646105332\n"
NEVER_CUT = "nr_periods 0\nnr_throttled 0\n"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the affinity is read on Linux")
@pytest.mark.parametrize(
    ("folder", "files", "limit", "periods"),
    [
        pytest.param(
            "a/b", {"a/b/cpu.max": "50000 100000\n", "a/b/cpu.stat": CUT}, 0.5, (124, 120), id="version 2"
        ),
        pytest.param(
            "a/b",
            {"a/cpu.max": "50000 100000", "a/cpu.stat": CUT, "a/b/cpu.max": "max 100000", "a/b/cpu.stat": NEVER_CUT},
            0.5, (124, 120), id="a limit above",
        ),
        pytest.param(
            "cpu/a",
            {"cpu/a/cpu.cfs_quota_us": "50000\n", "cpu/a/cpu.cfs_period_us": "100000\n", "cpu/a/cpu.stat": CUT},
            0.5, (124, 120), id="version 1",
        ),
        pytest.param(
            "cpu/docker/0123",  # as the host names it: the container sees its own as the root
            {"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n", "cpu/cpu.stat": CUT},
            0.5, (124, 120), id="version 1 in a container",
        ),
        pytest.param(
            "cpu/a",
            {"cpu/a/cpu.cfs_quota_us": "-1\n", "cpu/a/cpu.cfs_period_us": "100000\n", "cpu/a/cpu.stat": NEVER_CUT},
            None, None, id="no limit",
        ),
        pytest.param("a", {"a/cpu.max": "odd\n", "a/cpu.stat": "odd"}, None, None, id="what cannot be read"),
    ],
)  # fmt: skip
def test_limits(
    folder: str, files: dict[str, str], limit: float | None, periods: tuple[int, int] | None, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    write(tmp_path, files)
    monkeypatch.setattr(cpu_use, "CGROUPS", str(tmp_path))
    monkeypatch.setattr(cpu_use, "cgroup_folder", lambda _pid: f"{tmp_path}/{folder}")
    assert allowed_cpus(None) == (limit or float(len(os.sched_getaffinity(0))))
    assert CpuUse(None).more()["cgroup_periods"] == periods


@pytest.mark.parametrize(
    ("lines", "folder"),
    [
        ("0::/user.slice\n", "/user.slice"),
        ("2:cpuacct,cpu:/job\n1:cpuset:/\n0::/\n", "/cpu/job"),
        ("9:name=systemd:/\n0::/\n", ""),
        ("", None),
    ],
)
def test_the_folder_of_a_process(
    lines: str, folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cgroup"
    path.write_text(lines, encoding="utf-8")
    monkeypatch.setattr("builtins.open", lambda _name, _open=open, **options: _open(path, **options))
    assert cpu_use.cgroup_folder(7) == ("" if folder is None else cpu_use.CGROUPS + folder)
