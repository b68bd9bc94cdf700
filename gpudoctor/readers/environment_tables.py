"""Tables of the environment that frameworks print: OpenMMLab's, Detectron2's, Ultralytics', Lightning's and JAX's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpudoctor.model import Driver, Package, System, Toolkit, Torch, TorchRuntime
from gpudoctor.readers.environment_fields import (
    answer,
    cuda_version,
    driver_version,
    gcc_version,
    gpu_name,
    is_unknown,
    named_gpus,
    numbered_gpus,
    nvcc_version,
    python_facts,
    torch_facts,
    torch_version,
    whole_lines,
)
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.package_facts import VERSION, bears_on_gpus, package, package_facts
from gpudoctor.readers.platform_facts import platform_facts
from gpudoctor.readers.text import Text

SOURCE = "environment table"
MOST_LINES = 300  # of one table

# Source: mmcv/utils/env.py, mmengine/utils/dl_utils/collect_env.py, detectron2/utils/collect_env.py.
_TABLE_FIELDS = (
    r"sys\.platform|Python|CUDA available|MUSA available|GPU available|GPU \d{1,3}(?:,\d{1,3}){0,63}|CUDA_HOME|NVCC"
    r"|CUDA compiler|GCC|MSVC|PyTorch|PyTorch debug build|torch\._C\._GLIBCXX_USE_CXX11_ABI|TorchVision|torchvision"
    r"|Driver version|MMCV|MMDetection|MMEngine|numpy|detectron2"
)
_ROW = re.compile(rf"^\W{{0,12}}?({_TABLE_FIELDS})(?:\s*:\s*|\s{{2,60}})(\S.*)$", re.IGNORECASE)
_CONFIG = re.compile(r"^\s*- (CUDA Runtime|NVCC architecture flags:|CuDNN) ?(\S.*)$")
_BUILT = re.compile(r"\bcode=((?:sm|compute)_\d{2,3}[af]?)")
_OS = {"linux": "linux", "win32": "windows", "darwin": "darwin"}

# "Ultralytics YOLOv8.0.45 Python-3.9.16 torch-1.13.1+cu116 CUDA:0 (NAME, 6144MiB)". Source: select_device of its
# torch_utils.py; YOLOv5's begins with "YOLOv5", and further devices follow on lines of their own.
_BANNER = re.compile(
    rf"(?:Ultralytics|YOLOv\d|YOLOR)[^\n]{{0,60}}?(?:Python-(\d\.\d{{1,2}}(?:\.\d{{1,2}})?) )?torch[- ]({VERSION})"
    r"(?: (CUDA:\d|CPU|MPS))?((?:[ ]?(?:CUDA:\d{1,2} )?\([^()]{1,80}\)){0,16})"
)
_BANNER_DEVICE = re.compile(r"CUDA:(\d{1,2}) \(([^(),]{3,80}), ?(\d{1,7}(?:\.\d{1,6})?) ?(MiB|MB|GB)\)")
_CHECKS = re.compile(r"^\s*(OS|Environment|Python|Install|GPU|GPU count|CUDA)\s{3,30}(\S.*)$")
_CHECKED = re.compile(rf"^\s*([A-Za-z][\w.-]{{1,60}})\s+[✅❌]\s?\S?\s?({VERSION})")

_LIGHTNING_ITEM = re.compile(r"^\s*[-*•]\s+([\w.-]{1,60}):\s*(.*)$")
_JAX = re.compile(rf"^\W{{0,6}}(jax|jaxlib|numpy):\s+({VERSION})$")
_JAX_DEVICE = re.compile(r"^\W{0,6}device info:\s*(.{3,100}?)-(\d{1,3}), \d{1,3} local devices")


def read(text: Text) -> Facts:
    """Return what such tables in the text tell."""
    facts: Facts = {}
    for reader in (_framework_table, _ultralytics, _lightning, _jax):
        facts = joined(facts, reader(text))
    return facts


def _framework_table(text: Text) -> Facts:
    """Return the facts of OpenMMLab's and Detectron2's tables."""
    if "sys.platform" not in text.lowered and "cuda_home" not in text.lowered and "built with" not in text.lowered:
        return {}
    fields: dict[str, str] = {}
    gpus: list[str] = []
    for line in _table_lines(text):
        match = _ROW.match(line)
        if match and match[1].lower().startswith("gpu ") and match[1][-1].isdigit():
            gpus.append(f"{match[1]}: {match[2]}")
        elif match:
            fields[match[1].lower()] = match[2].strip()
    if len(fields.keys() - {"python", "numpy", "gcc", "torchvision"}) < 2:
        return _config(text)
    facts = _torch(fields)
    facts = joined(facts, {"system": System(os=_OS[fields["sys.platform"]])} if _platform(fields) else {})
    python = python_facts(fields.get("python", ""))
    facts = joined(facts, {"python": python} if python is not None else {})
    driver = driver_version(fields.get("driver version", ""))
    facts = joined(facts, {"driver": Driver(version=driver)} if driver is not None else {})
    devices = numbered_gpus(gpus)
    facts = joined(facts, {"devices": devices} if devices else {})
    for section in (_toolkit(fields), _config(text), _packages(fields)):
        facts = joined(facts, section)
    return facts


def _table_lines(text: Text) -> Iterator[str]:
    """Yield the lines from the first of the last table on."""
    lines = whole_lines(text)
    starts = [number for number, line in enumerate(lines) if re.match(r"\W{0,12}sys\.platform\b", line)]
    first = starts[-1] if starts else 0
    yield from lines[first : first + MOST_LINES]


def _platform(fields: Mapping[str, str]) -> bool:
    return fields.get("sys.platform", "") in _OS


def _torch(fields: Mapping[str, str]) -> Facts:
    available = answer(fields.get("cuda available", fields.get("gpu available", "")))
    facts = torch_facts(torch_version(fields.get("pytorch", "")), None, available)
    torch: Torch | None = facts.get("torch")
    if torch is not None:
        abi = answer(fields.get("torch._c._glibcxx_use_cxx11_abi", ""))
        facts["torch"] = replace(torch, cxx11_abi=abi)
    return facts


def _toolkit(fields: Mapping[str, str]) -> Facts:
    shown = fields.get("nvcc", "")
    if not shown and "compilation tools" in fields.get("cuda compiler", ""):
        # Where Detectron2 is built, "CUDA compiler" names the CUDA of its build instead.
        shown = fields["cuda compiler"]
    nvcc = nvcc_version(shown) if not is_unknown(shown) else None
    gcc = gcc_version(fields.get("gcc", "")) if fields.get("sys.platform", "linux") == "linux" else None
    if nvcc is None and gcc is None:
        return {}
    return {
        "toolkit": Toolkit(nvcc_version=nvcc, host_compiler="gcc" if gcc else None, host_compiler_version=gcc),
    }


def _config(text: Text) -> Facts:
    """Return what torch.__config__.show() tells of PyTorch's build."""
    lines = [match for line in whole_lines(text) if (match := _CONFIG.match(line))]
    if not lines or "pytorch built with" not in text.lowered:
        return {}
    shown = {match[1]: match[2] for match in lines}
    cuda = cuda_version(shown.get("CUDA Runtime", ""))
    flags = tuple(dict.fromkeys(_BUILT.findall(shown.get("NVCC architecture flags:", ""))))[:64]
    facts: Facts = {}
    if cuda is not None:
        facts["torch"] = Torch(installed=True, build="cuda", cuda_version=cuda, architectures=flags or None)
    cudnn = re.match(r"(\d{1,2})\.(\d)(?:\.(\d{1,2}))?(?!\d)", shown.get("CuDNN", ""))
    if cudnn:
        # cudnnGetVersion() / 1000, its hundreds and the rest. Source: ATen/cuda/detail/CUDAHooks.cpp.
        number = int(cudnn[1]) * 1000 + int(cudnn[2]) * 100 + int(cudnn[3] or 0)
        facts["torch_runtime"] = TorchRuntime(cudnn_version=number)
    return facts


