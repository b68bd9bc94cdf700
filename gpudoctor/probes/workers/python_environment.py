"""What is on disk in a Python environment: the interpreter, its packages, PyTorch and CuPy. Neither is imported.

Every file read is bounded, none is executed, and nothing is looked at that does not matter for GPUs. Standard library
only, from Python 3.8 on. Texts are handed back as they are; `gpudoctor.parsers` reads them.
"""

from __future__ import annotations

import _imp
import os
import re
import struct
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to import as all of this one
    from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

    Facts = Dict[str, Any]

# Beginnings of the normalised names of distributions that matter for GPUs.
DISTRIBUTIONS = (
    *("torch", "pytorch-", "triton", "functorch", "pyg-lib", "fairscale", "apex", "deepspeed", "vllm", "sglang", "jax"),
    *("flash-attn", "flashinfer", "xformers", "bitsandbytes", "mmcv", "detectron2", "causal-conv1d", "mamba-ssm"),
    *("nvidia-", "cuda-", "pynvml", "cupy", "amd-cupy", "numpy", "scipy", "numba", "cuml", "cudf", "rmm-", "dask-cu"),
    *("tensorflow", "tf-nightly", "onnxruntime", "ort-", "auto-gptq", "autoawq", "exllama", "transformer-engine"),
)
CONDA_PACKAGES = (
    *("pytorch", "torch", "libtorch", "_pytorch_select", "cpuonly", "cuda", "cudnn", "nccl", "cupy", "numpy"),
    *("tensorflow", "jax", "numba", "triton", "libcublas", "libcufft", "libcusolver", "libcusparse", "libcurand"),
)
MODULES = {  # module → the distributions that install it
    "torch": "torch",
    "torchvision": "torchvision",
    "torchaudio": "torchaudio",
    "triton": "triton|triton-.*|pytorch-triton.*",
    "cupy": r"cupy|cupy-cuda\d+x?|cupy-rocm-[\d-]+|amd-cupy",
    "numpy": "numpy",
    "pynvml": "nvidia-ml-py|pynvml",
}
MOST_METADATA_BYTES = 256 * 1024  # the headers of torch 2.14 take 10 KB, those of an old SciPy with its licence 50 KB
MOST_TEXT_BYTES = 16 * 1024
MOST_NAME_BYTES = 4096
MOST_SECTION_BYTES = 64 * 2**20  # .rodata of libtorch_python.so takes 1 MB
MOST_FILES = 2000
MOST_CACHE_BYTES = 8 * 2**20
LAZY_LIBRARIES = ("libtorch_global_deps.so", "libtorch_cuda_linalg.so", "libcaffe2_nvrtc.so")  # loaded by name
# Libraries that a build of PyTorch contains or asks of its wheels. libcuda.so.1 is the driver's and not one of them.
BUILD_LIBRARY = (
    r"libtorch|libc10|libshm|libcaffe2|libgomp-|libcudart\.|libcublas|libcudnn|libcufft|libcufile|libcurand"
    r"|libcusolver|libcusparse|libcudss|libnccl|libnvrtc|libnvJitLink|libnvshmem_host|libnvToolsExt|libcupti"
)
ARCHITECTURE = rb"(?:(?:sm|compute)_\d{2,3}[af]?|gfx[0-9a-z:+-]+)"
FLAGS = ARCHITECTURE + rb"(?: " + ARCHITECTURE + rb")*(?=\0)"
UNREADABLE = (OSError, ValueError, IndexError, OverflowError, struct.error)  # what a broken binary leads to


def collect(arguments: Mapping[str, Any]) -> Facts:
    """Return the facts.

    arguments: `directory`, the working directory of the programs diagnosed; `active`, the environment that the user's
    shell has activated.
    """
    directory = str(arguments.get("directory") or os.getcwd())
    folders = list(_folders(directory))
    found = [distribution for folder in folders for distribution in _distributions(folder)]
    nvidia = dict(_nvidia_libraries(folders))
    return {
        "interpreter": {**_interpreter(folders), "active": str(arguments.get("active", ""))},
        "conda": _conda(),
        "distributions": found[:MOST_FILES],
        "shadowing": list(_shadowing(directory, folders, found)),
        "nvidia_libraries": nvidia,
        "torch": _torch(folders, found, list(nvidia)),
        "cupy": _cupy(folders, found),
    }


def _folders(directory: str) -> Iterator[str]:
    """Yield the folders that modules come from, once each. The working directory is one only if packages are there."""
    seen = {os.path.realpath(directory)}
    if any(name.endswith((".dist-info", ".egg-info")) for name in _listing(directory)):
        seen.clear()
    for entry in sys.path:
        real = os.path.realpath(entry or directory)
        if entry and real not in seen:
            seen.add(real)
            yield entry


