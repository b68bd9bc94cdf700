"""Turn pasted texts into a snapshot of the machine that they describe."""

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

from gpudoctor.errors import UsageError
from gpudoctor.model import SECTIONS, Contradiction, PackageVersion, ProbeReport, Snapshot, Symptom
from gpudoctor.readers.facts import Facts, joined, same_product
from gpudoctor.readers.solved import own_present
from gpudoctor.readers.text import LARGEST_BYTES, Text, read_text
from gpudoctor.readers.vocabulary import known_words
from gpudoctor.snapshots.saved import read_snapshot
from gpudoctor.symptoms.facts import with_symptoms

CUT, CUT_SAYS = "text-cut", "gpudoctor did not read the whole text"
"""The symptom of a text that is too long, or has a line that is: what was not read may contain a failure."""


class Reader(NamedTuple):
    """A kind of text.

    name: what its texts are called. module, function: the reader, imported on first use. signs: lower-case words, one
    of which is in each such text; () for any text.
    """

    name: str
    module: str
    signs: tuple[str, ...] = ()
    function: str = "read"

    def read(self, text: Text) -> Facts:
        """Return the facts in the texts of this kind in `text`."""
        if self.signs and not any(sign in text.lowered for sign in self.signs):
            return {}
        facts: Facts = getattr(import_module(f"gpudoctor.readers.{self.module}"), self.function)(text)
        return facts


_OF_QUERY = (
    *("nvsmi log", "attached gpus", "clocks throttle reasons", "clocks event reasons", "fabric state", "ecc errors"),
    *("retired pages", "remapped rows", "fb memory usage", "gpu reset status"),
)
_OF_LISTS = (
    "nvidia-smi -l",
    "--list-gpus",
    *("(uuid:", "cpu affinity", "--query-gpu", "driver_version", "compute_cap", "uuid,", ", uuid", "pstate"),
    *("pci.bus_id", "memory.", ".gpu"),
)
_OF_TABLES = (*("sys.platform", "cuda_home", "built with", "yolo", "ultralytics", "gpu count", "available:", "jaxlib"),)
_OF_ENGINES = (
    *("docker", "container", "nvidia-ctk", "cdi", "runtimes", "services:", "log-driver", "data-root"),
    "cli-version",
)
_OF_CONTAINERS = (
    *("docker", "container", "pod", "kubernetes", "k8s", "k3s", "k0s", "minikube", "openshift"),
    *("runtimeclassname", "runargs", "hostrequirements", "exited with code", "容器", "コンテナ"),
)
# Most reliable first: if two readers find the same fact, the earlier one wins.
READERS = (
    Reader("messages", "messages"),
    Reader("cupy.show_config()", "cupy_config", ("cupy", "cuda", "cufft", "curand", "cusolver", "cusparse", "nvrtc")),
    Reader("collect_env", "collect_env", ("pytorch", "cuda", "nvidia driver version", "[pip")),
    Reader("nvidia-smi -q -x", "nvidia_smi_query", ("<nvidia_smi_log",), "read_xml"),
    Reader("nvidia-smi -q", "nvidia_smi_query", _OF_QUERY),
    Reader("nvidia-smi", "nvidia_smi_table", ("nvidia-smi", "bus-id", "mib /", "no devices were found")),
    Reader("nvidia-smi -L", "nvidia_smi_list", _OF_LISTS),
    Reader("gpustat", "nvidia_smi_list", (" mb",), "read_gpustat"),
    Reader("kernel log", "kernel_log", ("nvrm", "xid", "nvidia")),
    Reader("ds_report", "ds_report", ("torch version .", "deepspeed info .")),
    Reader("accelerate env", "environment_lists", ("accelerate",), "read_accelerate"),
    Reader("transformers env", "environment_lists", ("version",), "read_transformers"),
    Reader("environment table", "environment_tables", _OF_TABLES),
    Reader("nvcc", "system_commands", ("nvcc", "cuda compilation tools", "build cuda_"), "read_nvcc"),
    Reader("conda info", "conda", ("platform",), "read_info"),
    Reader("conda", "conda"),
    Reader("pip", "pip_packages"),
    Reader("docker", "docker_info", _OF_ENGINES),
    Reader("commands", "shell"),
    Reader("paths", "interpreter", ("python", "-packages", "venv", "portable")),
    Reader("words", "prose"),
    Reader("words on containers", "container_words", _OF_CONTAINERS),
)

