"""Plain sentences about the system, the GPU and versions: the least reliable source."""

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from gpudoctor.data.tables import load_table
from gpudoctor.model import Container, Driver, PciGpu, Python, System, Toolkit, Torch, TorchRuntime
from gpudoctor.model.versions import CudaVersion, DriverVersion, PackageVersion
from gpudoctor.readers.container_start import cuda_of_image, is_image
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.gpu_words import named_gpus
from gpudoctor.readers.platform_facts import NO_WSL
from gpudoctor.readers.text import Text, regex

MOST_LINES = 4000  # a longer text is a log
LONGEST_LINE = 4000  # characters; a paragraph is a line

_MARK = r"[\"'*_`]{0,3}"
# Words that the expressions below need, searched first: most lines of a long report contain none.
_TOPICS = (
    *("driver", "cuda", "nvcc", "torch", "python", "gcc", "g++", "nvidia", "intel", "gfx", "+c", "is_available", "nv1"),
    *("win", "w1", "mac", "os", "apple", "m1", "m2", "m3", "m4", "m5", "wsl", "linux"),
)
_ADVICE = regex(
    r"(?i)\b(?:if|should|must|need(?:s|ed)? to|requires?|required|supports?|supported|recommend\w*|upgrade to"
    r"|since (?:the|CUDA|PyTorch|v|\d)|minimum|at least|instead"
    r"|please|try|you (?:can|may)|for example|e\.g\.|changelog|release notes|e.g|does not work with|available for)\b"
)
_OUTPUT = regex(
    r"^\s*File \"|Traceback|\w(?:Error|Warning|Exception)\b|\|\s{2,}|^\s+at |\[pip3?\]|\[conda\]"
    r"|NVIDIA-SMI \d|==\d.*==\d|\bNVRM:|^\s*(?:FROM|RUN|COPY|ENV|ARG)\s"
)
# Parts of a sentence that state nothing: addresses, paths, and commands with their arguments.
_TYPED = regex(
    r"(?i)https?://\S+|\S*\.whl\b|\btrained with torch \S{3,20}, yours is\b|(?<![\w/.:])/[\w.-]+/\S*"
    r"|\b(?:pip3?|conda|mamba|apt(?:-get)?|docker) (?:install|run|pull)\b"
    r"(?:(?! (?:and|but|then|so|on|in) |[.,;)!?]\s).)*"
)
_SENTENCE = regex(r"(?<=[\w)\]\"'`%][.!?;])\s+(?=\S)")
# Arch's package manager and its helpers, and the release of its kernel.
_PACMAN = regex(
    r"(?<![\w/.-])(?:pacman|yay|paru) -[SQRU][a-z]{0,4}\b|\b\d\.\d{1,2}\.\d{1,3}[.-]arch\d-\d",
    "pacman -|yay -|paru -|arch",
)
_WSL = regex(r"(?i)\bWSL ?-?2\b|\bWSL2\b|Subsystem for Linux 2|\bWSL version 2\b", "wsl|subsystem")
_WSL_ANY = regex(
    r"(?im)\b(?:in|on|under|inside|using|with|via|into) (?:my )?WSL\b|\bWSL(?: ?[12,(:]| (?:Ubuntu|Debian|here)\b)"
    r"|^\s*WSL\b|\(WSL\)|Subsystem for Linux",
    "wsl|subsystem for linux",
)
_WINDOWS = regex(
    r"(?i)\bWin(?:dows)?[ -]?(?:10|11|7|8\.1|Server 20\d\d)\b|(?<![\w.-])W1[01](?![\w.-])"
    r"|\bWindows (?:Version|OS|PC|laptop|update|install(?:ation)? (?:error|issue|problem|fail\w{0,4}))\b"
    r"|\b(?:on|under|using|with) (?:native )?Windows\b(?![\\/-]| (?:Subsystem|Terminal|side|host))",
    "win|w1",
)
# "(venv) PS C:\work> python app.py": Windows' Python, even if other programs run in WSL.
_WINDOWS_PROMPT = regex(
    r"(?m)^[^\S\n]{0,8}(?:\([\w .@+-]{1,60}\) ?){0,2}(?:PS )?[A-Za-z]:\\[^>\n]{0,150}>"
    r"[^\S\n]{0,3}(?:python|py|pip|conda|uv)\b"
)
LONGEST_SEARCHED = 200_000  # characters
_LABEL = r"^\s*(?:[-*•+]\s*|\d{1,2}[.)]\s*)?" + _MARK
_OS_LABEL = regex(
    rf"(?i){_LABEL}(?:OS|Operating System|Platform|System|OS Platform and Distribution|Host OS|Environment|操作系统"
    r"|系统)\b[^:=\n]{0,40}[:=]",
    "os|system|platform|environment|操作系统|系统",
)
_MAC = regex(
    r"(?i)\b(?:macOS|Mac OS(?: X)?|OS X|(?<!from my )MacBook(?: Pro| Air)?|Mac (?:mini|Studio)|iMac)\b"
    r"(?:[ -](?:\w{4,12} )?(\d{1,2}(?:\.\d{1,2}){0,2}))?",
    "mac|os x",
)
_APPLE = regex(r"(?i)\b(?:Apple )?M[1-5](?: (?:Pro|Max|Ultra))?\b|Apple Silicon")
_APPLE_NAMED = regex(
    rf"(?im){_LABEL}(?:(?:CPU|GPU|Chip|Processor|Hardware)[: ]{{1,3}})?Apple (?:M[1-5]\b|Silicon)", "apple"
)
_APPLE_CHIP = regex(r"\bM[1-5] (?:Pro|Max|Ultra)\b", "Pro|Max|Ultra")
_OTHER_SYSTEM = regex(r"(?i)\bdual[- ]?boot\w{0,3}(?: (?:with|alongside|next to|and|of))? \w{1,10}(?: \d{1,2})?")
# Only the branch: "nvidia driver 390".
_DRIVER_BRANCH = regex(
    r"(?i)\bnvidia[ -]drivers?(?: version)?[ :=]{1,3}(3[0-9]{2}|4[0-9]{2}|5[0-9]{2}|6[0-4]\d)\b(?!\.?\d)", "nvidia"
)
_DRIVER = regex(
    r"(?i)\b(?:(?:nvidia|geforce|gpu|cuda|graphics|display)[ -]{0,2})?(?:gpu |graphics |cuda |display )?drivers?"
    rf"(?: version)?{_MARK}\s?(?:\bis\b|\bto\b|:|=|\bversion\b|\bv|\()?\s{{0,3}}v?"
    r"(\d{3}\.\d{1,3}(?:\.\d{1,2})?)(?![\w.]*\d)",
    "driver",
)
_DRIVER_PACKAGE = regex(r"\bnvidia-(?:driver|dkms|headless)-(\d{3})\b", "nvidia-")
# The answer to a question: "What is your driver version? 410.48"
_DRIVER_ANSWER = regex(
    r"(?i)\b(?:drivers?|nvidia-smi)\b[^?|]{0,40}\?[\s>`'\"]{0,4}(?:it(?:'s| is) |my driver is |version |v)?"
    r"(\d{3}\.\d{2,3}(?:\.\d{2})?)(?![\w.]*\d)",
    "?",
)
_SMI_CUDA = regex(
    r"(?i)nvidia-smi\s?`?(?:\s(?:says|shows|reports|gives|cuda version|cuda))?\s{0,2}(?:[=:(]|->)?\s{0,2}(?:CUDA"
    r"(?: version)?[ :=]{1,3})?(1[0-3]\.\d)(?![.\d])",
    "nvidia-smi",
)
_TOOLKIT = regex(
    r"(?i)(?:\bcuda[ -]?toolkit(?: version)?|\bcuda(?: version)?|\bnvcc(?: version)?(?: release)?)"
    rf"{_MARK}\s?(?::|=|\bis\b|\bversion\b|_|-)?\s{{0,3}}v?((?:[7-9]|1[0-5])\.\d)(?:\.\d{{1,3}})?(?![.\d])",
    "cuda|nvcc",
)
_PYTHON = regex(
    rf"(?i){_LABEL}python(?: version)?{_MARK}\s?(?::|=|\(|\bversion\b|\bis\b)?\s{{0,3}}{_MARK}"
    r"(?:\(?version )?v?(3\.\d{1,2}(?:\.\d{1,2})?)(?![.\d])",
    "python",
)
_PYTHON_INLINE = regex(
    r"(?i)\bPython[ -](3\.\d{1,2}(?:\.\d{1,2})?)(?![.\d])|\bpython \(version (3\.\d{1,2}(?:\.\d{1,2})?)\)", "python"
)
_TORCH = regex(
    rf"(?i)(?<![\w/.-])(?:py)?torch(?: package)?(?: version| ver\.?)?{_MARK}"
    rf"\s?(?:==?|:|-|\(|\b(?:is|version|says|shows|prints)\b)?\s{{0,3}}{_MARK}(?:\(?version )?v?"
    r"(\d\.\d{1,2}(?:\.\d{1,2})?(?:(?:\.?dev|a|rc)\d{1,10}|\.post\d)?"
    r"(?: ?\+ ?(?:cu\d{2,3}|cpu|rocm[\d.]{1,6})|[ (]{1,2}cu\d{3}\b)?)"
    r"(?![\w.]*\d)",
    "torch",
)
# A version of 1 or more with such a local part is PyTorch's, or torchaudio's, which has the same number.
# Torchvision's begins with 0; of other packages only DGL numbers its releases like this.
_TORCH_ALONE = regex(r"(?<![\w.=<>~/-])(?<!dgl )(?<!DGL )([12]\.\d{1,2}\.\d{1,2}\+(?:cpu|cu\d{2,3}))(?![\w.])", "+c")
_TORCH_INDEX = regex(
    r"\btorch\s?>=\s?(\d\.\d{1,2})(?:\.\d{1,2})?\s?,\s?<\s?(\d\.\d{1,2})(?:\.\d{1,2})? from the (cu\d{3}|cpu"
    r"|rocm\d\.\d) index",
    "torch",
)
_IMAGE = regex(
    rf"(?i)(?:\b(?:base |docker |container )?image{_MARK}\s?(?:is|:|=)?\s{{1,3}}{_MARK})"
    r"((?:[a-z0-9.-]{1,60}/){1,4}[a-z0-9._-]{1,60}:[\w.-]{1,80})",
    "image",
)
# A line that is only the name of a CUDA image: "someone/pytorch:2.1.0-cuda11.8.0-devel-ubuntu22.04"
_IMAGE_ALONE = regex(
    r"^\s*`?((?:[a-z0-9._-]{1,60}/){0,3}[a-z0-9._-]{1,60}:[\w.-]{0,40}cuda\d{1,2}\.\d[\w.-]{0,40}-(?:devel|runtime|base)"
    r"[\w.-]{0,30})`?\s*$",
    "cuda",
)
_NO_GPU = regex(
    r"(?i)\b(?:without|no|has no|lacks|don'?t have an?|do not have an?|doesn'?t have an?) (?:any |a |an |dedicated "
    r"|discrete )?nvidia (?:gpu|adapter|card|graphics|hardware)s?\b(?! device is present)"
    r"|\bonly (?:has |have )?(?:an? )?(?:integrated )?intel (?:gpu|graphics|uhd|hd|iris)",
    "nvidia|intel",
)
_GFX = regex(r"\b(gfx\d{3,4}[a-f]?)\b", "gfx")
_NOUVEAU = regex(r"\b(?:about page|settings|device|graphics)\b.{0,60}\b(NV1[0-9A-F]{2})\b", "NV1")
_GCC = regex(
    rf"(?i){_LABEL}g(?:cc|\+\+){_MARK}\s?(?:version|:|=)?\s?:?\s?(\d{{1,2}}(?:\.\d{{1,2}}){{0,2}})(?![.\d\w])",
    "gcc|g++",
)
# Folders that only macOS has: Python from python.org, and Homebrew on Apple silicon.
_MAC_FOLDER = regex(r"(?<![\w.])/(?:Library/Frameworks/Python\.framework|opt/homebrew)/", "/Library/|/homebrew/")
_WINDOWS_FOLDER = regex(r"(?<![\w/])[C-Z]:\\{1,2}(?:Program Files|Users|Windows)\b", "Program Files|Users|Windows")
_FILE = regex(r"File \"([A-Za-z]:\\|/Users/|/(?:home|usr|opt|root|mnt|workspace|app|work|data)/)", 'File "')
_SITE = regex(r"(?i)[/\\](?:python|Python)(3)\.?(\d{1,2})[/\\](?:lib[/\\])?(?:site|dist)-packages[/\\]", "-packages")
_UNAVAILABLE = regex(
    r"(?i)(\bmps\.)?\bis_available\(\)?`?'?\)?\s?(?:always |still |now )?(?:returns?|returning|gives?|is|was"
    r"|da|gibt|renvoie|返回|->|=>|=|:)?\s?(?:always |still )?[`'\"]?(false|true)\b",
    "is_available",
)


