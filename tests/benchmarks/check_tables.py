"""Rows of the tables to look at, because what can be fetched says otherwise: python tests/benchmarks/check_tables.py

Package indexes are asked by pip, as it is configured, one request for a package; libraries that are installed are
asked directly, and pci.ids where the system has it. Nothing is changed: a row that is printed is looked up by a
person, mended with its source, and the table's date is set. `--only WORD` selects tables. Needs the network, so that no
test runs it; what is compared has its tests in test_check_tables.py.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from gpudoctor.data.cuda_libraries import FIRST_CUDA_WITH_WHEELS, wheel_of  # noqa: E402
from gpudoctor.data.tables import load_table, table_dates  # noqa: E402

OLD_DAYS = 180
PLATFORMS = {
    "linux_x86_64": r"manylinux.*x86_64|linux_x86_64",
    "linux_aarch64": r"manylinux.*aarch64",
    "windows_amd64": r"win_amd64",
    "macos_arm64": r"macosx.*arm64",
    "macos_x86_64": r"macosx.*x86_64",
}
PCI_IDS = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")
# Chip → compute capability, by a product of each on https://developer.nvidia.com/cuda-legacy-gpus and cuda-gpus.
CHIPS = {
    **dict.fromkeys(("GK104", "GK106", "GK107"), "3.0"),
    **dict.fromkeys(("GK110", "GK180", "GK208"), "3.5"),
    "GK210": "3.7",
    "GM107": "5.0",
    "GM108": "5.0",
    "GM200": "5.2",
    "GM204": "5.2",
    "GM206": "5.2",
    "GP100": "6.0",
    "GP102": "6.1",
    "GP104": "6.1",
    "GP106": "6.1",
    "GP107": "6.1",
    "GP108": "6.1",
    "GV100": "7.0",
    "TU102": "7.5",
    "TU104": "7.5",
    "TU106": "7.5",
    "TU116": "7.5",
    "TU117": "7.5",
    "GA100": "8.0",
    "GA102": "8.6",
    "GA103": "8.6",
    "GA104": "8.6",
    "GA106": "8.6",
    "GA107": "8.6",
    "AD102": "8.9",
    "AD103": "8.9",
    "AD104": "8.9",
    "AD106": "8.9",
    "AD107": "8.9",
    "GH100": "9.0",
}


@cache
def files_of(package: str) -> tuple[str, ...]:
    """Return the names of the files of a package on the indexes that pip is configured for; () if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-vv", "--no-deps", "--dest", folder, f"{package}==0"]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
    return file_names(package, said.stdout + said.stderr)


def file_names(package: str, said: str) -> tuple[str, ...]:
    """Return the files of a package that pip names when it says what it passes over."""
    name = re.escape(package).replace(r"\-", "[-_.]")
    found = re.findall(rf"(?i)\b{name}-\d[\w.+!-]*?(?:\.whl|\.tar\.gz|\.zip)(?=[\s#)]|$)", said)
    return tuple(dict.fromkeys(found))


def versions_in(files: Sequence[str]) -> set[str]:
    """Return the public versions of the files."""
    return {
        match[1] for file in files if (match := re.match(r"[\w.]+?-(\d[\w.!]*)(?:\+[\w.]+)?(?:-|\.tar|\.zip)", file))
    }


def pythons_in(files: Sequence[str], version: str, platform: str) -> set[str]:
    """Return the Python versions of the wheels of one version for a platform: "3.13", "3.13t"."""
    found = set()
    for file in files:
        match = re.match(rf"\w+-{re.escape(version)}-cp3(\d+)-(?:cp3\d+(t?)m?|none|abi3)-(.*)\.whl", file)
        if match and re.search(PLATFORMS[platform], match[3]):
            found.add(f"3.{match[1]}{match[2] or ''}")
    return found


