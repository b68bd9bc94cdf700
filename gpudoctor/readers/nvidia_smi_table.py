"""The table that `nvidia-smi` prints, in every layout since R331, even with line breaks added by pasting."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple

from gpudoctor.model import CudaVersion, Device, DeviceProcess, Driver, DriverVersion, System
from gpudoctor.parsers import nvidia_smi_xml
from gpudoctor.readers.facts import Facts, sections
from gpudoctor.readers.nvidia_smi_query import time_of
from gpudoctor.readers.text import Text, regex

MOST_CHARACTERS = 2**20  # of the part of a text that contains tables
FURTHEST_BRANCH = 10  # numbers between the Linux and the Windows name of one release: R470 and 477
LONGEST_ROW = 700  # characters from one GPU to the next; a table has two or three lines of 90 for each

# Table frames, and the marks of bold text and quotations. A row means the same with and without them.
_FRAMES = regex(r"[|│┃*]|\+?[-=]{4,}[-=+]*|(?<!\S)>(?!\S)")
_DRIVER = r"(?P<driver>\d{2,4}(?:\.\d{1,4}){1,3})"
_HEADER = regex(
    rf"NVIDIA-SMI (?P<smi>\d{{1,4}}(?:\.\d{{1,4}}){{1,3}}|N/A) (?:Driver|KMD) Version: ?(?:{_DRIVER}|N/A|ERR!)"
    r"(?: CUDA (?:UMD )?Version: ?(?P<cuda>\d{1,2}\.\d{1,2}|N/A|ERR!))?"
)
# "NVIDIA-SMI version : 550.54.14 NVML version : 550.54 DRIVER version : 550.54.14 CUDA Version : 12.4"
_VERSIONS = regex(
    r"(?i)NVIDIA-SMI version ?: ?\d[\d.]{2,14} NVML version ?: ?\d[\d.]{2,14} "
    rf"(?:DRIVER|KMD) version ?: ?{_DRIVER}"
    r"(?: CUDA (?:UMD )?Version ?: ?(?P<cuda>\d{1,2}\.\d{1,2}))?"
)
_BUS = r"(?:[0-9A-F]{4,8}:)?[0-9A-F]{2}:[0-9A-F]{2}\.[0-7]"
_ROW = regex(
    rf"(?i)(?<!\S)(?P<index>\d{{1,3}}) (?P<name>(?!N/A )[A-Z][\w .()+/-]{{1,60}}?|ERR!) "
    rf"(?P<mode>On|Off|WDDM|TCC|MCDM|N/A|ERR!) (?:(?P<bus>{_BUS})|N/A|ERR!)(?: (?:On|Off|N/A|ERR!))?"
    r"(?: (?P<ecc>\d{1,9}|Off|N/A|ERR!)(?= (?:\d|N/A|ERR!)|$))?"  # before a name it is the index of the next row
)
_END = regex(r"(?<!\S)(?:Processes:|MIG devices:|NVIDIA-SMI \d)")
_TEMPERATURE = regex(r"(?<!\S)(\d{1,3})C(?!\S)")
_STATE = regex(r"(?<!\S)P(\d{1,2})(?!\S)")
_POWER = regex(r"(?<!\S)(?:(\d{1,5}(?:\.\d{1,3})?)W|N/A|ERR!|Unknown Error) ?/ ?(?:(\d{1,5}(?:\.\d{1,3})?)W|N/A)?")
_MEMORY = regex(r"(?<!\S)(\d{1,9}) ?Mi?B ?/ ?(\d{1,9}) ?Mi?B(?!\S)")
_USE = regex(r"(?<!\S)(?:(\d{1,3}) ?%|N/A|ERR!) (Default|E\. ?Process|E\. ?Thread|Exclusive\w{0,12}|Prohibited)(?!\w)")
_MIG = regex(r"(?<!\S)(?:Default|E\. ?Process|E\. ?Thread|Exclusive\w{0,12}|Prohibited) (Enabled|Disabled)\b")
_UNREADABLE = regex(r"ERR!(?: ?/ ?(?:ERR!|N/A|\d{1,5}W))?")
SINGLE_READING = 1  # a water-cooled card has no readable fan and a laptop no readable power, without any fault

_PROCESS = regex(
    r"(?<!\S)(\d{1,3}) (?:(?:N/A|\d{1,2}) (?:N/A|\d{1,2}) )?(\d{1,9}) (?:C\+G|M\+C|C|G) "
    r"(\S.{0,120}?) (?:(\d{1,8}) ?Mi?B|N/A)(?!\S)"
)
_MIG_TABLE = regex(r"(?<!\S)(\d{1,3}) \d{1,2} \d{1,2} \d{1,2} \d{1,9} ?MiB ?/ ?\d{1,9} ?MiB(?!\S)")
_FAILED = regex(r"failed to initialize nvml|nvidia-smi has failed|unable to determine the device handle")
_NO_DEVICES = "no devices were found"


class _Table(NamedTuple):
    header: re.Match[str] | None
    text: str
    devices: tuple[Device, ...]


def read(text: Text) -> Facts:
    """Return the facts of the last table with GPUs."""
    flat = " ".join(_FRAMES.sub(" ", text.flat[:MOST_CHARACTERS]).split())
    tables = [_table(part) for part in _parts(flat)]
    chosen = next((table for table in reversed(tables) if table.devices), tables[-1])
    if chosen.header is None and not chosen.devices:
        versions = _VERSIONS.search(flat)
        if versions is None:
            none = any(line.strip().lower().startswith(_NO_DEVICES) for line in text.lines)
            return {"devices": ()} if none else {}
        return {"driver": _driver(versions, text)}
    return sections(
        driver=_driver(chosen.header, text), devices=chosen.devices, system=_system(chosen), taken_at=time_of(text.flat)
    )


def _parts(flat: str) -> list[str]:
    """Return the text split at each header; the first part is the text above the first header."""
    starts = [match.start() for match in _HEADER.finditer(flat)][:64]
    edges = [0, *starts, len(flat)]
    return [flat[begin:end] for begin, end in pairwise(edges) if end > begin] or [flat]


def _table(part: str) -> _Table:
    header = _HEADER.match(part)
    rows = list(_rows(part))
    devices = {device.nvml_index: device for device in rows}
    return _Table(header, part, _completed(part, tuple(devices[index] for index in sorted(devices))))


def _rows(part: str) -> Iterator[Device]:
    """Yield the device of each pair of lines. A line without a bus address counts only if readings follow."""
    matches = list(islice(_ROW.finditer(part), nvidia_smi_xml.MAXIMUM_DEVICES))
    for number, match in enumerate(matches):
        end = matches[number + 1].start() if number + 1 < len(matches) else len(part)
        rest = part[match.end() : min(end, match.end() + LONGEST_ROW)]
        stop = _END.search(rest)
        rest = rest[: stop.start()] if stop else rest
        if match["bus"] or _MEMORY.search(rest) or _USE.search(rest) or "Not Supported" in rest:
            yield _device(match, rest)


def _device(row: re.Match[str], rest: str) -> Device:
    memory, power, use = _MEMORY.search(rest), _POWER.search(rest), _USE.search(rest)
    before_memory = rest[: memory.start()] if memory else rest
    ecc, bus, mig = row["ecc"], row["bus"], _MIG.search(rest)
    return Device(
        nvml_index=int(row["index"]),
        name=None if row["name"] == "ERR!" else row["name"].strip(),
        error=_error(row[0] + " " + rest),
        pci_address=nvidia_smi_xml.pci_address(bus if bus.count(":") == 2 else f"0000:{bus}") if bus else None,
        memory_used_bytes=int(memory[1]) * nvidia_smi_xml.MIB if memory else None,
        memory_total_bytes=int(memory[2]) * nvidia_smi_xml.MIB if memory else None,
        power_draw_watts=float(power[1]) if power and power[1] else None,
        power_limit_watts=float(power[2]) if power and power[2] else None,
        performance_state=_number(_STATE.search(before_memory)),
        temperature_celsius=_number(_TEMPERATURE.search(before_memory)),
        utilization_percent=int(use[1]) if use and use[1] else None,
        compute_mode=nvidia_smi_xml.COMPUTE_MODES.get(use[2].lower(), "exclusive-process") if use else None,
        ecc_uncorrected_volatile=int(ecc) if ecc and ecc.isdigit() else None,
        persistence_enabled={"on": True, "off": False}.get(row["mode"].lower()),
        mig_enabled=mig[1] == "Enabled" if mig else None,
    )


def _number(match: re.Match[str] | None) -> int | None:
    return int(match[1]) if match else None


def _error(row: str) -> str:
    """Return why the device does not answer: "ERR!" if several of its values could not be read."""
    lost = next((words for words in nvidia_smi_xml.UNREACHABLE if words in row), "")
    return lost or ("ERR!" if len(_UNREADABLE.findall(row)) > SINGLE_READING else "")


def _completed(part: str, devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """Return the devices, completed from the tables of MIG devices and processes."""
    processes = _processes(part)
    # An empty process table says so; one with rows may be cut off before the rows of another device.
    others = () if processes == {} else None
    listed = part.partition("MIG devices:")[2]
    none = "No MIG devices found" in listed
    instances = {int(match[1]) for match in _MIG_TABLE.finditer(listed[:20_000])}
    result = []
    for device in devices:
        mig = True if device.nvml_index in instances else device.mig_enabled
        uuids = () if mig is False or (mig and none) else None
        held = (processes or {}).get(device.nvml_index, others)
        result.append(replace(device, mig_enabled=mig, mig_uuids=uuids, processes=held))
    return tuple(result)


def _processes(part: str) -> dict[int, tuple[DeviceProcess, ...]] | None:
    """Return the processes by device; {} if the table says that there are none, None without a table."""
    _, found, listed = part.partition("Processes:")
    by_device: dict[int, tuple[DeviceProcess, ...]] = {}
    for match in _PROCESS.finditer(listed[:50_000]):
        used = int(match[4]) * nvidia_smi_xml.MIB if match[4] else None
        process = DeviceProcess(pid=int(match[2]), name=match[3].strip(), used_bytes=used)
        by_device[int(match[1])] = (*by_device.get(int(match[1]), ()), process)[: nvidia_smi_xml.MAXIMUM_PROCESSES]
    return by_device or ({} if found and "No running" in listed[:2000] else None)


def _driver(found: re.Match[str] | None, text: Text) -> Driver:
    """Return the driver. In a text that contains an NVML failure, NVML is not assumed to work."""
    version = found["driver"] if found else None
    cuda = found["cuda"] if found and found["cuda"] and found["cuda"][0].isdigit() else None
    return Driver(
        installed=True,
        version=DriverVersion.parse(version) if version else None,
        cuda_version=CudaVersion.parse(cuda) if cuda else None,
        nvml_code=None if _FAILED.search(text.lowered) else 0,
    )


def _system(table: _Table) -> System | None:
    """Return the operating system: only Windows has driver models, and only on WSL do the versions of nvidia-smi and
    the driver differ."""
    header = table.header
    if re.search(r"Driver-Model|TCC/WDDM| (?:WDDM|TCC|MCDM) [0-9A-F]{4,8}:", table.text):
        return System(os="windows")
    if header and header["driver"] and header["smi"] not in (header["driver"], "N/A"):
        return System(os="linux", wsl=2) if _of_one_branch(header["smi"], header["driver"]) else None
    return System(os="linux") if "Persistence-M" in table.text else None


def _of_one_branch(smi: str, driver: str) -> bool:
    """Return whether these are the Windows and Linux names of one release, such as "537.13" and "535.104.05"."""
    (branch, *rest), own = driver.split("."), smi.partition(".")[0]
    return len(rest) == 1 and 0 <= int(branch) - int(own) <= FURTHEST_BRANCH
