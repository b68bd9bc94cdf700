"""Commands that show the operating system, its kernel modules, compilers and Python."""

import contextlib
import re
from collections.abc import Iterator

from gpudoctor.model import CudaVersion, Driver, PackageVersion, Python, System, Toolkit
from gpudoctor.parsers.linux import parse_os_release, parse_proc_driver_version
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.platform_facts import NO_WSL, SYS_PLATFORMS, wsl_of_kernel
from gpudoctor.readers.text import Text, regex

LONGEST_VERSION = 200  # characters of /proc/driver/nvidia/version
_UNAME = regex(
    r"\bLinux \S{1,80} (\d{1,2}\.\d{1,3}\S{0,60}) #\d+\S{0,40} .{0,120}?\b(x86_64|aarch64|ppc64le|i686)\b", "Linux "
)
_PROC_VERSION = regex(r"\bLinux version (\d{1,2}\.\d{1,3}\.\d{1,3}\S{0,60}) \(", "Linux version ")
_UNAME_RELEASE = regex(
    r"^\s*(\d\.\d{1,2}\.\d{1,3}(?:\.\d{1,3})?-[\w.+-]{0,60}"
    r"(?:generic|azure|aws|gcp|amd64|x86_64|arch\S*|WSL2|tegra|arm64|aarch64))\s*$"
)
_DARWIN = regex(
    r"\bDarwin \S{1,80} \d{1,2}\.\d\S{0,20} Darwin Kernel Version .{0,160}?\b(arm64|x86_64)\b", "Darwin Kernel Version"
)
_LSB = regex(
    r"^\s*(?:Distributor ID|Description|Release|Codename):\s+(\S.{0,80})$",
    "Distributor ID|Description|Release|Codename",
)
_WSL_VERSION = regex(r"\bWSL[ -]version: ?\d\.\d|\bWSL version: \d+\.\d+\.\d+|\bWSLg version:", "WSL")
_WSL_STATUS = regex(r"\bDefault Version: ([12])\b", "Default Version")
_WSL_ROW = regex(r"^\s*\*\s+[\w.-]{3,40}\s+(?:Running|Stopped)\s+([12])\s*$", "Running|Stopped")
_WINDOWS = regex(r"Microsoft Windows \[Version \d+\.\d+|^OS Name:\s+Microsoft Windows", "Microsoft Windows")
_MACHINE = regex(r"\buname -m (x86_64|aarch64|arm64|ppc64le|armv7l)\b|\bEABI: (aarch64)\b", "uname -m|EABI: ")
_ALPINE = regex(r"/etc/alpine-release\b|\bAlpine Linux v?3\.", "alpine-release|Alpine Linux")
_WINDOWS_PROMPT = regex(r"(?m)^[^\S\n]{0,40}(?:\([\w.@/+-]{1,60}\)[^\S\n]*)?(PS )?[A-Z]:\\(?:[^\s>\n][^>\n]{0,150})?>")
# "(env) user@host folder % pip install torch": the prompt of zsh in macOS's own start file, /etc/zshrc.
_MAC_PROMPT = regex(
    r"(?m)^[^\S\n]{0,8}(?:\([\w .@+-]{1,60}\) ?){0,2}[\w.-]{1,40}@[\w.-]{1,60} [^\s%]{1,80} % (?=[a-z./])", " % "
)
_MODULE = regex(
    r"^\s*(nvidia|nvidia_uvm|nvidia_drm|nvidia_modeset|nouveau)\s+\d{3,10}\s+-?\d{1,4}(?:\s+[\w,]{0,300})?\s*$"
)
_LSMOD = regex(
    r"^\s*(?:[#$>]\s*)?(?:sudo\s+)?lsmod\s*\|\s*e?grep\s+(?:-\w+\s+)*[\"']?\^?(nvidia|nouveau)[\"']?\s*$", "lsmod"
)
_SECURE_BOOT = regex(r"\bSecureBoot (enabled|disabled)\b|\bSecure Boot: (enabled|disabled)\b", "Boot")
_DKMS = regex(
    r"^\s*nvidia(?:-[\w-]{1,30})?(?:/|, )(\d{3}[\d.]{0,12})(?:, ([\w.+-]{3,60}), \w{3,10})?"
    r": ?(installed|built|added|broken)",
    "nvidia",
)
_MODULE_VERSION = "NVRM version:"
_GCC = regex(
    r"(?:^|[\s:])(?:gcc|g\+\+|cc|c\+\+)(?:-\d{1,2})?(?:\.exe)? \([^()]{2,80}\) (\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)\b", ") "
)
_GCC_VERBOSE = regex(r"^\s*gcc version (\d{1,2}\.\d{1,2}\.\d{1,2}) ", "gcc version")
_CL = regex(r"Microsoft \(R\) C/C\+\+ Optimizing Compiler Version (\d{2}\.\d{2}(?:\.\d{1,6})?)", "Microsoft (R)")
_PYTHON = regex(
    r"^\s*Python (\d\.\d{1,2}\.\d{1,2}(?:(?:a|b|rc)\d+|\+)?)"
    r"(?:\s*(?:$|:: |\| .{0,100}$|\([^\n]{3,160}?(?:on (linux|win32|darwin))?\s*$))",
    "Python ",
)
_BUILT_FOR_32_BIT = regex(r"\[MSC v\.\d{3,4} 32 bit \(Intel\)\]")
_ON = regex(r"^\[(?:GCC|Clang|MSC) .{2,80}\] on (linux|win32|darwin)\s*$", " on ")


