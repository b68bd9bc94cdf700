"""What commands say of the operating system, its kernel modules, compilers and Python."""

import contextlib
import re
from collections.abc import Iterator

from gpudoctor.model import CudaVersion, Driver, PackageVersion, Python, System, Toolkit
from gpudoctor.parsers.linux import parse_os_release, parse_proc_driver_version
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.platform_facts import SYS_PLATFORMS, wsl_of_kernel
from gpudoctor.readers.text import Patterns, Text

_SAYS = Patterns("system_commands")

LONGEST_VERSION = 200  # characters of /proc/driver/nvidia/version
_MODULE_VERSION = "NVRM version:"


def read_nvcc(text: Text) -> Facts:
    """Return the toolkit that nvcc on PATH belongs to, by the version that was printed last."""
    releases = list(_SAYS.nvcc_version.finditer(text.flat))
    build = _SAYS.nvcc_build.search(text.flat)
    shown = releases[-1][1] if releases else build[1] if build else None
    paths = (_SAYS.which_nvcc.match(line) or _SAYS.which_nvcc_windows.match(line) for line in text.lines)
    path = next((match[1] for match in paths if match), None)
    if path is None and shown is None and _SAYS.no_nvcc.search(text.flat):
        path = ""
    version = CudaVersion.parse(shown) if shown else None
    return {} if path is None and version is None else {"toolkit": Toolkit(nvcc_path=path, nvcc_version=version)}


def read_system(text: Text) -> Iterator[Facts]:
    """Yield the facts, each command's for itself."""
    yield from _kernel(text)
    yield from _distribution(text)
    yield from _windows(text)
    yield from _modules(text)
    yield from _compiler(text)
    yield from _python(text)


def _kernel(text: Text) -> Iterator[Facts]:
    uname = _SAYS.uname.search(text.flat)
    version = uname or _SAYS.proc_version.search(text.flat)
    alone = None if version else next(filter(None, map(_SAYS.uname_release.match, text.lines)), None)
    darwin = _SAYS.darwin.search(text.flat)
    if version or alone:
        kernel = (version or alone)[1]  # type: ignore[index]
        machine = uname[2] if uname else None
        yield {"system": System(os="linux", kernel=kernel, machine=machine, wsl=wsl_of_kernel(kernel))}
    elif darwin:
        yield {"system": System(os="darwin", machine=darwin[1])}


def _distribution(text: Text) -> Iterator[Facts]:
    lines = [line.strip() for line in text.lines if re.match(r"\s*(?:ID|VERSION_ID|PRETTY_NAME)=", line)]
    release = parse_os_release("\n".join(lines)) if lines else {}
    if len(release.keys() - {"ID"}) > 0:
        yield _linux(release.get("ID"), release.get("VERSION_ID"), release.get("PRETTY_NAME"))
    pairs = (line.partition(":") for line in text.lines if _SAYS.lsb.match(line))
    told = {name.strip(): value.strip() for name, _, value in pairs}
    if "Distributor ID" in told:
        name = told["Distributor ID"].lower()
        yield _linux({"redhatenterprise": "rhel"}.get(name, name), told.get("Release"), told.get("Description"))


def _linux(distribution: str | None, version: str | None, name: str | None) -> Facts:
    identity = distribution if distribution and re.fullmatch(r"[a-z0-9._-]{2,30}", distribution) else None
    number = version if version and re.fullmatch(r"[\w.]{1,20}", version) else None
    shown = name[:100] if name else None
    return {"system": System(os="linux", distribution=identity, distribution_version=number, distribution_name=shown)}


def _windows(text: Text) -> Iterator[Facts]:
    """Yield Windows, or WSL on it: a report of WSL shows both."""
    row = next(filter(None, map(_SAYS.wsl_row.match, text.lines)), None)
    status = _SAYS.wsl_status.search(text.flat)
    if row or status or _SAYS.wsl_version.search(text.flat):
        found = row or status
        yield {"system": System(os="linux", wsl=int(found[1]) if found else 2)}
    elif "wsl" in text.lowered or re.search(r"(?m)^[\w.-]{1,40}@[\w.-]{1,40}:", text.raw):
        return
    elif any(map(_SAYS.windows.search, text.lines)) or _SAYS.windows_prompt.search(text.raw):
        yield {"system": System(os="windows")}


def _modules(text: Text) -> Iterator[Facts]:
    loaded = {match[1] for match in map(_SAYS.module.match, text.lines) if match}
    asked = {
        match[1] for number, match in enumerate(map(_SAYS.lsmod.match, text.lines)) if match and _goes_on(text, number)
    }
    driver = Driver(
        module_loaded=True if "nvidia" in loaded else False if "nvidia" in asked and loaded <= {"nouveau"} else None,
        uvm_loaded=True if "nvidia_uvm" in loaded else False if "nvidia" in loaded & asked else None,
        nouveau_loaded=True if "nouveau" in loaded else False if "nouveau" in asked else None,
    )
    if driver != Driver():
        yield {"driver": driver, "system": System(os="linux")}
    yield from _module_version(text)
    boot = _SAYS.secure_boot.search(text.flat)
    if boot:
        yield {"system": System(secure_boot=(boot[1] or boot[2]) == "enabled")}
    modules = [match for match in map(_SAYS.dkms.match, text.lines) if match]
    if modules:
        uname = _SAYS.uname.search(text.flat)
        built = {match[2] for match in modules if match[3] == "installed"}
        for_kernel = None if uname is None else uname[1] in built
        yield {"driver": Driver(installed=True, dkms=True, module_built_for_kernel=for_kernel)}


def _module_version(text: Text) -> Iterator[Facts]:
    """Yield what /proc/driver/nvidia/version says, which is there only while the module is loaded."""
    start = text.flat.find(_MODULE_VERSION)
    with contextlib.suppress(ValueError):
        module = parse_proc_driver_version(text.flat[start : start + LONGEST_VERSION] if start >= 0 else "")
        version, flavor = module.version, module.flavor
        yield {"driver": Driver(installed=True, module_loaded=True, module_version=version, module_flavor=flavor)}


def _goes_on(text: Text, number: int) -> bool:
    """Tell whether something stands after a line: a text that ends with a command may be cut off before its answer."""
    return any(line.strip() for line in text.lines[number + 1 :])


def _compiler(text: Text) -> Iterator[Facts]:
    for line in text.lines:
        gcc = _SAYS.gcc.search(line) or _SAYS.gcc_verbose.match(line)
        if gcc and not re.search(r"Linux version|\bGCC version:|built with|compiled (?:with|by)", line, re.IGNORECASE):
            yield {"toolkit": Toolkit(host_compiler="gcc", host_compiler_version=_numbers(gcc[1]))}
            return
    cl = _SAYS.cl.search(text.flat)
    if cl:
        yield {"toolkit": Toolkit(host_compiler="cl", host_compiler_version=_numbers(cl[1]))}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _python(text: Text) -> Iterator[Facts]:
    match = next(filter(None, map(_SAYS.python.match, text.lines)), None)
    if match:
        yield {"python": Python(version=PackageVersion(match[1]))}
    on = next((m[1] for m in map(_SAYS.on.match, text.lines) if m), match[2] if match else None)
    if on:
        yield {"system": System(os=SYS_PLATFORMS[on])}
