"""Output of Docker and NVIDIA's container tools, and their configuration files."""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpudoctor.model import Container, Environment
from gpudoctor.parsers.containers import mentions_nvidia_runtime, names_nvidia_runtime, parse_cdi_devices
from gpudoctor.readers.container_start import bytes_of, cuda_of_image, is_image, known_variables
from gpudoctor.readers.facts import Facts, joined
from gpudoctor.readers.text import Text, regex

MOST_OBJECTS = 20
_SERVER = regex(
    r"\b(?:Server Version:|Docker version) \d{1,2}\.\d{1,2}\.\d{1,3}"
    r"|Server: Docker (?:Desktop )?\S+(?: - \S+)?(?: \(\S+\))? Engine: Version: \d{1,2}\.\d{1,2}\.\d{1,3}"
)
_RUNTIMES = regex(r"(?m)^[^\S\n]{0,40}Runtimes: ([\w. -]{2,300})$", "Runtimes: ")
_DEFAULT = regex(r"\bDefault Runtime: ([\w.-]+)", "Default Runtime")
_CDI_DEVICE = regex(r"\b(?:cdi: )?(nvidia\.com/gpu=[\w:.-]{1,80})")
_LISTED = regex(r"Found (\d{1,3}) CDI devices", "CDI devices")
_CTK = regex(
    r"NVIDIA Container (?:Toolkit|Runtime(?: Hook)?) (?:CLI )?version \d|nvidia-ctk version|\bcli-version: \d+\.\d+"
    r"|\bii nvidia-container-toolkit(?:-base)? +\d|\bnvidia-container-toolkit-\d+\.\d+\S*\.(?:x86_64|aarch64)",
    "NVIDIA Container |nvidia-ctk version|cli-version: |nvidia-container-toolkit",
)
_NO_CTK = regex(
    r"(?:nvidia-ctk|nvidia-container-cli): (?:command )?not found|Command 'nvidia-ctk' not found"
    r"|command not found: nvidia-c|exec: \"?nvidia-container-(?:runtime|cli)(?:-hook)?\"?: executable file not found",
    "not found",
)
_SNAP = regex(
    r"snap install (?:--\w+ )?docker\b|/snap/docker/|/snap/bin/docker\b|/var/snap/docker"
    r"|\bdocker \S+ from Canonical|snap\.docker\b",
    "snap|from Canonical",
)
_DESKTOP = regex(
    r"Operating System: Docker Desktop|\bdocker-desktop\b|Server: Docker Desktop|Context: desktop-linux",
    "Desktop|desktop",
)
_SERVICE = regex(r"^(\s*)[\w.-]{1,60}:\s*$")
_KEY = regex(r"^\s*(?:-\s+)?[\"']?([\w-]{1,40})[\"']?\s*:\s*(.{0,300})$")


def read(text: Text) -> Facts:
    """Return the facts of the engine, its configuration and the container's definition."""
    container = Container(**{**_engine(text), **_toolkit(text), **_configuration(text)})
    facts = {"container": container} if container != Container() else {}
    return joined(facts, *_inspected(text), *_compose(text))


def _engine(text: Text) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    runtimes = _RUNTIMES.search("\n".join(text.lines))
    default = _DEFAULT.search(text.flat)
    if runtimes and "runc" in runtimes[1] + (default[1] if default else ""):
        found["nvidia_runtime_configured"] = "nvidia" in runtimes[1].split() or bool(default and default[1] == "nvidia")
    if _SNAP.search(text.flat):
        found["docker_snap"] = True
    if _DESKTOP.search(text.flat):
        found["docker_desktop"] = True
    if found or _SERVER.search(text.flat):
        found["docker_installed"] = True
    if re.search(r"Security Options:.{0,200}\brootless\b|Context: rootless\b", text.flat):
        found["rootless"] = True
    return found


def _toolkit(text: Text) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    if _CTK.search(text.flat):
        found["toolkit_installed"] = True
    elif _NO_CTK.search(text.flat):
        found["toolkit_installed"] = False
    listed = _LISTED.search(text.flat)
    # `nvidia-ctk cdi list`, and `docker info` since Docker 28.2
    shown = text.flat[listed.end() : listed.end() + 8000] if listed else ""
    discovered = re.search(r"Discovered Devices: ((?:cdi: \S{1,100} ?){1,100})", text.flat)
    named = _CDI_DEVICE.findall(shown) or _CDI_DEVICE.findall(discovered[1] if discovered else "")
    if named or (listed and listed[1] == "0"):
        found["cdi_devices"] = tuple(dict.fromkeys(named))[:100]
        if listed:
            found["toolkit_installed"] = True
    return found