def read(text: Text) -> Facts:
    """Return the facts in sentences that are neither advice nor program output."""
    lines = [line for line in text.lines[:MOST_LINES] if len(line) < LONGEST_LINE and _is_on_topic(line.lower())]
    said = [*_statements(lines)]
    return joined(
        *_system(said, text),
        *_gpu(text, said),
        *_versions(said, text),
        *_torch(said),
        *_rest(text, said),
    )


def _statements(lines: Iterable[str]) -> Iterator[str]:
    """Yield the sentences that state something: no advice, commands or program output."""
    for line in lines:
        written = _OUTPUT.split(line, maxsplit=1)[0]  # "Windows 11, RTX 3060: RuntimeError: ..."
        yield from (said for said in _SENTENCE.split(_TYPED.sub(" ", written)) if not _ADVICE.search(said))


def _is_on_topic(lowered: str) -> bool:
    return any(topic in lowered for topic in _topics())


@functools.cache
def _topics() -> tuple[str, ...]:
    """Return the topics, with the words that identify distributions."""
    rows = load_table("distributions")["distributions"]
    return (*_TOPICS, *(word for row in rows for word in row.get("words", ()) if not any(t in word for t in _TOPICS)))


def _system(said: list[str], text: Text) -> Iterator[Facts]:
    """Yield the system; if both WSL and Windows are named, programs run in WSL."""
    whole = NO_WSL.sub(" ", _OTHER_SYSTEM.sub(" ", "\n".join(said)))
    distribution, version = _distribution(whole)
    if distribution is None and _PACMAN.search(text.flat):
        distribution = "arch"
    named = System(os="linux", distribution=distribution, distribution_version=version)
    one = re.search(r"\bWSL ?1\b", whole)
    wsl = 2 if _WSL.search(whole) else 1 if one else 2 if _WSL_ANY.search(whole) else None
    windows = _WINDOWS.search(whole) is not None or any(_labelled_os(line, r"\bwindows\b") for line in said)
    mac = _MAC.search(whole)
    if wsl:
        yield {"system": replace(named, wsl=wsl)}
    elif windows:
        yield from () if distribution or mac else ({"system": System(os="windows")},)
    elif distribution:
        yield {"system": named}
    elif mac:
        yield {"system": System(os="darwin", machine="arm64" if _APPLE.search(whole) else None)}
    elif _APPLE_NAMED.search(whole) or (_APPLE_CHIP.search(whole) and not named_gpus(text)):
        yield {"system": System(os="darwin", machine="arm64")}
    elif any(_labelled_os(line, r"\blinux\b") or re.match(r"\s*Linux,", line) for line in said):
        yield {"system": named}
    folder = _FILE.search(text.flat)
    if _MAC_FOLDER.search(text.flat):
        yield {"system": System(os="darwin")}
    elif folder:
        os = "windows" if folder[1][1:2] == ":" else "darwin" if folder[1] == "/Users/" else "linux"
        yield {"system": System(os=os)}
    elif _WINDOWS_PROMPT.search(text.raw[:LONGEST_SEARCHED]) or _WINDOWS_FOLDER.search(text.flat):
        yield {"system": System(os="windows")}


