"""What people write in words: the system, the GPU and the versions they have. The least reliable of all."""

import re
from collections.abc import Iterator
from dataclasses import replace

from gpudoctor.data.tables import load_table
from gpudoctor.model import Container, Driver, PciGpu, Python, System, Toolkit, Torch, TorchRuntime
from gpudoctor.model.versions import CudaVersion, DriverVersion, PackageVersion
from gpudoctor.readers.container_start import cuda_of_image, is_image
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.gpu_words import named_gpus
from gpudoctor.readers.text import Patterns, Text

_SAYS = Patterns("prose")

MOST_LINES = 4000  # a longer text is a log

# What each of the expressions needs, looked for first: most lines of a long report have none of it.
_TOPICS = (
    *("driver", "cuda", "nvcc", "torch", "python", "gcc", "g++", "nvidia", "intel", "gfx", "+c", "is_available", "nv1"),
    *("win", "w1", "mac", "os", "apple", "m1", "m2", "m3", "m4", "m5", "wsl", "linux", "ubuntu", "debian", "fedora"),
    *("centos", "red", "rhel", "rocky", "alma", "arch", "manjaro", "suse", "mint", "pop"),
)
LONGEST_SEARCHED = 200_000  # characters


def read(text: Text) -> Facts:
    """Return what the words say, from lines that state something and are neither advice nor a program's output."""
    lines = [line for line in text.lines[:MOST_LINES] if len(line) < 500 and _is_on_topic(line.lower())]
    said = [line for line in lines if not _SAYS.output.search(line) and not _SAYS.advice.search(line)]
    found = [(line, match.start()) for line in lines if (match := _SAYS.failure.search(line))]
    failures = [line if not _is_no_statement(line) else line[:start] for line, start in found]
    failures = [line for line in failures if not _is_no_statement(line)]
    return joined(
        *_system(said + failures, text), *_gpu(text, said), *_versions(said, text), *_torch(said), *_rest(text, said)
    )


def _is_no_statement(line: str) -> bool:
    return bool(_SAYS.advice.search(line) or _SAYS.filed.search(line))


def _is_on_topic(lowered: str) -> bool:
    return any(topic in lowered for topic in _TOPICS)


def _system(said: list[str], text: Text) -> Iterator[Facts]:
    """Yield the system; of WSL and Windows both, the programs run in WSL."""
    whole = "\n".join(said)
    distribution, version = _distribution(whole)
    named = System(os="linux", distribution=distribution, distribution_version=version)
    one = re.search(r"\bWSL ?1\b", whole)
    wsl = 2 if _SAYS.wsl.search(whole) else 1 if one else 2 if _SAYS.wsl_any.search(whole) else None
    windows = _SAYS.windows.search(whole) is not None or any(_labelled_os(line, r"\bwindows\b") for line in said)
    mac = _SAYS.mac.search(whole)
    if wsl:
        yield {"system": replace(named, wsl=wsl)}
    elif windows:
        yield from () if distribution or mac else ({"system": System(os="windows")},)
    elif distribution:
        yield {"system": named}
    elif mac:
        yield {"system": System(os="darwin", machine="arm64" if _SAYS.apple.search(whole) else None)}
    elif _SAYS.apple_named.search(whole):
        yield {"system": System(os="darwin", machine="arm64")}
    elif any(_labelled_os(line, r"\blinux\b") or re.match(r"\s*Linux,", line) for line in said):
        yield {"system": named}
    folder = _SAYS.file.search(text.flat)
    if _SAYS.mac_folder.search(text.flat):
        yield {"system": System(os="darwin")}
    elif folder:
        os = "windows" if folder[1][1:2] == ":" else "darwin" if folder[1] == "/Users/" else "linux"
        yield {"system": System(os=os)}
    elif _SAYS.windows_prompt.search(text.raw[:LONGEST_SEARCHED]):
        yield {"system": System(os="windows")}


def _labelled_os(line: str, pattern: str) -> bool:
    label = _SAYS.os_label.match(line)
    return label is not None and re.search(pattern, line[label.end() :], re.IGNORECASE) is not None


def _distribution(text: str) -> tuple[str | None, str | None]:
    found: dict[str, str] = {}
    lowered = text.lower()
    for row in load_table("distributions")["distributions"]:
        if not any(word in lowered for word in row.get("words", ())):
            continue
        name, said = row["id"], row["said"]
        whole = rf"(?<![\w/:.-]){said}(?![\w/]*/)(?=[\s,;.)(\"'*_`|]|$)"
        for match in re.finditer(whole, text, re.IGNORECASE | re.MULTILINE):
            found[name] = found.get(name) or match[1] or ""
    if len(found) != 1:
        return None, None
    name, version = next(iter(found.items()))
    return name, version or None


