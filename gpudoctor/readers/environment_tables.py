"""Environment tables that frameworks print: OpenMMLab, Detectron2, Ultralytics, Lightning and JAX."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpudoctor.model import System, Torch, TorchRuntime
from gpudoctor.readers import environment_fields as values
from gpudoctor.readers.facts import Facts, joined, sections
from gpudoctor.readers.package_facts import VERSION, package, package_facts, packages_of
from gpudoctor.readers.platform_facts import SYS_PLATFORMS, platform_facts
from gpudoctor.readers.text import Text, regex

MOST_LINES = 300  # of one table

# Source: mmcv/utils/env.py, mmengine/utils/dl_utils/collect_env.py, detectron2/utils/collect_env.py.
_TABLE_FIELDS = (
    r"sys\.platform|Python|CUDA available|MUSA available|GPU available|GPU \d{1,3}(?:,\d{1,3}){0,63}|CUDA_HOME|NVCC"
    r"|CUDA compiler|GCC|MSVC|PyTorch|PyTorch debug build|torch\._C\._GLIBCXX_USE_CXX11_ABI|TorchVision|torchvision"
    r"|Driver version|MMCV|MMDetection|MMEngine|numpy|detectron2"
)
_ROW = regex(rf"(?i)^\W{{0,12}}?({_TABLE_FIELDS})(?:\s*:\s*|\s{{2,60}})(\S.*)$")
_FIRST_ROW = regex(r"\W{0,12}sys\.platform\b")
_GPU_ROW = regex(r"gpu .*\d$")
_CONFIG = regex(r"^\s*- (CUDA Runtime|NVCC architecture flags:|CuDNN) ?(\S.*)$")
_BUILT = regex(r"\bcode=((?:sm|compute)_\d{2,3}[af]?)")

# "Ultralytics YOLOv8.0.45 Python-3.9.16 torch-1.13.1+cu116 CUDA:0 (NAME, 6144MiB)". Source: select_device of its
# torch_utils.py; YOLOv5's begins with "YOLOv5", and further devices follow on lines of their own.
_BANNER = regex(
    rf"(?:Ultralytics|YOLOv\d|YOLOR)[^\n]{{0,60}}?(?:Python-(\d\.\d{{1,2}}(?:\.\d{{1,2}})?) )?torch[- ]({VERSION})"
    r"(?: (CUDA:\d|CPU|MPS))?((?:[ ]?(?:CUDA:\d{1,2} )?\([^()]{1,80}\)){0,16})"
)
_BANNER_DEVICE = regex(r"CUDA:(\d{1,2}) \(([^(),]{3,80}), ?(\d{1,7}(?:\.\d{1,6})?) ?(MiB|MB|GB)\)")
_CHECKS = regex(r"^\s*(OS|Environment|Python|Install|GPU|GPU count|CUDA)\s{3,30}(\S.*)$")
_CHECKED = regex(rf"^\s*([A-Za-z][\w.-]{{1,60}})\s+[✅❌]\s?\S?\s?({VERSION})")

_LIGHTNING_TITLE = regex(r"^\s*[*•-]\s+(CUDA|Lightning|Packages|System):\s*$")
_LIGHTNING_ITEM = regex(r"^\s*[-*•]\s+([\w.-]{1,60}):\s*(.*)$")
_JAX = regex(rf"^\W{{0,6}}(jax|jaxlib|numpy):\s+({VERSION})$")
_JAX_PYTHON = regex(r"^\W{0,6}python:\s+(\d\.\S.*)$")
_JAX_DEVICE = regex(r"^\W{0,6}device info:\s*(.{3,100}?)-(\d{1,3}), \d{1,3} local devices")


def read(text: Text) -> Facts:
    """Return the facts of such tables in the text."""
    lines = values.whole_lines(text)
    return joined(_framework_table(text, lines), _ultralytics(text, lines), _lightning(text, lines), _jax(text, lines))


def _framework_table(text: Text, lines: Sequence[str]) -> Facts:
    """Return the facts of the last OpenMMLab or Detectron2 table."""
    if not any(sign in text.lowered for sign in ("sys.platform", "cuda_home", "built with")):
        return {}
    first = max((number for number, line in enumerate(lines) if _FIRST_ROW.match(line)), default=0)
    rows = [(row[1].lower(), row[2].strip()) for row in map(_ROW.match, lines[first : first + MOST_LINES]) if row]
    fields = {name: value for name, value in rows if not _GPU_ROW.match(name)}
    if len(fields.keys() - {"python", "numpy", "gcc", "torchvision"}) < 2:
        return _config(text, lines)
    compiler = fields.get("cuda compiler", "")
    said = {
        "torch": fields.get("pytorch"),
        "available": fields.get("cuda available") or fields.get("gpu available"),
        "python": fields.get("python"),
        "driver": fields.get("driver version"),
        # If Detectron2 is built, "CUDA compiler" names the CUDA of its build instead.
        "nvcc": fields.get("nvcc") or (compiler if "compilation tools" in compiler else ""),
        "gcc": fields.get("gcc"),
    }
    os = SYS_PLATFORMS.get(fields.get("sys.platform", ""))
    devices = values.numbered_gpus(f"{name}: {value}" for name, value in rows if _GPU_ROW.match(name))
    facts = values.environment_facts(said, system=None if os is None else System(os=os), devices=devices)
    if "torch" in facts:
        abi = values.answer(fields.get("torch._c._glibcxx_use_cxx11_abi", ""))
        facts["torch"] = replace(facts["torch"], cxx11_abi=abi)
    names = ((name, re.match(VERSION, fields.get(name, ""))) for name in ("torchvision", "mmcv", "detectron2", "numpy"))
    found = packages_of((name, match[0]) for name, match in names if match)
    return joined(facts, _config(text, lines), package_facts(found))


def _config(text: Text, lines: Sequence[str]) -> Facts:
    """Return the facts of torch.__config__.show() about PyTorch's build."""
    if "pytorch built with" not in text.lowered:
        return {}
    shown = {match[1]: match[2] for match in map(_CONFIG.match, lines) if match}
    cuda = values.cuda_version(shown.get("CUDA Runtime", ""))
    flags = tuple(dict.fromkeys(_BUILT.findall(shown.get("NVCC architecture flags:", ""))))[:64]
    facts: Facts = {}
    if cuda is not None:
        facts["torch"] = Torch(installed=True, build="cuda", cuda_version=cuda, architectures=flags or None)
    cudnn = re.match(r"(\d{1,2})\.(\d)(?:\.(\d{1,2}))?(?!\d)", shown.get("CuDNN", ""))
    if cudnn:
        # cudnnGetVersion() split into thousands, hundreds and the rest. Source: ATen/cuda/detail/CUDAHooks.cpp.
        number = int(cudnn[1]) * 1000 + int(cudnn[2]) * 100 + int(cudnn[3] or 0)
        facts["torch_runtime"] = TorchRuntime(cudnn_version=number)
    return facts