def _labelled_os(line: str, pattern: str) -> bool:
    label = _OS_LABEL.match(line)
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
    elif any(map(_NO_GPU.search, said)):
        intel = any("intel" in line.lower() for line in said)
        yield {"system": System(pci_gpus=(PciGpu(address="", vendor="intel", device_id=""),) if intel else ())}
    targets = tuple(dict.fromkeys(_GFX.findall(" ".join(said))))
    if len(targets) == 1 and not any(gpu.vendor == "nvidia" for gpu in gpus):
        yield {"system": System(amd_gfx_targets=targets)}


def _versions(said: list[str], text: Text) -> Iterator[Facts]:
    """Yield the versions of driver, toolkit, Python and compiler, except those with two values."""
    driver = _only(said, _DRIVER, _DRIVER_PACKAGE, _DRIVER_BRANCH) or _only([text.flat], _DRIVER_ANSWER)
    if driver is not None:
        yield {"driver": Driver(installed=True, version=DriverVersion.parse(driver))}
    offered = _only(said, _SMI_CUDA)
    if offered is not None:
        yield {"driver": Driver(cuda_version=CudaVersion.parse(offered))}
    shown = any("Driver Version" in line or "nvidia-smi" in line.lower() or "== CUDA ==" in line for line in text.lines)
    toolkit = _only([_without_torch(line) for line in said], _TOOLKIT) if not shown else None
    if toolkit is not None:
        yield {"toolkit": Toolkit(nvcc_version=CudaVersion.parse(toolkit))}
    pythons = [match[1] for match in map(_PYTHON.match, said) if match]
    python = _agreed(pythons or [m[1] or m[2] for line in said for m in _PYTHON_INLINE.finditer(line)])
    if python is not None:
        yield {"python": Python(version=python)}
    compiler = _only(said, _GCC)
    if compiler is not None:
        numbers = tuple(int(part) for part in compiler.split("."))
        yield {"toolkit": Toolkit(host_compiler="gcc", host_compiler_version=numbers)}