def _packages(fields: Mapping[str, str]) -> Facts:
    names = {"torchvision": "torchvision", "mmcv": "mmcv", "detectron2": "detectron2", "numpy": "numpy"}
    found = [
        package(name, match[0])
        for field, name in names.items()
        if bears_on_gpus(name) and (match := re.match(VERSION, fields.get(field, "")))
    ]
    return package_facts(found)


def _ultralytics(text: Text) -> Facts:
    """Return the facts of Ultralytics' banner and of its table of checks."""
    facts: Facts = {}
    banners = list(_BANNER.finditer(text.flat)) if "torch" in text.lowered and "yolo" in text.lowered else []
    banners = banners or (list(_BANNER.finditer(text.flat)) if "ultralytics" in text.lowered else [])
    if banners:
        facts = _banner(banners[-1], text.flat)
    if "ultralytics" not in text.lowered and "gpu count" not in text.lowered:
        return facts
    rows = [match for line in whole_lines(text) if (match := _CHECKS.match(line))]
    fields = {match[1]: match[2].strip() for match in rows}
    if len(fields) < 3:
        return facts
    return joined(facts, _checks(fields, text))


def _banner(match: re.Match[str], flat: str) -> Facts:
    version = torch_version(match[2], may_be_cut=match.end() >= len(flat))
    facts = torch_facts(version, None, True if (match[3] or "").startswith("CUDA") else None)
    if match[1]:
        facts["python"] = python_facts(match[1])
    devices = named_gpus([found[2] for found in _BANNER_DEVICE.finditer(flat[match.start() : match.end()])])
    return joined(facts, {"devices": devices} if devices else {})