_NVCC_VERSION = regex(r"Cuda compilation tools, release (\d{1,2}\.\d{1,2})")
_NVCC_BUILD = regex(r"\bBuild cuda_(\d{1,2}\.\d{1,2})\.r\d")
# sh, bash and zsh, Ubuntu's command-not-found, cmd and PowerShell
_NO_NVCC = regex(
    r"nvcc: (?:command )?not found|command not found: nvcc|Command 'nvcc' not found|no nvcc in \("
    r"|'nvcc' is not recognized as|The term 'nvcc' is not recognized|nvcc: No such file"
)
_WHICH_NVCC = regex(
    r"^\s*(?:(?:which|whereis|command -v|type|where) nvcc\s+|nvcc: |nvcc is )?((?:/[\w.+-]{1,60}){1,12}/nvcc)\s*$",
    "/nvcc",
)
_WHICH_NVCC_WINDOWS = regex(r"^\s*([A-Za-z]:\\[^\n:*?\"<>|]{1,200}\\nvcc\.exe)\s*$", "nvcc.exe")


def read_nvcc(text: Text) -> Facts:
    """Return the toolkit of nvcc on PATH, from the version that was printed last."""
    releases = list(_NVCC_VERSION.finditer(text.flat))
    build = _NVCC_BUILD.search(text.flat)
    shown = releases[-1][1] if releases else build[1] if build else None
    paths = (_WHICH_NVCC.match(line) or _WHICH_NVCC_WINDOWS.match(line) for line in text.lines)
    path = next((match[1] for match in paths if match), None)
    if path is None and shown is None and _NO_NVCC.search(text.flat):
        path = ""
    version = CudaVersion.parse(shown) if shown else None
    return {} if path is None and version is None else {"toolkit": Toolkit(nvcc_path=path, nvcc_version=version)}


def read_system(text: Text) -> Iterator[Facts]:
    """Yield the facts of each command."""
    yield from _kernel(text)
    yield from _distribution(text)
    yield from _windows(text)
    yield from _modules(text)
    yield from _compiler(text)
    yield from _python(text)


def _kernel(text: Text) -> Iterator[Facts]:
    uname = _UNAME.search(text.flat)
    version = uname or _PROC_VERSION.search(text.flat) or _release(text)
    darwin = _DARWIN.search(text.flat)
    if version:
        machine = uname[2] if uname else None
        yield {"system": System(os="linux", kernel=version[1], machine=machine, wsl=wsl_of_kernel(version[1]))}
    elif darwin:
        yield {"system": System(os="darwin", machine=darwin[1])}
    machine = _MACHINE.search(text.flat)
    if machine:
        name = machine[1] or machine[2]
        yield {"system": System(os=None if name in ("x86_64", "arm64") else "linux", machine=name)}
    if _ALPINE.search(text.flat):
        yield {"system": System(os="linux", distribution="alpine", glibc="")}


def _release(text: Text) -> re.Match[str] | None:
    """Find the kernel's release on a line of its own, as `uname -r` prints it."""
    return next(filter(None, map(_UNAME_RELEASE.match, text.lines)), None)


def _distribution(text: Text) -> Iterator[Facts]:
    lines = [line.strip() for line in text.lines if re.match(r"\s*(?:ID|VERSION_ID|PRETTY_NAME)=", line)]
    release = parse_os_release("\n".join(lines)) if lines else {}
    if len(release.keys() - {"ID"}) > 0:
        yield _linux(release.get("ID"), release.get("VERSION_ID"), release.get("PRETTY_NAME"))
    pairs = (line.partition(":") for line in text.lines if _LSB.match(line))
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    if "Distributor ID" in fields:
        name = fields["Distributor ID"].lower()
        yield _linux({"redhatenterprise": "rhel"}.get(name, name), fields.get("Release"), fields.get("Description"))


