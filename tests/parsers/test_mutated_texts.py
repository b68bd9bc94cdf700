"""Whatever is on a machine, a parser of host texts raises nothing but ValueError."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudoctor.parsers import conda, containers, libraries, linux, requirements_files, toolkit

PYPROJECT = """[project]
dependencies = ["torch>=2.4", "x[y]==1.0; python_version < '3.9'"]
[tool.poetry.dependencies]
a = "^1.2"
b = {version = "~0.2", optional = true}
"""
PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "os-release": (linux.parse_os_release, 'ID=ubuntu\nVERSION_ID="24.04"\n'),
    "driver": (
        linux.parse_proc_driver_version,
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu",
    ),
    "nvcc": (toolkit.parse_nvcc_version, "Cuda compilation tools, release 12.4, V12.4.131"),
    "version.json": (toolkit.parse_version_json, '{"cuda": {"version": "12.4.1"}}'),
    "version.txt": (toolkit.parse_version_txt, "CUDA Version 10.1.243"),
    "folder": (toolkit.parse_folder_name, "/usr/local/cuda-12.4"),
    "host_config": (toolkit.parse_newest_gcc, "#if __GNUC__ > 13\n#error\n"),
    "compiler": (toolkit.parse_compiler_version, "gcc (GCC) 13.2.1 20231011 (Red Hat 13.2.1-4)\n"),
    "ldconfig": (libraries.parse_ldconfig, "1 libs found in cache\n\tliba.so.1 (libc6,x86-64) => /a\n"),
    "uevent": (linux.parse_pci_uevent, "PCI_CLASS=30000\nPCI_ID=10DE:2684\nPCI_SLOT_NAME=0000:01:00.0\n"),
    "kfd": (linux.parse_gfx_target, "gfx_target_version 110000\n"),
    "xid": (
        lambda text: linux.parse_xids(text.splitlines()),
        "[1.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python, GPU has fallen off the bus.",
    ),
    "messages": (lambda text: linux.driver_messages(text.splitlines(), 5), "Jan 1 host kernel: [1.0] NVRM: x"),
    "daemon.json": (containers.names_nvidia_runtime, '{"runtimes": {"nvidia": {"path": "x"}}}'),
    "toml": (containers.mentions_nvidia_runtime, "[a.runtimes.nvidia]\n"),
    "cdi yaml": (containers.parse_cdi_devices, 'devices:\n- name: "0"\nkind: nvidia.com/gpu\n'),
    "cdi json": (containers.parse_cdi_devices, '{"kind": "nvidia.com/gpu", "devices": [{"name": "0"}]}'),
    "requirements": (
        partial(requirements_files.parse_requirements_txt, source="r", platform={}),
        "torch>=2.4,<3 # x\nx[y]==1.0; python_version < '3.9' \\\n --hash=a:b\nhttps://x/a-1-b.whl\n",
    ),
    "pyproject": (partial(requirements_files.parse_pyproject, platform={}), PYPROJECT),
    "setup.cfg": (
        partial(requirements_files.parse_setup_cfg, platform={}),
        "[options]\ninstall_requires =\n  torch\n[options.extras_require]\na = b\n",
    ),
    "conda": (
        partial(conda.parse_conda_environment, source="e", platform={}),
        "dependencies:\n  - pytorch=2.1=*cuda*\n  - a >=1,<2\n  - pip:\n    - torch==2.1\n",
    ),
}
PIECES = st.text(max_size=8) | st.sampled_from(
    ["\x00", "\n", "\ufffd", "9" * 400, "[", "{", '"', "%", "²", "\u0661", "-"]
)


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_only_value_error(name: str, data: st.DataObject) -> None:
    parse, text = PARSERS[name]
    parse(text)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + data.draw(PIECES) + text[end:]
    with contextlib.suppress(ValueError):
        parse(text)