def torch_rows(files: Sequence[str], releases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the index says otherwise of the releases of PyTorch."""
    listed = versions_in(files)
    for row in releases:
        of_release = {version for version in listed if re.fullmatch(rf"{re.escape(row['release'])}\.\d+", version)}
        if of_release and of_release != set(row["versions"]):
            yield f"torch {row['release']}: the table has {row['versions']}, the index {sorted(of_release)}"
        newest = max(of_release, key=_numbers, default="")
        for platform in PLATFORMS if of_release else ():
            if platform not in row["pythons"] and not pythons_in(files, newest, platform):
                continue  # only an older patch version had wheels for it
            wanted = set(row["pythons"].get(platform, ()))
            there = set().union(*(pythons_in(files, version, platform) for version in of_release))
            if wanted != there:
                more, less = sorted(there - wanted), sorted(wanted - there)
                yield f"torch {row['release']} on {platform}: the index also has {more}, and has no {less}"
            for python in there - pythons_in(files, newest, platform):
                if python not in row.get("last_with", {}):
                    yield f"torch {row['release']} on {platform}: {newest} has no wheel for Python {python} any more"
    newest_row = max(map(_numbers, (row["release"] for row in releases)))
    newer = sorted(
        version for version in listed if re.fullmatch(r"[\d.]+", version) and _numbers(version)[:2] > newest_row
    )
    if newer:
        yield f"torch: newer than the table: {newer}"


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def torch_builds() -> Iterator[str]:
    """Compare releases, Pythons and companions with the index."""
    table = load_table("torch_builds")
    files = files_of("torch")
    if not files:
        yield "torch: no index answers"
        return
    yield from torch_rows(files, table["releases"])
    for package in ("torchvision", "torchaudio"):
        there = versions_in(files_of(package))
        for row in table["companions"]:
            if there and row[package] is not None and row[package] not in there:
                yield f"companions of torch {row['torch']}: {package} {row[package]} is not on the index"


def packages() -> Iterator[str]:
    """Look for every distribution that a table names."""
    table = load_table("packages")
    names = {name for row in table["shared_modules"] for name in row["distributions"]}
    names |= {
        wheel_of(row["library"], major) or "" for row in table["wheels"] for major in (FIRST_CUDA_WITH_WHEELS, 12, 13)
    }
    for name in sorted(names - {""}):
        if not files_of(name):
            yield f"{name}: no index has it"
    there = versions_in(files_of("bitsandbytes"))
    for row in table["bitsandbytes"]:
        if there and row["version"] not in there:
            yield f"bitsandbytes {row['version']} (first for CUDA {row['cuda']}) is not on the index"


def cupy_packages() -> Iterator[str]:
    """Look for CuPy's distributions."""
    for row in load_table("cupy_packages")["packages"]:
        name = row.get("name") or row.get("distribution")
        if name and not files_of(name):
            yield f"{name}: no index has it"


def capabilities() -> Iterator[str]:
    """Ask each NVRTC that is installed what it compiles for."""
    rows = {row["cuda"]: row["architectures"] for row in load_table("capabilities")["toolkits"]}
    places = [*Path(sys.prefix).rglob("libnvrtc.so.1*"), *Path("/usr/local").glob("cuda*/lib64/libnvrtc.so.1*")]
    for library in {path.resolve() for path in places}:
        version, architectures = nvrtc(str(library))
        if version not in rows:
            yield f"toolkit {version} ({library}) is not in the table: {architectures}"
        elif rows[version] != architectures:
            yield f"toolkit {version}: the table has {rows[version]}, {library} says {architectures}"


def nvrtc(library: str) -> tuple[str, list[str]]:
    """Return the version of an NVRTC, and what it compiles for."""
    loaded = ctypes.CDLL(library)
    major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    loaded.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    loaded.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    loaded.nvrtcGetSupportedArchs(numbers)
    return f"{major.value}.{minor.value}", [f"sm_{number}" for number in numbers]


def gpu_names() -> Iterator[str]:
    """Compare names and PCI ids with the chips of pci.ids."""
    from gpudoctor.data.gpu_names import capability_of

    known = next((Path(path) for path in PCI_IDS if Path(path).is_file()), None)
    if known is None:
        yield "no pci.ids here (Debian: apt-get install pci.ids)"
        return
    for number, chip, product in chips_in(known.read_text(encoding="utf-8", errors="replace")):
        for key, found in ((number, capability_of(pci_device_id=number)), (product, capability_of(product))):
            if chip in CHIPS and found is not None and str(found) != CHIPS[chip]:
                yield f"{key} is {chip}, {CHIPS[chip]}: the table has {found}"


def chips_in(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield PCI device id, chip and product of NVIDIA's devices."""
    block = re.search(r"(?ms)^10de .*?(?=^[0-9a-f]{4} )", text + "\nffff x")
    for match in re.finditer(r"(?m)^\t([0-9a-f]{4})  (\w\w\d{3})\w* ?\[([^\]]+)\]", block[0] if block else ""):
        yield match[1].upper(), match[2], match[3]


def dates() -> Iterator[str]:
    """Yield the tables that nobody has checked for long."""
    for name, date in table_dates().items():
        days = (datetime.date.today() - datetime.date.fromisoformat(date)).days
        if days > OLD_DAYS:
            yield f"{name}: checked {days} days ago"


TABLES: tuple[Callable[[], Iterator[str]], ...] = (
    torch_builds,
    packages,
    cupy_packages,
    capabilities,
    gpu_names,
    dates,
)


def main() -> None:
    """Print the rows to look at, table by table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    for compare in TABLES:
        if only in compare.__name__:
            rows = list(compare())
            print(f"{compare.__name__.replace('_', ' ')}: {len(rows)} to look at", *rows, sep="\n  ")


if __name__ == "__main__":
    main()
