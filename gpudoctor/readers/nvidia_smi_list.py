"""Lists of GPUs: `nvidia-smi -L`, the matrix of `topo -m`, the rows of `--query-gpu=...`, and `gpustat`."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpudoctor.model import ComputeCapability, Device, Driver, DriverVersion
from gpudoctor.parsers.nvidia_smi_xml import FIELDS, MAXIMUM_DEVICES, integer, mebibytes
from gpudoctor.readers.facts import Facts, join_devices
from gpudoctor.readers.text import Text, name_table, regex

MOST_INSTANCES = 64  # of MIG on one GPU; there are at most seven

_UUID = r"[\w-]{1,60}(?:/\d{1,3}/\d{1,3})?"
# "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-...)", "MIG 3g.20gb Device 0: (UUID: MIG-...)"
_LISTED = regex(
    rf"\bGPU (?P<index>\d{{1,3}}): (?P<name>[^:()|]{{2,80}}?(?:\([^():]{{1,20}}\))?) ?\(UUID: ?(?P<uuid>GPU-{_UUID})\)"
    rf"|\bMIG [\w.+]{{4,20}} Device {{1,3}}\d{{1,3}}: ?\(UUID: ?(?P<mig>MIG-{_UUID})\)"
)
# Some people remove the UUIDs.
_WITHOUT_UUID = regex(r"GPU (\d{1,3}): ((?:NVIDIA|Tesla|GeForce|Quadro) [\w .+-]{2,60})$")
_QUERY = regex(r"--query-gpu[= ]\"?([a-z_.,]{3,1000})\"?", "--query-gpu")
_COLUMN = regex(r"^[a-z]\w*(?:\.\w+){0,5}(?: \[[\w%/]{1,5}\])?$")
_UNKNOWN = ("", "n/a", "not supported", "unknown error", "insufficient permissions", "not found")


# Source: gpustat/core.py of gpustat 1.1. "?" and "??" mean that NVML does not report it.
_GPUSTAT = regex(
    r"^\[(?P<index>\d{1,2})\] (?P<name>[^|\n]{3,60}?) *\| *(?P<temperature>\d{1,3}|\?{1,2}) ?(?:°C|'C)"
    r"[^|\n]{0,60}\| *(?P<used>\d{1,7}|\?{1,2}) / *(?P<total>\d{1,7}) MB"
)
_GPUSTAT_HEAD = regex(
    r"^\S{1,80} .{0,10}\w{3} \w{3} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4} {1,4}(?P<driver>\d{2,4}(?:\.\d{1,4}){1,2})$"
)
# "GPU0  X  NV12  SYS": X marks the GPU itself; the other columns say how each other GPU is connected.
_TOPOLOGY = regex(r"\s{0,8}GPU(\d{1,3})((?: +(?:X|NV\d{1,2}|PIX|PXB|PHB|NODE|SYS|SOC|C2C)\b){1,64})")


def read(text: Text) -> Facts:
    """Return the devices that nvidia-smi lists in the text."""
    facts: Facts = {}
    listed = _listed(text.flat) if "(uuid:" in text.lowered else ()
    rows = list(_rows(text.lines))
    tabled = {device.nvml_index: device for device in (_device(n, row) for n, row in rows)}
    listed = listed or tuple(_listed_without_uuid(text.lines))
    devices = join_devices(listed, tuple(tabled[index] for index in sorted(tabled))) or _matrix_devices(text)
    if devices:
        facts["devices"] = devices
    version = next((row["driver_version"] for _, row in rows if "driver_version" in row), None)
    if devices or version:
        facts["driver"] = Driver(installed=True, version=_read(DriverVersion.parse, version))
    return facts


def _listed_without_uuid(lines: Sequence[str]) -> Iterator[Device]:
    """Yield the devices of the lines that follow `nvidia-smi -L`."""
    is_list = False
    for line in lines:
        found = _WITHOUT_UUID.match(line.strip())
        if found and is_list:
            yield Device(nvml_index=int(found[1]), name=found[2].strip())
        else:
            is_list = line.strip().endswith(("nvidia-smi -L", "nvidia-smi --list-gpus"))


def read_gpustat(text: Text) -> Facts:
    """Return the devices that `gpustat` lists in the text, and the driver above them."""
    lines = [line.strip() for line in text.lines]
    rows = {int(row["index"]): row for row in map(_GPUSTAT.match, lines) if row}
    devices = tuple(
        Device(
            nvml_index=index,
            name=row["name"].strip(),
            temperature_celsius=_read(integer, row["temperature"]),
            memory_used_bytes=_read(mebibytes, row["used"]),
            memory_total_bytes=_read(mebibytes, row["total"]),
        )
        for index, row in sorted(rows.items())
    )
    version = next((head["driver"] for head in map(_GPUSTAT_HEAD.match, lines) if head), None)
    driver = Driver(installed=True, version=_read(DriverVersion.parse, version))
    return {"devices": devices[:MAXIMUM_DEVICES], "driver": driver} if devices else {}


def _matrix_devices(text: Text) -> tuple[Device, ...]:
    """Return the devices in the matrix of `topo -m`, which shows only their numbers."""
    if "cpu affinity" not in text.lowered:
        return ()
    numbers = {int(match[1]) for match in map(_TOPOLOGY.match, text.lines) if match and "X" in match[2].split()}
    return tuple(Device(nvml_index=number) for number in sorted(numbers)[:MAXIMUM_DEVICES])


def _listed(flat: str) -> tuple[Device, ...]:
    devices: dict[int, Device] = {}
    current: Device | None = None
    for match in _LISTED.finditer(flat):
        if match["mig"]:
            if current is not None and len(current.mig_uuids or ()) < MOST_INSTANCES:
                current = replace(current, mig_enabled=True, mig_uuids=(*(current.mig_uuids or ()), match["mig"]))
                devices[current.nvml_index] = current
        elif len(devices) < MAXIMUM_DEVICES:
            current = Device(nvml_index=int(match["index"]), name=match["name"].strip(), uuid=match["uuid"])
            devices[current.nvml_index] = current
    return tuple(devices[index] for index in sorted(devices))


def _rows(lines: Sequence[str]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the number and the fields of each row. The header names the fields; without a header, the command does."""
    columns: Sequence[str] = ()
    count = 0
    for line in lines:
        asked = _QUERY.search(line)
        cells = [cell.strip() for cell in line.strip().split(",")]
        if asked:
            columns, count = (asked[1].strip(",").split(",") if "noheader" in line else ()), 0
        elif _is_header(cells):
            columns, count = [cell.partition(" ")[0] for cell in cells], 0
        elif columns and len(cells) == len(columns) and count < MAXIMUM_DEVICES:
            yield count, {name: cell for name, cell in zip(columns, cells, strict=True) if _is_known(cell)}
            count += 1
        else:
            columns = ()


