"""Values in environment reports: versions, answers, GPU names. Implausible values are unknown."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpudoctor.data.gpu_names import capability_of
from gpudoctor.model import Device, Driver, Python, System, Toolkit, Torch, TorchRuntime
from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion, PackageVersion
from gpudoctor.readers.facts import Facts, joined, sections
from gpudoctor.readers.text import Text, regex

MOST_DEVICES = 64
LONGEST_NAME = 100

_UNKNOWN = regex(
    r"(?:could not collect|n/?a|no cuda|none|null|unknown|not (?:available|found|installed|set)|-|\?|<[^<>]*>)\.?"
)
_TRUE = ("true", "yes", "是")
_FALSE = ("false", "no", "否")
_TORCH = regex(r"v?(\d{1,2}\.\d{1,3}(?:\.\d{1,3})?(?:(?:a|b|rc|\.dev|\.post)\d{1,10}){0,2}(?:\+[A-Za-z0-9._-]{1,60})?)")
# Versions whose end may be cut off: "2.0.1+cu1", "1.1".
_CUT_TORCH = regex(r"\d+\.\d+|.*\+(?:c|cp|cu\d{0,2}|r|ro|roc|rocm[\d.]?|x|xp)|.*\+")
_CUDA = regex(r"[vV]?(\d{1,2}\.\d{1,2})(?![\d])")
_DRIVER = regex(r"(\d{3}\.\d{2,3}(?:\.\d{1,3})?)(?![\d.]*\d)")
_PYTHON = regex(r"v?(\d\.\d{1,2}(?:\.\d{1,2})?(?:(?:a|b|rc)\d{1,2})?\+?)(?![\d.])")
_CONDA_PYTHON = regex(r"(?i)packaged by (?:conda-forge|Anaconda)|\|\s?(?:Anaconda|Continuum)")
_OTHER_VENDOR = regex(
    r"(?i)\b(?:amd|radeon|instinct|gfx\d+|intel|arc|iris|uhd|apple|m[1-5]|ascend|adreno|moore threads)\b"
)
_NUMBERED = regex(r"(?i)\s*(?:\[?GPU|CUDA)\s?:?\s?(\d{1,3}(?:\s?,\s?\d{1,3}){0,63})\]?\s*[:=]\s*(.*)")
_MIG = regex(r"\s*MIG \dg\.\d+gb\S*\s+Device\s+\d+:?")


def is_unknown(value: str) -> bool:
    """Return whether `value` means "unknown" in a report."""
    return not value.strip() or _UNKNOWN.fullmatch(value.strip().lower()) is not None


def answer(value: str) -> bool | None:
    """Return the truth value of "True", "Yes", "No: ...", None for anything else."""
    word = re.match(r"\w+", value.strip().lower())
    if word is None:
        return None
    return True if word[0] in _TRUE else False if word[0] in _FALSE else None


def torch_version(value: str, *, may_be_cut: bool = False) -> PackageVersion | None:
    """Return PyTorch's version at the start of `value`.

    may_be_cut: the text ends with `value`, so that a version which may be incomplete is unknown.
    """
    match = _TORCH.match(value.strip())
    if match is None or (value.strip()[match.end() : match.end() + 1].isalnum()):
        return None
    version = match[1]
    if may_be_cut and match.end() == len(value.strip()) and _CUT_TORCH.fullmatch(version):
        return None
    return PackageVersion(version.rstrip("."))


def cuda_version(value: str) -> CudaVersion | None:
    """Return the CUDA version at the start of `value`; None for a major version alone: the rest may be cut off."""
    match = _CUDA.match(value.strip())
    version = CudaVersion.parse(match[1]) if match else None
    return version if version is not None and 6 <= version.major < 30 else None


def nvcc_version(value: str) -> CudaVersion | None:
    """Return the CUDA version in "11.6.124", "release 11.3, V11.3.109" or "Build cuda_11.3.r11.3"."""
    named = re.search(r"(?:release |cuda_|\bV)(\d{1,2}\.\d{1,2})", value)
    return cuda_version(named[1] if named else value)


def driver_version(value: str) -> DriverVersion | None:
    """Return the driver version at the start of `value`; one with fewer than five digits may be cut off."""
    match = _DRIVER.match(value.strip())
    return DriverVersion.parse(match[1]) if match else None


def python_facts(value: str) -> Python | None:
    """Return the interpreter's facts in "3.9.0 | packaged by conda-forge | (default, ...)"."""
    match = _PYTHON.match(value.strip())
    if match is None or int(match[1][0]) not in (2, 3):
        return None
    conda = _CONDA_PYTHON.search(value) is not None
    return Python(
        version=PackageVersion(match[1].rstrip("+")),
        environment="conda" if conda else None,
        platform_tag="win32" if "32-bit runtime" in value else None,
        free_threaded=True if "free-threading" in value else None,
    )


def release_of(python: Python | None) -> tuple[int, ...]:
    """Return the numbers of the interpreter's version; () if it is unknown."""
    return python.version.release if python is not None and python.version is not None else ()


def gcc_version(value: str) -> tuple[int, ...] | None:
    """Return the version in "(Ubuntu 9.4.0-1ubuntu1) 9.4.0" or "gcc (GCC) 4.8.5", None for another compiler."""
    if "mingw" in value.lower() or "clang" in value.lower():
        return None
    match = re.search(r"(?:\)\s*|^\s*(?:gcc\s+)?)(\d{1,2}(?:\.\d{1,2}){1,2})(?![\d.])", value[:300])
    return tuple(int(part) for part in match[1].split(".")) if match else None