def _listing(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except OSError:  # not there, a zip file, or not ours to read
        return []


def _read(path: str, most: int = MOST_TEXT_BYTES) -> Optional[str]:
    """Return the beginning of a text file, None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return None


def _interpreter(folders: Sequence[str]) -> Facts:
    standard_library = os.path.dirname(os.__file__)
    own_root = sys.prefix == sys.base_prefix
    return {
        "version": sys.version.split()[0],
        "implementation": sys.implementation.name,
        "executable": sys.executable,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "os": sys.platform,
        "machine": os.uname().machine if hasattr(os, "uname") else "",
        "platform": sysconfig.get_platform(),
        "free_threaded": "t" in getattr(sys, "abiflags", "") or "free-threading build" in sys.version,
        "externally_managed": own_root and os.path.exists(os.path.join(standard_library, "EXTERNALLY-MANAGED")),
        "pyvenv_cfg": _read(os.path.join(sys.prefix, "pyvenv.cfg")),
        "project": _project(),
        "pip": any(os.path.isfile(os.path.join(folder, "pip", "__main__.py")) for folder in folders),
    }


def _project() -> str:
    """Return the tool of the project that the environment belongs to. That of pixi is `.pixi/envs/NAME` in it."""
    above = os.path.dirname(sys.prefix)
    if os.path.normpath(above).split(os.sep)[-2:] == [".pixi", "envs"]:
        return "pixi" if os.path.isfile(f"{above}/../../pixi.lock") else ""
    return next((tool for tool in ("uv", "poetry") if os.path.isfile(f"{above}/{tool}.lock")), "")


def _conda() -> Optional[List[str]]:
    """Return the names of conda's package records that matter for GPUs, None if conda does not manage the prefix."""
    folder = os.path.join(sys.prefix, "conda-meta")
    if not os.path.isdir(folder):
        return None
    records = [name[:-5] for name in _listing(folder) if name.endswith(".json")]
    return sorted(r for r in records if r.startswith(CONDA_PACKAGES) or r.startswith("python-"))[:MOST_FILES]


def _distributions(folder: str) -> Iterator[Facts]:
    """Yield the distributions in `folder` that matter for GPUs."""
    for entry in sorted(name for name in _listing(folder) if name.endswith((".dist-info", ".egg-info"))):
        stem, kind = os.path.splitext(entry)
        name = _normal(stem.partition("-")[0])
        if not name.startswith(DISTRIBUTIONS):
            continue
        path = os.path.join(folder, entry)
        files = ("METADATA",) if kind == ".dist-info" else ("PKG-INFO", "")
        texts = (_read(os.path.join(path, file) if file else path, MOST_METADATA_BYTES) for file in files)
        metadata = next((text for text in texts if text is not None), None)
        if metadata is not None:  # pip takes a folder without metadata for no distribution either
            headers = re.split(r"\r?\n\r?\n", metadata, maxsplit=1)[0]
            yield {
                "name": _normal(_header(headers, "Name") or name),
                "version": _header(headers, "Version") or stem.partition("-")[2],
                "installer": (_read(os.path.join(path, "INSTALLER"), 64) or "").strip(),
                "location": folder,
                "editable": bool(re.search(r'"editable":\s*true', _read(os.path.join(path, "direct_url.json")) or "")),
                "requires": _bearing(re.findall(r"(?m)^Requires-Dist:[ \t]*(.+?)[ \t\r]*$", headers)[:MOST_FILES]),
            }


def _header(headers: str, name: str) -> str:
    match = re.search(r"(?m)^" + name + r":[ \t]*(.+?)[ \t\r]*$", headers)
    return match[1] if match else ""


def _bearing(requires: List[str]) -> List[str]:
    return [line for line in requires if line.lower().replace("_", "-").startswith(DISTRIBUTIONS)]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _home(found: Sequence[Facts], module: str) -> Optional[str]:
    """Return the first folder in which a distribution of `module` is installed."""
    return next((entry["location"] for entry in found if re.fullmatch(MODULES[module], entry["name"])), None)


def _shadowing(directory: str, folders: Sequence[str], found: Sequence[Facts]) -> Iterator[str]:
    """Yield the file that is imported in place of each installed module that another file hides."""
    real = {folder: os.path.realpath(folder) for folder in (directory, *folders)}
    for module in MODULES:
        home = _home(found, module)
        for folder in () if home is None else (directory, *folders):
            if real[folder] == real[str(home)]:
                break
            candidates = (os.path.join(folder, module, "__init__.py"), os.path.join(folder, module + ".py"))
            hiding = next((path for path in candidates if os.path.isfile(path)), None)
            if hiding:
                yield hiding
                break


def _package(folders: Sequence[str], found: Sequence[Facts], module: str) -> str:
    """Return the folder of the package that `import module` takes from the environment, "" if there is none."""
    home = _home(found, module)
    for folder in ([home] if home else []) + list(folders):
        path = os.path.join(folder, module)
        if os.path.isfile(os.path.join(path, "__init__.py")):
            return path
    return ""


def _nvidia_libraries(folders: Sequence[str]) -> Iterator[Tuple[str, List[str]]]:
    """Yield the folders in which NVIDIA's wheels put libraries, nvidia/cudnn/lib or nvidia/cu13/lib, with the files."""
    for folder in folders:
        root = os.path.join(folder, "nvidia")
        for component in sorted(_listing(root)):
            for place in ("lib", "bin", os.path.join("bin", "x86_64")):
                path = os.path.join(root, component, place)
                files = [name for name in _listing(path) if ".so" in name or name.endswith(".dll")]
                if files:
                    yield path, sorted(files)[:MOST_FILES]


def _cupy(folders: Sequence[str], found: Sequence[Facts]) -> Facts:
    package = _package(folders, found, "cupy")
    return {
        "package": package,
        "version_file": _read(os.path.join(package, "_version.py")) if package else None,
        "wheel_file": _read(os.path.join(package, ".data", "_wheel.json")) if package else None,
    }


def _torch(folders: Sequence[str], found: Sequence[Facts], nvidia: Sequence[str]) -> Facts:
    package = _package(folders, found, "torch")
    if not package:
        return {"package": ""}
    version_file = _read(os.path.join(package, "version.py"))
    libraries = os.path.join(package, "lib")
    extensions = ["_C" + suffix for suffix in _imp.extension_suffixes()]
    extension = next((name for name in extensions if os.path.isfile(os.path.join(package, name))), "")
    places = [libraries, *nvidia, *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
    roots = (sys.prefix, sys.base_prefix, "/", "/usr", "/usr/local")
    places += [os.path.join(root, part) for root in roots for part in ("lib", "lib64")]
    names = sorted(_listing(libraries))
    starts = [os.path.join(libraries, name) for name in LAZY_LIBRARIES if name in names]
    starts += [os.path.join(package, extension)] if extension else []
    python_library = next((name for name in names if name in ("libtorch_python.so", "torch_python.dll")), "")
    if not any("cuda" in name or "hip" in name for name in names):  # the constants of a CPU build name no architecture
        python_library = ""
    return {
        "package": package,
        "version_file": version_file,
        "libraries": [name for name in names if ".so" in name or name.endswith((".dll", ".dylib"))][:MOST_FILES],
        "unresolved": ([] if extension else ["torch/" + extensions[0]]) + sorted(_unresolved(starts, places)),
        "architectures": _architectures(os.path.join(libraries, python_library)) if python_library else None,
        "cxx11_abi": _cxx11_abi(os.path.join(libraries, "libc10.so")),
    }


class Elf:
    """The dynamic section of a shared library.

    strings: offset and size of the table of dynamic strings.
    """

    def __init__(self, needed: List[str], search: List[str], strings: Tuple[int, int]) -> None:
        self.needed = needed
        self.search = search
        self.strings = strings


def _elf(file: BinaryIO, folder: str) -> Optional[Elf]:
    """Return the dynamic section of a 64-bit little-endian ELF file, None if it is not such a file.

    Source: "ELF-64 Object File Format", sections Program header table and Dynamic table.
    """
    magic, offset, size, count = struct.unpack("<6s26xQ14xHH", file.read(58))
    if magic != b"\x7fELF\x02\x01":
        return None
    file.seek(offset)
    table = file.read(min(size * count, MOST_TEXT_BYTES))
    segments = [struct.unpack_from("<IIQQQQ", table, number * size) for number in range(count)]
    dynamic = next((segment for segment in segments if segment[0] == 2), None)
    if dynamic is None:
        return None
    file.seek(dynamic[2])
    entries = file.read(min(dynamic[5], MOST_TEXT_BYTES))
    pairs = list(struct.iter_unpack("<qQ", entries))
    values = {tag: value for tag, value in pairs if tag in (5, 10)}  # DT_STRTAB, DT_STRSZ
    address = values.get(5, 0)
    strings = next((s[2] + address - s[3] for s in segments if s[0] == 1 and s[3] <= address < s[3] + s[5]), 0)

    def text(position: int) -> str:
        file.seek(strings + position)
        return file.read(MOST_NAME_BYTES).partition(b"\0")[0].decode("utf-8", "replace")

    needed = [text(value) for tag, value in pairs if tag == 1]  # DT_NEEDED
    search = [
        place for tag, value in pairs if tag in (15, 29) for place in text(value).split(":")
    ]  # DT_RPATH, DT_RUNPATH
    origin = [place.replace("${ORIGIN}", folder).replace("$ORIGIN", folder) for place in search]
    return Elf(needed, origin, (strings, values.get(10, 0)))


def _open_elf(path: str) -> Optional[Elf]:
    try:
        with open(path, "rb", buffering=0) as file:
            return _elf(file, os.path.dirname(path))
    except UNREADABLE:
        return None


def _unresolved(starts: Sequence[str], places: Sequence[str]) -> Set[str]:
    """Return the names of a build's libraries that `starts` need, directly or not, and that the loader cannot find."""
    waiting, seen, missing = list(starts), set(starts), set()
    while waiting and len(seen) < MOST_FILES:
        library = _open_elf(waiting.pop())
        for name in library.needed if library else ():
            if name in seen or not re.match(BUILD_LIBRARY, name) or "/" in name:
                continue
            seen.add(name)
            paths = (os.path.join(place, name) for place in (*places, *(library.search if library else ())) if place)
            path = next((path for path in paths if os.path.exists(path)), None)
            if path:
                waiting.append(path)
            else:
                missing.add(name)
    cache = _read("/etc/ld.so.cache", MOST_CACHE_BYTES) if missing else ""
    return {name for name in missing if "\0" + name + "\0" not in (cache or "")}


def _architectures(path: str) -> Optional[str]:
    """Return the string that torch.cuda.get_arch_list() splits, None if it is not found.

    torch/csrc/cuda/Module.cpp compiles it in from CUDA_ARCH_FLAGS, so that it is a C string of its own in the
    constants of libtorch_python.so: "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120" in the wheel of 2.14.1+cu130.
    libtorch_cuda.so, which contains the machine code itself, is not read: it has 0.5 to 2 GB.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            constants = _constants(file)
    except UNREADABLE:
        return None
    flags = re.compile(FLAGS)
    for marker in (b"sm_", b"compute_", b"gfx"):
        strings, at = [b""], constants.find(marker)
        while at >= 0:
            match = flags.match(constants, at)
            if match and not 32 <= constants[at - 1 : at].ljust(1, b"\0")[0] < 127:  # no text before it
                strings.append(match[0])
            at = constants.find(marker, match.end() if match else at + len(marker))
        if any(strings):
            return max(strings, key=len).decode("ascii")
    return None


def _constants(file: BinaryIO) -> bytes:
    """Return the section .rodata of an ELF file or .rdata of a Windows DLL, b"" if there is none."""
    header = file.read(64)
    if header[:6] == b"\x7fELF\x02\x01":
        at, size, count, names = struct.unpack("<Q10xHHH", header[40:48] + header[48:64])
        file.seek(at)
        table = file.read(min(size * count, MOST_METADATA_BYTES))
        rows = [struct.unpack_from("<I20xQQ", table, n * size) for n in range(count)]
        file.seek(rows[names][1])
        labels = file.read(MOST_TEXT_BYTES)
        sections = [(at, size) for name, at, size in rows if labels.startswith(b".rodata\0", name)]
    elif header[:2] == b"MZ":
        file.seek(struct.unpack("<I", header[60:64])[0])
        coff = file.read(24)
        count, optional = struct.unpack("<2xH12xH", coff[4:22])
        file.seek(optional, os.SEEK_CUR)
        rows = list(struct.iter_unpack("<8s8xII16x", file.read(40 * count)))
        sections = [(at, size) for name, size, at in rows if name == b".rdata\0\0"]
    else:
        return b""
    file.seek(sections[0][0] if sections else 0)
    return file.read(min(sections[0][1], MOST_SECTION_BYTES)) if sections else b""


def _cxx11_abi(path: str) -> Optional[bool]:
    """Return whether C++ strings in PyTorch's interface are of the C++11 ABI, None if that cannot be determined.

    The constructor of c10::Error takes a string, whose mangled name differs: std::__cxx11::basic_string or Ss.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            library = _elf(file, os.path.dirname(path))
            file.seek(library.strings[0] if library else 0)
            symbols = file.read(min(library.strings[1], MOST_SECTION_BYTES)) if library else b""
    except UNREADABLE:
        return None
    if b"_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_string" in symbols:
        return True
    return False if b"_ZN3c105ErrorC2ENS_14SourceLocationESs\0" in symbols else None
