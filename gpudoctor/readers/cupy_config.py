"""Output of cupy.show_config() in CuPy 5 and newer: CUDA versions of the build, the runtime and the driver."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gpudoctor.model import ComputeCapability, CudaVersion, Cupy, CupyRuntime, LibraryCall, PackageVersion, Python
from gpudoctor.model.machine import Device, Driver
from gpudoctor.parsers.nvidia_smi_xml import pci_address
from gpudoctor.readers.facts import Facts, sections
from gpudoctor.readers.platform_facts import platform_facts
from gpudoctor.readers.text import Text, name_table, regex

MOST_LINES = 20_000
MOST_DEVICES = 128
LONGEST_ERROR = 400

# Keys of the table; those that other programs also print do not identify CuPy's table.
_OWN_KEYS, _OTHER_KEYS = name_table("cupy_own_keys"), name_table("cupy_other_keys")
_LIBRARIES = ("cublas", "cufft", "curand", "cusolver", "cusparse", "nvrtc")
_DEVICE_KEY = regex(r"device (\d{1,3}) (name|compute capability|pci bus id)")
_ERROR = regex(r"\w{0,60}(?:Error|Exception)\(")
_LARGEST_CUDA = 40_000  # 1000 * major: ROCm encodes its versions differently, for example 313700

Table = Mapping[str, str]


def read(text: Text) -> Facts:
    """Return the facts of the last complete table in `text`."""
    table = _table(text.lines) or _table(_split(text.flat))
    if not table:
        return {}
    # CuPy 9 and newer name the platform; before that only the folder shows it.
    rocm = any("rocm" in table.get(key, "").lower() for key in ("cupy platform", "cuda root", "rocm root"))
    python, cupy = _version(table, "python"), _version(table, "cupy")
    numbers = {} if rocm else {name: _cuda(table.get(f"cuda {name} version", "")) for name in ("build", "driver")}
    built_with, driver = numbers.get("build"), numbers.get("driver")
    system = platform_facts(table.get("os", ""), python.release if python else ())
    return sections(
        system=replace(system, wsl=system.wsl or 0) if system is not None and system.os == "linux" else system,
        python=Python(version=python) if python else None,
        cupy=Cupy(
            version=cupy,
            platform="rocm" if rocm else "cuda",
            cuda_major=built_with.major if built_with else None,
            numpy_version=_version(table, "numpy"),
        )
        if cupy
        else None,
        cupy_runtime=_runtime(table, cupy, rocm),
        devices=() if rocm else tuple(_devices(table)),
        driver=Driver(cuda_version=driver) if driver else None,
    )


def _table(lines: Iterable[str]) -> Table:
    """Return the last complete table, key in lower case → value; {} without a table."""
    tables: list[dict[str, str]] = [{}]
    for _, line in zip(range(MOST_LINES), lines, strict=False):
        key, colon, value = line.partition(":")
        key = " ".join(key.lower().split())
        if not colon or not (key in _OWN_KEYS or key in _OTHER_KEYS or _DEVICE_KEY.fullmatch(key)):
            continue
        if key in tables[-1]:
            tables.append({})
        tables[-1].setdefault(key, value.strip())
    whole = [
        table for table in tables if sum(key in _OWN_KEYS for key in table) >= 2
    ]  # a single key may be a coincidence
    longest = max(map(len, whole), default=0)
    return next((table for table in reversed(whole) if 2 * len(table) >= longest), {})


def _split(flat: str) -> list[str]:
    names = sorted((*_OWN_KEYS, *_OTHER_KEYS, r"device \d{1,3} (?:name|compute capability|pci bus id)"), key=len)
    keys = "|".join(reversed(names))
    return re.sub(rf"(?i)(?<![\w(])({keys}) ?: ", r"\n\1: ", flat).split("\n")


def _runtime(table: Table, version: PackageVersion | None, rocm: bool) -> CupyRuntime:
    # A table proves that CuPy could be imported.
    runtime = CupyRuntime(import_error="", version=version)
    if rocm:
        return runtime
    nvrtc = re.match(r"\((\d{1,2}), (\d{1,2})\)", table.get("nvrtc version", ""))
    own, _, local = table.get("cuda runtime version", "").partition(" / ")
    return replace(
        runtime,
        build_cuda_version=_cuda(table.get("cuda build version", "")),
        runtime_cuda_version=_cuda(own),
        driver_cuda_version=_cuda(table.get("cuda driver version", "")),
        local_cuda_version=_cuda(local),
        nvrtc_version=CudaVersion(int(nvrtc[1]), int(nvrtc[2])) if nvrtc else None,
        device_count=sum(key.endswith(" name") for key in table if _DEVICE_KEY.fullmatch(key)) or None,
        device_error=_device_error(table),
        calls=tuple(_calls(table)) or None,
        warnings=tuple(_unused(table)) or None,
    )


def _calls(table: Table) -> Iterator[LibraryCall]:
    """Yield the libraries, with the load error if there is one.

    An error of a runtime other than CuPy's own copy matters only if others fail too: a CuPy that takes CUDA from
    wheels needs no other. cuDNN, NCCL and cuTENSOR are optional.
    """
    values = ((library, table.get(f"{library} version", "cudaError")) for library in _LIBRARIES)
    found = [_call(library, value) for library, value in values if "cudaError" not in value]
    yield from found
    _, _, local = table.get("cuda runtime version", "").partition(" / ")
    if any(call.error for call in found) and _ERROR.match(local):
        yield _call("cudart", local)


def _unused(table: Table) -> Iterator[str]:
    for key, value in table.items():
        if key.startswith(("cudnn", "nccl", "cutensor", "cusparselt", "cuda runtime")) and _ERROR.search(value):
            yield f"{key}: {value[:LONGEST_ERROR]}"


def _call(library: str, value: str) -> LibraryCall:
    if _ERROR.match(value):
        return LibraryCall(library=library, error=" ".join(value.replace("\\n", " ").split())[:LONGEST_ERROR])
    return LibraryCall(library=library)


def _device_error(table: Table) -> str | None:
    """Return the CUDA error that replaces a version, "" if a device is listed."""
    for key, value in table.items():
        if "cudaError" in value and not key.startswith(("cudnn", "nccl", "cutensor")):
            return value[:LONGEST_ERROR]
    return "" if any(_DEVICE_KEY.fullmatch(key) for key in table) else None


def _devices(table: Table) -> Iterator[Device]:
    fields: dict[int, dict[str, str]] = {}
    for key, value in table.items():
        match = _DEVICE_KEY.fullmatch(key)
        if match is not None and len(fields) < MOST_DEVICES:
            fields.setdefault(int(match[1]), {})[match[2]] = value
    for index, values in sorted(fields.items()):
        digits = re.fullmatch(r"(\d{1,2})\.?(\d)", values.get("compute capability", ""))
        address = None
        with contextlib.suppress(ValueError):
            address = pci_address(values.get("pci bus id", ""))
        yield Device(
            nvml_index=index,
            name=values.get("name", "")[:100] or None,
            compute_capability=ComputeCapability(int(digits[1]), int(digits[2])) if digits else None,
            pci_address=address,
        )


def _cuda(value: str) -> CudaVersion | None:
    """Return the version in "12040" or "12040 (linked to CuPy) / 12050 (locally installed)"; None for 0: no driver."""
    match = re.match(r"(\d{4,6})\b", value)
    number = int(match[1]) if match else 0
    return CudaVersion.from_number(number) if 5000 <= number < _LARGEST_CUDA else None


def _version(table: Table, name: str) -> PackageVersion | None:
    match = re.match(r"\d{1,4}(?:\.\w{1,20}){1,4}(?:\+[\w.]{1,40})?", table.get(f"{name} version", ""))
    return PackageVersion(match[0]) if match else None