def gpu_name(value: str) -> str | None:
    """Return the name of an NVIDIA GPU without surrounding text; None for another vendor's GPU or no GPU."""
    name = re.sub(r"\s*\((?:UUID|arch)\b.*|,\s*[\d.]+ ?(?:MiB|MB|GB|GiB)\b.*", "", value.strip(), flags=re.IGNORECASE)
    name = " ".join(name.split()).strip("'\"`*.,; ")[:LONGEST_NAME]
    other = _OTHER_VENDOR.search(name) and not re.search(r"nvidia|geforce|quadro|tesla", name, re.IGNORECASE)
    if is_unknown(name) or other or not re.search(r"[A-Za-z]", name):
        return None
    return name


def numbered_gpus(lines: Iterable[str]) -> tuple[Device, ...]:
    """Return the GPUs in "GPU 0: NAME", "GPU 0,1: NAME (arch=7.5)", each number once; a MIG line belongs to its GPU."""
    found: dict[int, Device] = {}
    last: int | None = None
    for line in lines:
        match = _NUMBERED.match(line)
        if match is None:
            if last is not None and _MIG.match(line):
                found[last] = replace(found[last], mig_enabled=True)
            continue
        name = gpu_name(match[2])
        for number in match[1].split(","):
            last = int(number)
            if name is None or len(found) >= MOST_DEVICES:
                last = None
                break
            shown = re.search(r"\(arch=(\d{1,2}\.\d)\)", match[2])
            capability = ComputeCapability.parse(shown[1]) if shown else None
            found[last] = Device(nvml_index=last, name=name, compute_capability=capability)
    return tuple(found[number] for number in sorted(found))


def named_gpus(names: Sequence[str]) -> tuple[Device, ...]:
    """Return the GPUs for names without numbers: "2x RTX 3090" is two. Names in no table must contain NVIDIA."""
    devices: list[Device] = []
    for text in names:
        count = re.match(r"\s*(\d{1,2})\s?[xX*\u00d7]\s?", text)
        name = gpu_name(text[count.end() :] if count else text)
        if name is None or not (capability_of(name) or re.match(r"nvidia|geforce|tesla|quadro", name, re.IGNORECASE)):
            continue
        for _ in range(min(int(count[1]) if count else 1, MOST_DEVICES - len(devices))):
            devices.append(Device(nvml_index=len(devices), name=name))
    return tuple(devices)


def environment_facts(
    fields: Mapping[str, str | None], *, system: System | None = None, devices: tuple[Device, ...] = ()
) -> Facts:
    """Return the sections that an environment report fills.

    fields: values of "torch", of its build's "cuda" and "hip", of "available" (CUDA), and of "python", "driver",
    "nvcc" and "gcc".
    """
    said = defaultdict(str, {name: value for name, value in fields.items() if value})
    driver = driver_version(said["driver"]) if system is None or system.os != "darwin" else None
    gcc = gcc_version(said["gcc"]) if system is None or system.os in (None, "linux") else None
    compiler = "gcc" if gcc else None
    toolkit = Toolkit(nvcc_version=nvcc_version(said["nvcc"]), host_compiler=compiler, host_compiler_version=gcc)
    machine = sections(
        python=python_facts(said["python"]),
        system=system,
        driver=Driver(version=driver) if driver is not None else None,
        devices=devices,
        toolkit=toolkit if toolkit != Toolkit() else None,
    )
    torch = torch_facts(torch_version(said["torch"]), fields.get("cuda"), answer(said["available"]), said["hip"])
    return joined(torch, machine)


def torch_facts(version: PackageVersion | None, cuda: str | None, available: bool | None, hip: str = "") -> Facts:
    """Return PyTorch's sections from its version, its CUDA or HIP version, and whether it can use CUDA.

    None means unknown. CUDA "none" means a build without CUDA only if the version is known.
    """
    facts: Facts = {}
    rocm = re.match(r"\d+\.\d[\w.+-]{0,30}", hip)
    built_with = cuda_version(cuda or "") if not rocm else None
    local = version.local if version is not None else ""
    without = (cuda or "").strip().lower() in ("none", "null", "could not collect") and not local.startswith("cu")
    if version is not None or built_with is not None:
        named = next((name for name in ("rocm", "xpu", "cpu") if local.startswith(name)), "cpu" if without else None)
        facts["torch"] = Torch(
            installed=True,
            version=version,
            build="rocm" if rocm else "cuda" if built_with else named,
            cuda_version=built_with,
            hip_version=rocm[0] if rocm else None,
        )
    if available is not None:
        facts["torch_runtime"] = TorchRuntime(available=available)
    return facts


def repeated(devices: tuple[Device, ...], count: str) -> tuple[Device, ...]:
    """Return a single device as many times as the report counts."""
    if len(devices) != 1 or not re.fullmatch(r"\d{1,3}", count):
        return devices
    return tuple(replace(devices[0], nvml_index=number) for number in range(min(int(count), MOST_DEVICES)))


def whole_lines(text: Text) -> tuple[str, ...]:
    """Return the lines without a last one that may cut off PyTorch's version: "torch version: 1.1"."""
    *lines, last = text.lines
    value = (last.split() or [""])[-1]
    unsure = "torch" in last.lower() and "cuda version" not in last.lower() and _CUT_TORCH.fullmatch(value)
    return tuple(lines) if unsure else text.lines
