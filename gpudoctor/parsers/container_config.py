"""Container engines: does a configuration name the NVIDIA runtime, and which devices do CDI specifications offer."""

from __future__ import annotations

import json
import re
from typing import Any

_DEVICE_NAME = r'^[\s-]*"?name"?\s*:\s*["\']?([\w.:-]+)'
_KIND = r'^\s*"?kind"?\s*:\s*["\']?([\w./-]+)'


def names_nvidia_runtime(daemon_json: str) -> bool:
    """Tell whether Docker's daemon.json has the runtime "nvidia", as the default or by name.

    Raises:
        ValueError: the text is no JSON object.
    """
    try:
        content = json.loads(daemon_json) if daemon_json.strip() else {}
    except RecursionError:
        raise ValueError("daemon.json is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError(f"daemon.json holds no object: {daemon_json[:200]!r}")
    runtimes = content.get("runtimes")
    return content.get("default-runtime") == "nvidia" or (isinstance(runtimes, dict) and "nvidia" in runtimes)


def mentions_nvidia_runtime(config: str) -> bool:
    """Tell whether a TOML configuration (containerd, CRI-O, Podman) or hook names the runtime outside of comments."""
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