def _is_header(cells: Sequence[str]) -> bool:
    """Return whether the cells name fields, at least one of which can only be a GPU's field."""
    if len(cells) > 200 or not all(_COLUMN.match(cell) for cell in cells):
        return False
    names = {cell.partition(" ")[0] for cell in cells}
    return bool(names & {"driver_version", "compute_cap", "uuid", "gpu_uuid", "pstate", "pci.bus_id"}) or any(
        "." in name and name in columns for name in names for columns in _COLUMNS.values()
    )


def _is_known(cell: str) -> bool:
    return cell.strip("[]").lower() not in _UNKNOWN


def _device(number: int, row: Mapping[str, str]) -> Device:
    known: dict[str, Any] = {}
    for field, columns in _COLUMNS.items():
        values = (_read(_READ_CELL[field], row[column][:80]) for column in columns if column in row)
        known[field] = next((value for value in values if value is not None), None)
    error = next((cell for cell in row.values() if cell.strip("[]") in ("GPU is lost", "GPU requires reset")), "")
    index = _read(integer, row.get("index"))
    return Device(
        nvml_index=index if index is not None and index < MAXIMUM_DEVICES else number,
        error=error.strip("[]"),
        throttle_reasons=_reasons(row),
        **known,
    )


def _reasons(row: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the active throttle reasons; None if the row has no such field."""
    cells = {
        name.partition(".")[2]: cell
        for name, cell in row.items()
        if name.startswith(("clocks_throttle_reasons.", "clocks_event_reasons."))
    }
    bits = cells.pop("active", "")
    if re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", bits):
        return tuple(name for number, name in enumerate(name_table("clock_event_bits")) if int(bits, 16) >> number & 1)
    return tuple(name for name, cell in cells.items() if cell == "Active") if cells else None


def _read(read_cell: Callable[[str], Any], cell: str | None) -> Any:
    try:
        return None if cell is None else read_cell(cell)
    except ValueError:
        return None


_COLUMNS = name_table("query_gpu")  # field of the device → fields of --query-gpu
# How each value is read, as in nvidia-smi's XML.
_READ_CELL: Mapping[str, Callable[[str], Any]] = {
    **{field: read_cell for field, (read_cell, *_) in FIELDS.items()},
    "compute_capability": ComputeCapability.parse,
    "ecc_uncorrected_volatile": integer,
}