def _only(said: list[str], *patterns: re.Pattern[str]) -> str | None:
    """Return the value of the first pattern that matches; None if it has several values."""
    named = ({match[1] for line in said for match in pattern.finditer(line)} for pattern in patterns)
    found: set[str] = next(filter(None, named), set())
    return found.pop() if len(found) == 1 else None


def _agreed(texts: list[str]) -> PackageVersion | None:
    """Return the most precise version; None without a version or if another one contradicts it."""
    versions = [PackageVersion(text) for text in sorted(texts, key=len)]
    return versions[-1] if versions and all(versions[-1].agrees_with(version) for version in versions) else None


def _without_torch(line: str) -> str:
    """Return the line without the CUDA version of a library's build: "torch 2.1 (CUDA 11.8)"."""
    others = r"torch|tensorflow|cupy|jax|built|compiled|build|wheel|with|for|driver|wsl|image|container|docker"
    return re.sub(rf"(?i)(?:{others})\b.*", "", line)


def _torch(said: list[str]) -> Iterator[Facts]:
    index = next(filter(None, map(_TORCH_INDEX.search, said)), None)
    matches = [match for line in said for match in _TORCH.finditer(line)]
    matches = matches or [match for line in said for match in _TORCH_ALONE.finditer(line)]
    version = None if index else _agreed([re.sub("[ (+]+", "+", match[1]) for match in matches])
    if version is not None:
        yield {"torch": Torch(installed=True, version=version)}
    elif index:
        yield {"torch": Torch(installed=True, version=PackageVersion(f"{index[1]}+{index[3]}"))}
    answers = [(match[1], match[2].lower() == "true") for line in said for match in _UNAVAILABLE.finditer(line)]
    of_mps, of_cuda = ({value for mps, value in answers if bool(mps) is wanted} for wanted in (True, False))
    if len(of_mps) == 1:
        yield {"torch_runtime": TorchRuntime(mps_available=of_mps.pop())}
    if len(of_cuda) == 1:
        yield {"torch_runtime": TorchRuntime(available=of_cuda.pop())}


def _rest(text: Text, said: list[str]) -> Iterator[Facts]:
    """Yield the image, nouveau (from its GPU names), and Python (from the folders in tracebacks)."""
    named = [match for line in text.lines for match in (*_IMAGE.finditer(line), *_IMAGE_ALONE.finditer(line))]
    images = {match[1] for match in named if is_image(match[1])}
    if len(images) == 1:
        image = images.pop()
        yield {"container": Container(image=image, image_cuda_version=cuda_of_image(image))}
    if any(map(_NOUVEAU.search, said)):
        yield {"driver": Driver(nouveau_loaded=True)}
    pythons = {f"{match[1]}.{match[2]}" for match in _SITE.finditer(text.flat)}
    if len(pythons) == 1:
        yield {"python": Python(version=PackageVersion(pythons.pop()))}
