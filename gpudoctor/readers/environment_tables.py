"""Tables of the environment that frameworks print: OpenMMLab's, Detectron2's, Ultralytics', Lightning's and JAX's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpudoctor.model import Driver, System, Toolkit, Torch, TorchRuntime
from gpudoctor.readers.environment_fields import (
    answer,
    cuda_version,
    driver_version,
    gcc_version,
    is_unknown,
    named_gpus,
    numbered_gpus,
    nvcc_version,
    python_facts,
    release_of,
    torch_facts,
    torch_version,
    whole_lines,
)
from gpudoctor.readers.facts import Facts, joined, sections
from gpudoctor.readers.package_facts import VERSION, package, package_facts, packages_of
from gpudoctor.readers.platform_facts import SYS_PLATFORMS, platform_facts
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
_JAX_PYTHON = re.compile(r"^\W{0,6}python:\s+(\d\.\S.*)$")
_JAX_DEVICE = re.compile(r"^\W{0,6}device info:\s*(.{3,100}?)-(\d{1,3}), \d{1,3} local devices")


def read(text: Text) -> Facts:
    """Return what such tables in the text tell."""
    return joined(_framework_table(text), _ultralytics(text), _lightning(text), _jax(text))


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
    os = SYS_PLATFORMS.get(fields.get("sys.platform", ""))
    driver = driver_version(fields.get("driver version", ""))
    machine = sections(
        system=None if os is None else System(os=os),
        python=python_facts(fields.get("python", "")),
        driver=None if driver is None else Driver(version=driver),
        devices=numbered_gpus(gpus),
        toolkit=_toolkit(fields),
    )
    return joined(_torch(fields), machine, _config(text), _packages(fields))


def _table_lines(text: Text) -> Iterator[str]:
    """Yield the lines from the first of the last table on."""
    lines = whole_lines(text)
    starts = [number for number, line in enumerate(lines) if re.match(r"\W{0,12}sys\.platform\b", line)]
    first = starts[-1] if starts else 0
    yield from lines[first : first + MOST_LINES]


def _torch(fields: Mapping[str, str]) -> Facts:
    available = answer(fields.get("cuda available", fields.get("gpu available", "")))
    facts = torch_facts(torch_version(fields.get("pytorch", "")), None, available)
    torch: Torch | None = facts.get("torch")
    if torch is not None:
        abi = answer(fields.get("torch._c._glibcxx_use_cxx11_abi", ""))
        facts["torch"] = replace(torch, cxx11_abi=abi)
    return facts


def _toolkit(fields: Mapping[str, str]) -> Toolkit | None:
    shown = fields.get("nvcc", "")
    if not shown and "compilation tools" in fields.get("cuda compiler", ""):
        # Where Detectron2 is built, "CUDA compiler" names the CUDA of its build instead.
        shown = fields["cuda compiler"]
    nvcc = nvcc_version(shown) if not is_unknown(shown) else None
    gcc = gcc_version(fields.get("gcc", "")) if fields.get("sys.platform", "linux") == "linux" else None
    if nvcc is None and gcc is None:
        return None
    return Toolkit(nvcc_version=nvcc, host_compiler="gcc" if gcc else None, host_compiler_version=gcc)


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
    names = ("torchvision", "mmcv", "detectron2", "numpy")
    versions = ((name, re.match(VERSION, fields.get(name, ""))) for name in names)
    return package_facts(packages_of((name, match[0]) for name, match in versions if match))


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
    return joined(facts, sections(devices=devices))


def _checks(fields: Mapping[str, str], text: Text) -> Facts:
    python = python_facts(fields.get("Python", ""))
    rows = (match for match in map(_CHECKED.match, whole_lines(text)) if match)
    found = packages_of((row[1], row[2]) for row in rows)
    torch = next((item.version for item in found if item.name == "torch"), None)
    facts = torch_facts(torch, fields.get("CUDA"), None)
    system = platform_facts(fields.get("OS", ""), release_of(python))
    devices = named_gpus([fields.get("GPU", "")])
    count = fields.get("GPU count", "")
    if devices and count.isdigit() and 1 < int(count) <= 64:
        devices = tuple(replace(devices[0], nvml_index=number) for number in range(int(count)))
    # The GPU's name comes from torch.cuda, and is "None" where that is not available.
    available = devices and cuda_version(fields.get("CUDA", ""))
    runtime = TorchRuntime(available=True) if available else None
    machine = sections(system=system, python=python, devices=devices, torch_runtime=runtime)
    return joined(facts, machine, package_facts(found))


def _lightning(text: Text) -> Facts:
    """Return the facts of Lightning's collect_env_details.py: "* CUDA:", "- GPU:", "- available:", "* Packages:"."""
    if "lightning" not in text.lowered or "available:" not in text.lowered:
        return {}
    parts: dict[str, dict[str, str]] = {}
    section, gpus, in_gpus = "", [], False
    for line in whole_lines(text):
        title = re.match(r"^\s*[*•-]\s+(CUDA|Lightning|Packages|System):\s*$", line)
        item = _LIGHTNING_ITEM.match(line)
        if title:
            section, in_gpus = title[1], False
        elif section and item:
            in_gpus = section == "CUDA" and item[1] == "GPU"
            gpus += [item[2]] if in_gpus and item[2] else []
            parts.setdefault(section, {})[item[1].lower()] = item[2].strip()
        elif section and in_gpus and (name := re.match(r"^\s*[-*•]\s+(\S.*)$", line)):
            gpus.append(name[1])
    cuda = parts.get("CUDA", {})
    if "available" not in cuda:
        return {}
    return _lightning_facts(cuda, parts, gpus)


def _lightning_facts(cuda: Mapping[str, str], parts: Mapping[str, Mapping[str, str]], gpus: Sequence[str]) -> Facts:
    listed = {**parts.get("Packages", {}), **parts.get("Lightning", {})}
    shown = listed.get("torch") or listed.get("pytorch_version") or ""
    facts = torch_facts(torch_version(shown), cuda.get("version"), answer(cuda["available"]))
    system = parts.get("System", {})
    os = system.get("os", "").lower()
    machine = sections(
        devices=named_gpus(gpus),
        python=python_facts(system.get("python", "")),
        system=System(os=os) if os in ("linux", "windows", "darwin") else None,
    )
    found = packages_of((name, version) for name, version in listed.items() if re.fullmatch(VERSION, version))
    return joined(facts, machine, package_facts(found))


def _jax(text: Text) -> Facts:
    """Return the facts of jax.print_environment_info()."""
    if "jaxlib" not in text.lowered:
        return {}
    rows = [match for line in whole_lines(text) if (match := _JAX.match(line))]
    if "jaxlib" not in {match[1] for match in rows}:
        return {}
    info = next(filter(None, map(_JAX_DEVICE.match, whole_lines(text))), None)
    system = re.search(r"uname_result\(system='(Linux|Windows|Darwin)'", text.flat)
    machine = re.search(r"uname_result\([^()]{0,400}machine='(\w{3,20})'", text.flat)
    python = next(filter(None, map(_JAX_PYTHON.match, whole_lines(text))), None)
    told = sections(
        devices=named_gpus([f"{info[2]}x {info[1]}"]) if info else (),
        system=System(os=system[1].lower(), machine=machine[1] if machine else None) if system else None,
        python=python_facts(python[1]) if python else None,
    )
    return joined(package_facts([package(match[1], match[2]) for match in rows]), told)