def _linux(distribution: str | None, version: str | None, name: str | None) -> Facts:
    identity = distribution if distribution and re.fullmatch(r"[a-z0-9._-]{2,30}", distribution) else None
    number = version if version and re.fullmatch(r"[\w.]{1,20}", version) else None
    shown = name[:100] if name else None
    return {"system": System(os="linux", distribution=identity, distribution_version=number, distribution_name=shown)}


def _windows(text: Text) -> Iterator[Facts]:
    """Yield Windows, or WSL: a WSL report shows both."""
    row = next(filter(None, map(_WSL_ROW.match, text.lines)), None)
    status = _WSL_STATUS.search(text.flat)
    if row or status or _WSL_VERSION.search(text.flat):
        found = row or status
        yield {"system": System(os="linux", wsl=int(found[1]) if found else 2)}
    elif "wsl" in NO_WSL.sub(" ", text.lowered) or re.search(r"(?m)^[\w.-]{1,40}@[\w.-]{1,40}:", text.raw):
        return
    elif any(map(_WINDOWS.search, text.lines)) or _WINDOWS_PROMPT.search(text.raw):
        of_powershell = [match[1] is not None for match in _WINDOWS_PROMPT.finditer(text.raw)]
        shell = None if len({*of_powershell}) != 1 else "powershell" if of_powershell[0] else "cmd"
        yield {"system": System(os="windows", shell=shell)}
    elif _MAC_PROMPT.search(text.raw):
        yield {"system": System(os="darwin")}


def _modules(text: Text) -> Iterator[Facts]:
    loaded = {match[1] for match in map(_MODULE.match, text.lines) if match}
    last = max((number for number, line in enumerate(text.lines) if line.strip()), default=0)
    # A text that ends with a command may be cut off before its output.
    asked = {match[1] for match in map(_LSMOD.match, text.lines[:last]) if match}
    driver = Driver(
        module_loaded=True if "nvidia" in loaded else False if "nvidia" in asked and loaded <= {"nouveau"} else None,
        uvm_loaded=True if "nvidia_uvm" in loaded else False if "nvidia" in loaded & asked else None,
        nouveau_loaded=True if "nouveau" in loaded else False if "nouveau" in asked else None,
    )
    if driver != Driver():
        yield {"driver": driver, "system": System(os="linux")}
    yield from _module_version(text)
    boot = _SECURE_BOOT.search(text.flat)
    if boot:
        yield {"system": System(secure_boot=(boot[1] or boot[2]) == "enabled")}
    modules = [match for match in map(_DKMS.match, text.lines) if match]
    if modules:
        kernel = _UNAME.search(text.flat) or _release(text)
        built = {match[2] for match in modules if match[3] == "installed"}
        for_kernel = None if kernel is None else kernel[1] in built
        yield {"driver": Driver(installed=True, dkms=True, module_built_for_kernel=for_kernel)}


def _module_version(text: Text) -> Iterator[Facts]:
    """Yield the facts of /proc/driver/nvidia/version, which exists only while the module is loaded."""
    start = text.flat.find(_MODULE_VERSION)
    with contextlib.suppress(ValueError):
        module = parse_proc_driver_version(text.flat[start : start + LONGEST_VERSION] if start >= 0 else "")
        version, flavor = module.version, module.flavor
        yield {"driver": Driver(installed=True, module_loaded=True, module_version=version, module_flavor=flavor)}


def _compiler(text: Text) -> Iterator[Facts]:
    for line in text.lines:
        gcc = _GCC.search(line) or _GCC_VERBOSE.match(line)
        if gcc and not re.search(r"Linux version|\bGCC version:|built with|compiled (?:with|by)", line, re.IGNORECASE):
            yield {"toolkit": Toolkit(host_compiler="gcc", host_compiler_version=_numbers(gcc[1]))}
            return
    cl = _CL.search(text.flat)
    if cl:
        yield {"toolkit": Toolkit(host_compiler="cl", host_compiler_version=_numbers(cl[1]))}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _python(text: Text) -> Iterator[Facts]:
    match = next(filter(None, map(_PYTHON.match, text.lines)), None)
    if match:
        tag = "win32" if _BUILT_FOR_32_BIT.search(text.flat) else None
        yield {"python": Python(version=PackageVersion(match[1]), platform_tag=tag)}
    on = next((m[1] for m in map(_ON.match, text.lines) if m), match[2] if match else None)
    if on:
        yield {"system": System(os=SYS_PLATFORMS[on])}
