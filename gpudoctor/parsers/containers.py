"""Container engines: their configuration, and what their API says of containers, images and itself.

Source: https://docs.docker.com/reference/api/engine/ (SystemInfo, ContainerInspect, ImageInspect).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpudoctor.model.containers import ContainerEngine, ContainerSetup, GpuRequest
from gpudoctor.untrusted import shown_value

_DEVICE_NAME = r'^[\s-]*"?name"?\s*:\s*["\']?([\w.:-]+)'
_KIND = r'^\s*"?kind"?\s*:\s*["\']?([\w./-]+)'


def names_nvidia_runtime(daemon_json: str) -> bool:
    """Return whether Docker's daemon.json has the runtime "nvidia", as the default or by name.

    Raises:
        ValueError: the text is not a JSON object.
    """
    try:
        content = json.loads(daemon_json) if daemon_json.strip() else {}
    except RecursionError:
        raise ValueError("daemon.json is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError(f"daemon.json does not contain an object: {daemon_json[:200]!r}")
    runtimes = content.get("runtimes")
    return content.get("default-runtime") == "nvidia" or (isinstance(runtimes, dict) and "nvidia" in runtimes)


def mentions_nvidia_runtime(config: str) -> bool:
    """Return whether a TOML configuration (containerd, CRI-O, Podman) or hook names the runtime outside of comments."""
    lines = (line.partition("#")[0] for line in config.splitlines())
    return any(re.search(r"runtimes\.\"?nvidia\b|nvidia-container-runtime|nvidia-cdi", line) for line in lines)


def parse_cdi_devices(text: str) -> tuple[str, ...]:
    """Return the qualified names of a CDI specification's devices: "nvidia.com/gpu=all".

    Written for the files of nvidia-ctk: YAML in block style, where only devices have a name, or JSON.

    Raises:
        ValueError: the text has no kind.
    """
    kind, names = _json_devices(text) if text.lstrip().startswith("{") else _yaml_devices(text)
    if not kind:
        raise ValueError(f"not a CDI specification: {text[:200]!r}")
    return tuple(f"{kind}={name}" for name in names)


def _json_devices(text: str) -> tuple[str, list[str]]:
    try:
        content: dict[str, Any] = json.loads(text)
    except RecursionError:
        raise ValueError("the CDI specification is nested too deeply") from None
    devices = content.get("devices")
    names = [device.get("name") for device in devices if isinstance(device, dict)] if isinstance(devices, list) else []
    return str(content.get("kind") or ""), [str(name) for name in names if name]


def _yaml_devices(text: str) -> tuple[str, list[str]]:
    kind = re.search(_KIND, text, re.MULTILINE)
    return kind[1] if kind else "", re.findall(_DEVICE_NAME, text, re.MULTILINE)


VARIABLES = frozenset(
    (
        *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA", "NVIDIA_DISABLE_REQUIRE"),
        *("CUDA_VERSION", "CUDA_VISIBLE_DEVICES"),
    )
)
"""The variables that are kept; the others may hold secrets."""

DEVICES = re.compile(r"/dev/(?:nvidia|dxg|infiniband)[\w/-]{0,80}")
SHM = "/dev/shm"  # noqa: S108 - a path in the container, which is not opened
MOST = 64  # of requests, device files, runtimes and CDI devices
LONGEST = 4000  # characters: NVIDIA_REQUIRE_CUDA of an image lists dozens of drivers


def parse_engine(
    info: Mapping[str, Any], version: Mapping[str, Any], *, address: str, has_device_links: bool | None
) -> ContainerEngine:
    """Return the engine. info, version: the answers of /info and /version. address: "unix:///var/run/docker.sock"."""
    components = [str(part.get("Name") or "") for part in version.get("Components") or ()]
    is_podman = any("podman" in name.lower() for name in components)
    # In a virtual machine an engine has the driver of its machine only if that is of WSL.
    is_virtual = "Docker Desktop" in str(info.get("OperatingSystem") or "")
    shares_driver = not is_virtual or "microsoft" in str(info.get("KernelVersion") or "").lower()
    is_local = address.startswith(("unix:", "npipe:")) and shares_driver
    discovered = info.get("DiscoveredDevices")
    return ContainerEngine(
        name="podman" if is_podman else "docker",
        is_local=is_local,
        runtimes=None if info.get("Runtimes") is None else _texts(list(info["Runtimes"])),
        default_runtime=_text(info.get("DefaultRuntime")),
        cdi_folders=_texts(info.get("CDISpecDirs")),
        cdi_devices=_texts([device.get("ID") for device in discovered if isinstance(device, dict)])
        if isinstance(discovered, list)
        else None,
        cgroup_driver=_text(info.get("CgroupDriver")),
        has_device_links=has_device_links if is_local else None,
    )


def parse_container(about: Mapping[str, Any], image: Mapping[str, Any] | None, engine: str | None) -> ContainerSetup:
    """Return how a container is started.

    about, image: what `inspect` says of it and of its image. engine: "docker" or "podman".
    """
    host, config = about.get("HostConfig") or {}, about.get("Config") or {}
    mounted = [str(mount.get("Destination")) for mount in about.get("Mounts") or ()]
    mounted += [str(mount.get("Target")) for mount in host.get("Mounts") or ()]
    return ContainerSetup(
        name=str(about.get("Name") or about.get("Id") or "").lstrip("/"),
        kind="container",
        service=_text((config.get("Labels") or {}).get("com.docker.compose.service")),
        image=_text(config.get("Image")),
        state=_text((about.get("State") or {}).get("Status")),
        gpu_requests=_requests(host.get("DeviceRequests"), engine),
        device_files=device_files(str(device.get("PathOnHost") or "") for device in host.get("Devices") or ()),
        is_privileged=bool(host.get("Privileged")),
        runtime=_text(host.get("Runtime")) or "",
        environment=variables_of(config.get("Env")),
        image_environment=None if image is None else variables_of((image.get("Config") or {}).get("Env")),
        shm_size_bytes=host.get("ShmSize") or None,
        ipc=_text(host.get("IpcMode")) or "private",
        has_own_shm=SHM in mounted or SHM in (host.get("Tmpfs") or {}),
        memlock_bytes=_memlock(host.get("Ulimits")),
    )


def parse_image(name: str, about: Mapping[str, Any]) -> ContainerSetup:
    """Return the setup of an image without a container."""
    variables = variables_of((about.get("Config") or {}).get("Env"))
    return ContainerSetup(name=name, kind="image", image=name, environment=variables, image_environment=variables)


def _requests(found: Any, engine: str | None) -> tuple[GpuRequest, ...] | None:
    """Return the requests; unknown for Podman, whose compatible API leaves its CDI devices out."""
    if not found:
        return None if engine == "podman" else ()
    return tuple(
        GpuRequest(
            driver=str(request.get("Driver") or ""),
            count=request.get("Count"),
            device_ids=_texts(request.get("DeviceIDs")) or (),
            capabilities=tuple(str(name) for names in request.get("Capabilities") or () for name in names),
        )
        for request in found[:MOST]
    )


def device_files(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if DEVICES.fullmatch(path))[:MOST]


def variables_of(environment: Sequence[str] | None) -> dict[str, str]:
    pairs = (str(item).partition("=") for item in environment or ())
    return {name: shown_value(plain(value)) for name, _, value in pairs if name in VARIABLES}


def _memlock(limits: Any) -> int | None:
    """Return the soft limit; 0 for unlimited, None if the engine uses its default, which it does not report."""
    found = [limit.get("Soft") for limit in limits or () if limit.get("Name") == "memlock"]
    return max(found[0], 0) if found and isinstance(found[0], int) else None


def _text(value: Any) -> str | None:
    return plain(str(value)) if value else None


def _texts(value: Any) -> tuple[str, ...] | None:
    return None if not isinstance(value, list) else tuple(plain(str(item)) for item in value[:MOST])


def plain(text: str) -> str:
    """Return `text` on one line, without control characters, and cut if it is too long for any of its kind."""
    return "".join(character if character.isprintable() else " " for character in text[:LONGEST])