def _ultralytics(text: Text, lines: Sequence[str]) -> Facts:
    """Return the facts of Ultralytics' banner and its table of checks."""
    facts: Facts = {}
    banners = list(_BANNER.finditer(text.flat)) if "yolo" in text.lowered or "ultralytics" in text.lowered else []
    if banners:
        facts = _banner(banners[-1], text.flat)
    if "ultralytics" not in text.lowered and "gpu count" not in text.lowered:
        return facts
    fields = {match[1]: match[2].strip() for match in map(_CHECKS.match, lines) if match}
    return joined(facts, _checks(fields, lines)) if len(fields) >= 3 else facts


def _banner(match: re.Match[str], flat: str) -> Facts:
    version = values.torch_version(match[2], may_be_cut=match.end() >= len(flat))
    facts = values.torch_facts(version, None, True if (match[3] or "").startswith("CUDA") else None)
    devices = values.named_gpus([found[2] for found in _BANNER_DEVICE.finditer(flat[match.start() : match.end()])])
    return joined(facts, sections(devices=devices, python=values.python_facts(match[1] or "")))


def _checks(fields: Mapping[str, str], lines: Sequence[str]) -> Facts:
    found = packages_of((row[1], row[2]) for row in map(_CHECKED.match, lines) if row)
    torch = next((item.version.text for item in found if item.name == "torch"), None)
    cuda, devices = fields.get("CUDA", ""), values.named_gpus([fields.get("GPU", "")])
    # The GPU's name is from torch.cuda, or "None" if CUDA is not available.
    available = "true" if devices and values.cuda_version(cuda) else ""
    said = {"torch": torch, "cuda": cuda, "available": available, "python": fields.get("Python")}
    release = values.release_of(values.python_facts(fields.get("Python", "")))
    system = platform_facts(fields.get("OS", ""), release)
    devices = values.repeated(devices, fields.get("GPU count", ""))
    return joined(values.environment_facts(said, system=system, devices=devices), package_facts(found))