_TEXT = "text"  # the section of a report on a whole text
_NOTHING = (b"", b"{}", b"[]", b"null", b'""')

# Facts that have only one value on one machine at one time.
_SINGLE = {
    "system": ("os", "machine", "distribution", "distribution_version"),
    "driver": ("version", "cuda_version"),
    "python": ("version",),
    "torch": ("version", "build", "cuda_version"),
    "cupy": ("version",),
    "toolkit": ("nvcc_version",),
}


class Reading(NamedTuple):
    """What one reader found in one text, and its source: "nvidia-smi in report.txt"."""

    source: str
    facts: Facts


def read_files(names: Sequence[str]) -> Snapshot:
    """Return the facts in the files named; "-" is standard input.

    Raises:
        UsageError: a file cannot be read, or is not text.
    """
    return read_texts([(_label(name), _bytes(name)) for name in names])


def read_texts(texts: Iterable[tuple[str, bytes]]) -> Snapshot:
    """Return the facts in the texts, each a name and its content. Raises UsageError: as for `read_files`."""
    texts = list(texts)
    alone = read_snapshot(texts[0][1], texts[0][0]) if len(texts) == 1 else None
    if alone is not None:
        return alone
    found = [(name, list(_readings(name, data))) for name, data in texts]
    readings = [reading for _, read in found for reading in read]
    snapshot = assemble(readings)
    reports = (
        ProbeReport(section=_TEXT, state="absent", source=name, detail=_why_unread(data))
        for (name, data), (_, read) in zip(texts, found, strict=True)
        if not read
    )
    return replace(snapshot, reports=(*snapshot.reports, *reports))


def unread_texts(snapshot: Snapshot) -> tuple[str, ...]:
    """Return a line for each text in which no reader found anything: its name, and the reason."""
    return tuple(f"{report.source}: {report.detail}" for report in snapshot.reports if report.section == _TEXT)


def _why_unread(data: bytes) -> str:
    text = data.strip()
    return f"the {'JSON' if text else 'text'} is empty" if text in _NOTHING else "not recognised as a GPU report"


def assemble(readings: Sequence[Reading]) -> Snapshot:
    """Merge readings into a snapshot: the most reliable reader first, then the last text first."""
    order = {reader.name: number for number, reader in enumerate(READERS)}
    spoken = [reading for reading in readings if reading.source.startswith(READERS[0].name)]  # they keep their order
    others = [reading for reading in reversed(readings) if reading not in spoken]
    ranked = sorted((*spoken, *others), key=lambda reading: order.get(reading.source.rpartition(" in ")[0], -1))
    gathered: Facts = {}
    contradictions = list(_other_machines(ranked))
    reports: list[ProbeReport] = []
    for reading in ranked:
        contradictions += _contradictions(gathered, reading, reports)
        reports += _reports(gathered, reading)
        gathered = joined(gathered, reading.facts)
    words = sorted({word for reading in readings for word in reading.facts.get("words", ())})
    facts = {"symptoms": (), "contradictions": tuple(contradictions), **gathered, "words": tuple(words) or None}
    missing = [ProbeReport(section=s, state="not-run", detail="not in the report") for s in SECTIONS if s not in facts]
    return with_symptoms(Snapshot(reports=(*reports, *missing), **facts))


def _other_machines(ranked: Sequence[Reading]) -> Iterator[Contradiction]:
    """Yield GPUs that one text names and another does not: the texts describe several machines."""
    shown: dict[str, str] = {}
    for reading in ranked:
        system, text = reading.facts.get("system"), reading.source.rpartition(" in ")[2]
        gpus = reading.facts.get("devices") or (system.nvidia_gpus if system is not None else None) or ()
        if len({gpu.name for gpu in gpus if gpu.name}) == 1:
            shown.setdefault(text, next(gpu.name for gpu in gpus if gpu.name))
    first = next(iter(shown), "")
    for text, name in shown.items():
        if not same_product(shown[first], name):
            yield Contradiction(fact="devices", taken=f"{shown[first]} ({first})", other=f"{name} ({text})")