def _checks(fields: Mapping[str, str], text: Text) -> Facts:
    python = python_facts(fields.get("Python", ""))
    found: list[Package] = []
    for line in whole_lines(text):
        match = _CHECKED.match(line)
        if match and bears_on_gpus(match[1]):
            found.append(package(match[1], match[2]))
    torch = next((item.version for item in found if item.name == "torch"), None)
    facts = torch_facts(torch, fields.get("CUDA"), None)
    release = python.version.release if python is not None and python.version is not None else ()
    system = platform_facts(fields.get("OS", ""), release)
    devices = named_gpus([fields.get("GPU", "")])
    count = fields.get("GPU count", "")
    if devices and count.isdigit() and 1 < int(count) <= 64:
        devices = tuple(replace(devices[0], nvml_index=number) for number in range(int(count)))
    given = {"system": system, "python": python, "devices": devices or None}
    facts = joined(facts, {section: value for section, value in given.items() if value is not None})
    if devices and cuda_version(fields.get("CUDA", "")):
        # Its name comes from torch.cuda, and is "None" where that is not available.
        facts = joined(facts, {"torch_runtime": TorchRuntime(available=True)})
    return joined(facts, package_facts(found))


def _lightning(text: Text) -> Facts:
    """Return the facts of Lightning's collect_env_details.py: "* CUDA:", "- GPU:", "- available:", "* Packages:"."""
    if "lightning" not in text.lowered or "available:" not in text.lowered:
        return {}
    sections: dict[str, dict[str, str]] = {}
    section, gpus, in_gpus = "", [], False
    for line in whole_lines(text):
        title = re.match(r"^\s*[*•-]\s+(CUDA|Lightning|Packages|System):\s*$", line)
        item = _LIGHTNING_ITEM.match(line)
        if title:
            section, in_gpus = title[1], False
        elif section and item:
            in_gpus = section == "CUDA" and item[1] == "GPU"
            gpus += [item[2]] if in_gpus and item[2] else []
            sections.setdefault(section, {})[item[1].lower()] = item[2].strip()
        elif section and in_gpus and (name := re.match(r"^\s*[-*•]\s+(\S.*)$", line)):
            gpus.append(name[1])
    cuda = sections.get("CUDA", {})
    if "available" not in cuda:
        return {}
    return _lightning_facts(cuda, sections, gpus)


def _lightning_facts(cuda: Mapping[str, str], sections: Mapping[str, Mapping[str, str]], gpus: Sequence[str]) -> Facts:
    listed = {**sections.get("Packages", {}), **sections.get("Lightning", {})}
    shown = listed.get("torch") or listed.get("pytorch_version") or ""
    facts = torch_facts(torch_version(shown), cuda.get("version"), answer(cuda["available"]))
    named = [name for name in gpus if gpu_name(name)]
    devices = named_gpus(named)
    python = python_facts(sections.get("System", {}).get("python", ""))
    system = sections.get("System", {})
    os = {"linux": "linux", "windows": "windows", "darwin": "darwin"}.get(system.get("os", "").lower())
    facts = joined(facts, {"devices": devices} if devices else {})
    facts = joined(facts, {"python": python} if python is not None else {})
    facts = joined(facts, {"system": System(os=os)} if os else {})
    found = [
        package(name, version)
        for name, version in listed.items()
        if bears_on_gpus(name) and re.fullmatch(VERSION, version)
    ]
    return joined(facts, package_facts(found[:400]))


def _jax(text: Text) -> Facts:
    """Return the facts of jax.print_environment_info()."""
    if "jaxlib" not in text.lowered:
        return {}
    rows = [match for line in whole_lines(text) if (match := _JAX.match(line))]
    if "jaxlib" not in {match[1] for match in rows}:
        return {}
    facts = package_facts([package(match[1], match[2]) for match in rows])
    info = next((match for line in whole_lines(text) if (match := _JAX_DEVICE.match(line))), None)
    devices = named_gpus([f"{info[2]}x {info[1]}"]) if info else ()
    facts = joined(facts, {"devices": devices} if devices else {})
    shown = re.search(r"uname_result\(system='(Linux|Windows|Darwin)'", text.flat)
    os = shown[1].lower() if shown else None
    machine = re.search(r"uname_result\([^()]{0,400}machine='(\w{3,20})'", text.flat)
    if os is not None:
        facts = joined(facts, {"system": System(os=os, machine=machine[1] if machine else None)})
    python = next(
        (found for line in whole_lines(text) if (found := re.match(r"^\W{0,6}python:\s+(\d\.\S.*)$", line))), None
    )
    told = python_facts(python[1]) if python else None
    return joined(facts, {"python": told} if told is not None else {})