def _configuration(text: Text) -> Mapping[str, Any]:
    """Return whether the configuration of Docker, containerd or CRI-O names the NVIDIA runtime, and the CDI file."""
    found: dict[str, Any] = {}
    for block in _objects(text.raw):
        if any(f'"{key}"' in block for key in ("runtimes", "default-runtime", "log-driver", "data-root")):
            try:
                found["nvidia_runtime_configured"] = names_nvidia_runtime(block)
            except ValueError:
                continue
    lines = "\n".join(text.lines)
    if re.search(r"(?m)^[^\S\n]{0,40}\[plugins\..{0,120}runtimes\.|^[^\S\n]{0,40}\[crio\.runtime\.runtimes", lines):
        found["nvidia_runtime_configured"] = mentions_nvidia_runtime(lines)
    if re.search(r"(?m)^cdiVersion:", lines) and re.search(r"(?m)^kind: [\"']?nvidia\.com/", lines):
        found["cdi_devices"] = parse_cdi_devices(lines)[:100]
    return found


def _objects(raw: str) -> Iterator[str]:
    """Yield the complete JSON objects that start a line: daemon.json, or output of `docker inspect`."""
    for match in itertools.islice(re.finditer(r"(?m)^[^\S\n]{0,8}\{", raw), MOST_OBJECTS):
        depth = 0
        for at in range(match.end() - 1, min(len(raw), match.end() + 20000)):
            depth += (raw[at] == "{") - (raw[at] == "}")
            if depth == 0:
                yield raw[match.end() - 1 : at + 1]
                break


def _inspected(text: Text) -> Iterator[Facts]:
    """Yield the requested devices, the runtime and the shared memory from `docker inspect`."""
    if '"HostConfig"' not in text.flat and '"DeviceRequests"' not in text.flat:
        return
    requests = re.search(r'"DeviceRequests": ?(null|\[)(.{0,400})', text.flat)
    runtime = re.search(r'"Runtime": ?"([\w.-]{1,60})"', text.flat)
    size = re.search(r'"ShmSize": ?(\d{1,15})', text.flat)
    image = re.search(r'"Image": ?"([^"@]{1,200})"', text.flat)
    asked = None if requests is None else requests[1] == "[" and re.search(r'"gpu"|"nvidia', requests[2]) is not None
    if runtime and runtime[1] == "nvidia":
        asked = True
    named = image[1] if image and is_image(image[1]) and not image[1].startswith("sha256:") else None
    yield {
        "container": Container(
            engine="docker",
            docker_installed=True,
            gpus_requested=asked,
            shm_size_bytes=int(size[1]) if size else None,
            image=named,
            image_cuda_version=cuda_of_image(named or ""),
        )
    }


def _compose(text: Text) -> Iterator[Facts]:
    """Yield the facts of a compose file's services, unless the report is about a service without the GPU.

    Comments are removed, because people comment the section `deploy` out.
    """
    lines = [re.sub(r"(^|\s)#.*$", "", line).rstrip() for line in text.lines]
    start = next((number for number, line in enumerate(lines) if re.match(r"\s{0,8}services:\s*$", line)), None)
    if start is None:
        return
    margin = _indentation(lines[start])
    ends = (n for n, line in enumerate(lines) if n > start and line and _indentation(line) <= margin)
    body = lines[start + 1 : min(next(ends, len(lines)), start + 2000)]
    keys = [(match[1], match[2].strip("\"' ")) for match in map(_KEY.match, body) if match]
    values = dict(reversed(keys))
    flat = " ".join(" ".join(body).split())
    device = re.search(r"capabilities: ?(?:\[[^\]]{0,60}|(?:- ?[\"']?\w+[\"']? ){0,3}- ?)[\"']?gpu\b", flat)
    asked = bool(device) or values.get("runtime") == "nvidia" or "gpus" in values or "nvidia.com/gpu=" in flat
    depth = next((_indentation(line) for line in body if line), 0)
    services = sum(len(match[1]) == depth for match in map(_SERVICE.match, body) if match)
    image = values.get("image", "")
    whole = ("image" in values or "build" in values) and not any(line.strip() in ("...", "…") for line in text.lines)
    yield {
        "container": Container(
            engine="docker",
            compose=True,
            image=image if is_image(image) and services == 1 else None,
            image_cuda_version=cuda_of_image(image) if services == 1 else None,
            gpus_requested=True if asked else False if services == 1 and whole else None,
            shm_size_bytes=bytes_of(values.get("shm_size", "")),
        )
    }
    variables = re.findall(r"(?:^| )(?:- ?)?[\"']?([A-Z][A-Z0-9_]{2,60})(?:=|: ?[\"']?)([^\s\"']{1,200})", flat)
    known = known_variables(variables)
    if known:
        yield {"environment": Environment(variables=known)}


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
