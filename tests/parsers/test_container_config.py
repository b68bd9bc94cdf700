"""Configuration files of container engines."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.container_config import mentions_nvidia_runtime, names_nvidia_runtime, parse_cdi_devices

CONFIGURED = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "args": []}}, "log-driver": "json-file"}'
CDI_YAML = """---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  hooks:
  - args:
    - nvidia-ctk
    hookName: createContainer
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: "0"
- containerEdits: {}
  name: all
kind: nvidia.com/gpu
"""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(CONFIGURED, True, id="runtime"),
        pytest.param('{"default-runtime": "nvidia"}', True, id="default"),
        pytest.param('{"runtimes": {"crun": {"path": "/usr/bin/crun"}}}', False, id="another runtime"),
        pytest.param('{"insecure-registries": ["nvidia.example"]}', False, id="the word elsewhere"),
        pytest.param('{"runtimes": null}', False, id="null"),
        pytest.param("", False, id="empty file"),
    ],
)
def test_daemon_json(text: str, named: bool) -> None:
    assert names_nvidia_runtime(text) is named


@pytest.mark.parametrize("text", ["[]", '{"runtimes": {"nvidia": {}},}', "[" * 100_000])
def test_broken_daemon_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        names_nvidia_runtime(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]\n', True),
        ('BinaryName = "/usr/bin/nvidia-container-runtime"\n', True),
        ('# BinaryName = "/usr/bin/nvidia-container-runtime"\n', False),
        ("version = 2\n", False),
    ],
)
def test_toml(text: str, named: bool) -> None:
    assert mentions_nvidia_runtime(text) is named


def test_cdi_devices() -> None:
    assert parse_cdi_devices(CDI_YAML) == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
    text = '{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0"}, {"name": "all"}, 7]}'
    assert parse_cdi_devices(text) == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
    assert parse_cdi_devices('kind: "amd.com/gpu"\n') == ()


@pytest.mark.parametrize("text", ["", "devices:\n- name: a\n", "{}", "{" * 100_000])
def test_another_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_cdi_devices(text)