def _gpu(text: Text, said: list[str]) -> Iterator[Facts]:
    gpus = named_gpus(text)
    if gpus:
        listed = tuple(PciGpu(address="", vendor=gpu.vendor, device_id="", name=gpu.name) for gpu in gpus)
        yield {"system": System(pci_gpus=listed)}
    elif any(map(_SAYS.no_gpu.search, said)):
        intel = any("intel" in line.lower() for line in said)
        yield {"system": System(pci_gpus=(PciGpu(address="", vendor="intel", device_id=""),) if intel else ())}
    targets = tuple(dict.fromkeys(_SAYS.gfx.findall(" ".join(said))))
    if len(targets) == 1 and not any(gpu.vendor == "nvidia" for gpu in gpus):
        yield {"system": System(amd_gfx_targets=targets)}


def _versions(said: list[str], text: Text) -> Iterator[Facts]:
    """Yield the versions of driver, toolkit, Python and compiler; one that is told twice differently is not."""
    driver = _only(said, _SAYS.driver, _SAYS.driver_package, _SAYS.driver_branch) or _only(
        [text.flat], _SAYS.driver_answer
    )
    if driver is not None:
        yield {"driver": Driver(installed=True, version=DriverVersion.parse(driver))}
    offered = _only(said, _SAYS.smi_cuda)
    if offered is not None:
        yield {"driver": Driver(cuda_version=CudaVersion.parse(offered))}
    shown = any("Driver Version" in line or "nvidia-smi" in line.lower() or "== CUDA ==" in line for line in text.lines)
    toolkit = _only([_without_torch(line) for line in said], _SAYS.toolkit) if not shown else None
    if toolkit is not None:
        yield {"toolkit": Toolkit(nvcc_version=CudaVersion.parse(toolkit))}
    pythons = [match[1] for match in map(_SAYS.python.match, said) if match]
    python = _agreed(pythons or [m[1] or m[2] for line in said for m in _SAYS.python_inline.finditer(line)])
    if python is not None:
        yield {"python": Python(version=python)}
    compiler = _only(said, _SAYS.gcc)
    if compiler is not None:
        numbers = tuple(int(part) for part in compiler.split("."))
        yield {"toolkit": Toolkit(host_compiler="gcc", host_compiler_version=numbers)}


def _only(said: list[str], *patterns: re.Pattern[str]) -> str | None:
    """Return what the first pattern that is found names; None if it names several."""
    named = ({match[1] for line in said for match in pattern.finditer(line)} for pattern in patterns)
    found: set[str] = next(filter(None, named), set())
    return found.pop() if len(found) == 1 else None


def _agreed(texts: list[str]) -> PackageVersion | None:
    """Return the version that says most; None if there is none, or another one contradicts it."""
    versions = [PackageVersion(text) for text in sorted(texts, key=len)]
    return versions[-1] if versions and all(versions[-1].agrees_with(version) for version in versions) else None


def _without_torch(line: str) -> str:
    """Return the line without what says for which CUDA a library is built: "torch 2.1 (CUDA 11.8)"."""
    others = r"torch|tensorflow|cupy|jax|built|compiled|build|wheel|with|for|driver|wsl|image|container|docker"
    return re.sub(rf"(?i)(?:{others})\b.*", "", line)


def _torch(said: list[str]) -> Iterator[Facts]:
    index = next(filter(None, map(_SAYS.torch_index.search, said)), None)
    matches = [match for line in said for match in _SAYS.torch.finditer(line)]
    matches = matches or [match for line in said for match in _SAYS.torch_alone.finditer(line)]
    version = None if index else _agreed([match[1].replace(" ", "") for match in matches])
    if version is not None:
        yield {"torch": Torch(installed=True, version=version)}
    elif index:
        yield {"torch": Torch(installed=True, version=PackageVersion(f"{index[1]}+{index[3]}"))}
    answers = [(match[1], match[2].lower() == "true") for line in said for match in _SAYS.unavailable.finditer(line)]
    of_mps, of_cuda = ({value for mps, value in answers if bool(mps) is wanted} for wanted in (True, False))
    if len(of_mps) == 1:
        yield {"torch_runtime": TorchRuntime(mps_available=of_mps.pop())}
    if len(of_cuda) == 1:
        yield {"torch_runtime": TorchRuntime(available=of_cuda.pop())}


def _rest(text: Text, said: list[str]) -> Iterator[Facts]:
    """Yield the image, nouveau by the name that it gives a GPU, and Python by the folders of tracebacks."""
    named = [match for line in text.lines for match in (*_SAYS.image.finditer(line), *_SAYS.image_alone.finditer(line))]
    images = {match[1] for match in named if is_image(match[1])}
    if len(images) == 1:
        image = images.pop()
        yield {"container": Container(image=image, image_cuda_version=cuda_of_image(image))}
    if any(map(_SAYS.nouveau.search, said)):
        yield {"driver": Driver(nouveau_loaded=True)}
    pythons = {f"{match[1]}.{match[2]}" for match in _SAYS.site.finditer(text.flat)}
    if len(pythons) == 1:
        yield {"python": Python(version=PackageVersion(pythons.pop()))}