def _lightning(text: Text, lines: Sequence[str]) -> Facts:
    """Return the facts of Lightning's collect_env_details.py: "* CUDA:", "- GPU:", "- available:", "* Packages:"."""
    if "lightning" not in text.lowered or "available:" not in text.lowered:
        return {}
    parts: dict[str, dict[str, str]] = defaultdict(dict)
    section, gpus, in_gpus = "", [], False
    for line in lines:
        title, item = _LIGHTNING_TITLE.match(line), _LIGHTNING_ITEM.match(line)
        if title:
            section, in_gpus = title[1], False
        elif section and item:
            in_gpus = section == "CUDA" and item[1] == "GPU"
            gpus += [item[2]] if in_gpus and item[2] else []
            parts[section][item[1].lower()] = item[2].strip()
        elif section and in_gpus and (name := re.match(r"^\s*[-*•]\s+(\S.*)$", line)):
            gpus.append(name[1])
    cuda, system, listed = parts["CUDA"], parts["System"], {**parts["Packages"], **parts["Lightning"]}
    if "available" not in cuda:
        return {}
    said = {
        "torch": listed.get("torch") or listed.get("pytorch_version"),
        "cuda": cuda.get("version"),
        "available": cuda["available"],
        "python": system.get("python"),
    }
    os = system.get("os", "").lower()
    shown = System(os=os) if os in ("linux", "windows", "darwin") else None
    found = packages_of((name, version) for name, version in listed.items() if re.fullmatch(VERSION, version))
    facts = values.environment_facts(said, system=shown, devices=values.named_gpus(gpus))
    return joined(facts, package_facts(found))


def _jax(text: Text, lines: Sequence[str]) -> Facts:
    """Return the facts of jax.print_environment_info()."""
    rows = [match for match in map(_JAX.match, lines) if match] if "jaxlib" in text.lowered else []
    if "jaxlib" not in {match[1] for match in rows}:
        return {}
    info = next(filter(None, map(_JAX_DEVICE.match, lines)), None)
    system = re.search(r"uname_result\(system='(Linux|Windows|Darwin)'", text.flat)
    machine = re.search(r"uname_result\([^()]{0,400}machine='(\w{3,20})'", text.flat)
    python = next(filter(None, map(_JAX_PYTHON.match, lines)), None)
    facts = values.environment_facts(
        {"python": python[1] if python else None},
        devices=values.named_gpus([f"{info[2]}x {info[1]}"]) if info else (),
        system=System(os=system[1].lower(), machine=machine[1] if machine else None) if system else None,
    )
    return joined(package_facts([package(match[1], match[2]) for match in rows]), facts)