def _readings(name: str, data: bytes) -> Iterator[Reading]:
    """Yield what each reader finds in one text. In a saved snapshot nothing else is searched."""
    saved = read_snapshot(data, name)
    if saved is not None:
        facts = {section: getattr(saved, section) for section in (*SECTIONS, "taken_at")}
        yield Reading(f"snapshot in {name}", {name: value for name, value in facts.items() if value is not None})
        return
    whole = read_text(data, name)
    text = own_present(whole)
    read = [(reader.name, reader.read(text)) for reader in READERS]
    known = [(what, {section: v for section, v in facts.items() if _is_known(section, v)}) for what, facts in read]
    found = [(what, facts) for what, facts in known if facts]
    if found:  # words alone are of any text
        found.append(("vocabulary", {"words": known_words(text.lowered)}))
    if whole.is_cut:
        found.append(("text", {"symptoms": (Symptom(kind=CUT, text=CUT_SAYS, source=name),)}))
    yield from (Reading(f"{what} in {name}", facts) for what, facts in found)


def _is_known(section: str, value: Any) -> bool:
    """Return whether the section has a known fact. An empty list of devices is one."""
    return value is not None and (value != () or section == "devices")


def _reports(gathered: Mapping[str, Any], reading: Reading) -> Iterator[ProbeReport]:
    """Yield the facts of each section that are from this reading."""
    for section, value in reading.facts.items():
        if section in SECTIONS:
            given = tuple(_given(gathered.get(section), value))
            if given or section not in gathered:
                yield ProbeReport(section=section, state="ok", source=reading.source, facts=given)


def _given(before: Any, value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        if before is None:
            return
        value, before = (items[0] if items else None for items in (value, before))
    if not dataclasses.is_dataclass(value):
        return
    for field in dataclasses.fields(value):
        if getattr(value, field.name) not in (None, "") and getattr(before, field.name, None) in (None, ""):
            yield field.name


def _contradictions(
    gathered: Mapping[str, Any], reading: Reading, reports: Sequence[ProbeReport]
) -> Iterator[Contradiction]:
    """Yield the facts whose value in this reading contradicts an earlier reading."""
    for section, fields in _SINGLE.items():
        mine, other = gathered.get(section), reading.facts.get(section)
        for field in fields:
            taken, passed = getattr(mine, field, None), getattr(other, field, None)
            if taken is not None and passed is not None and not _agree(taken, passed):
                where = next((r.source for r in reports if r.section == section and field in r.facts), "the report")
                yield Contradiction(
                    fact=f"{section}.{field}", taken=f"{taken} ({where})", other=f"{passed} ({reading.source})"
                )
    named = {device.nvml_index: device.name for device in reading.facts.get("devices") or ()}
    for device in gathered.get("devices") or ():
        name = named.get(device.nvml_index)
        if not same_product(device.name, name):
            where = f"devices[{device.nvml_index}].name"
            yield Contradiction(fact=where, taken=str(device.name), other=f"{name} ({reading.source})")


def _agree(taken: Any, passed: Any) -> bool:
    """Return whether one value is a shorter form of the other: "2.13.0" and "2.13.0+cu130", not "2.1" and "2.13"."""
    one, other = PackageVersion(str(taken)), PackageVersion(str(passed))
    if one.release and other.release:
        return one.agrees_with(other)
    return one.text.startswith(other.text) or other.text.startswith(one.text)


def _label(name: str) -> str:
    """Return what the evidence calls the file: its name without the folder, except for devices (/dev/fd/63)."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "standard input" if name == "-" else name if name.startswith("/dev/") else last


def _bytes(name: str) -> bytes:
    try:
        if name == "-":
            if sys.stdin is None:
                raise UsageError("-: standard input is closed")
            return sys.stdin.buffer.read(LARGEST_BYTES + 1)
        with open(name, "rb") as file:
            return file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}") from None
