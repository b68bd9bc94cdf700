"""The commands of every fix that has code, on many machines, compared with `every_fix.json`.

`python -m tests.remedies.test_every_fix` writes the file again; its difference is what to look at. It has no sentence.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import gpudoctor.remedies
from gpudoctor.conclusions import Facts
from gpudoctor.model import (
    SECTIONS,
    ComputeCapability,
    Container,
    ContainerSetup,
    CudaVersion,
    Cupy,
    Device,
    Driver,
    DriverVersion,
    Fix,
    Package,
    PackageVersion,
    Python,
    Snapshot,
    System,
    Toolkit,
    Torch,
)
from gpudoctor.model.conclusions import CONCLUSIONS
from gpudoctor.remedies import fixes
from gpudoctor.remedies.fixes import builder_of, remedies_of
from tests.test_changed_machines import MACHINES as RECORDED
from tests.test_changed_machines import snapshot_of

FILE = Path(__file__).parent / "every_fix.json"
ARGUMENTS: dict[str, Any] = {
    "newest": 13, "gcc": "14", "package": "flash-attn", "cuda": CudaVersion(12, 4), "nvcc": CudaVersion(11, 8),
    "architecture": "sm_90", "at_most": CudaVersion(12, 2), "by_request": True, "wish": "--gpus all",
    "options": "--gpus all", "service_lines": "gpus: all", "granted": "compute,utility", "requirements": ("numba",),
    "summary": "Do it", "names": ("cupy", "cupy-cuda12x"), "keep": "cupy-cuda12x", "name": "CUDA_HOME",
    "built_with": "12", "asks": "CUDA 12", "cuda_major": 12, "version": "3.11", "major": 9, "asked_for": 8,
    "of_torch": 9, "wheel": "nvidia-cudnn-cu12", "certain": True, "part": "cupy.cublas", "library": "cublas",
    "requirement": "numpy<2", "installed_fits": False, "nvml_index": 1, "in_container": None, "probe": "torch",
    "versions": {"torchvision": "0.19.1"}, "companion": "torchvision", "source": "/work/torch.py", "module": "torch",
    "platform": "linux_x86_64", "missing": "torch", "nvml_indices": (0, 1), "value": "1", "causes": ("copied",),
    "setup": ContainerSetup(name="app", kind="service", service="app", image="a/b:1"),
}  # fmt: skip
"""What a fix is asked with if it needs an argument."""
CHOICES: dict[str, tuple[Any, ...]] = {
    "fault": ("misconfigured", "refused", "engine-too-old", "ldconfig", "driver-in-image"),
    "engine": ("podman",),
    "at_least": (CudaVersion(12, 4), CudaVersion(13, 0)),
    "at_most": (CudaVersion(11, 8), CudaVersion(12, 2)),
    "needed": (CudaVersion(12, 4), CudaVersion(13, 0)),
    "in_container": (True, False),
    "major": (8,),
}
"""What else it is asked with."""
NOT_ASKED = (
    "refresh-image",
    "replace-extension",
    "toolkit-for-gpu",
)  # with an image, a package and a GPU, which their checks' tests have
DISTRIBUTIONS = (
    "ubuntu debian pop linuxmint zorin kali elementary raspbian fedora rhel centos rocky almalinux ol amzn "
    "opensuse-leap opensuse-tumbleweed sles sled arch manjaro endeavouros cachyos nixos alpine gentoo void"
)
PYTHONS = {
    "uv": Python(version=PackageVersion("3.12.3"), executable="/v/bin/python", environment="venv", installer="uv"),
    "conda": Python(version=PackageVersion("3.10.1"), executable="/c/envs/ml/bin/python", prefix="/c/envs/ml",
                    environment="conda", installer="conda"),
    "conda with pip": Python(executable="/c/bin/python", prefix="/c", environment="conda", installer="pip"),
    "of the system": Python(executable="/usr/bin/python3", environment="system", externally_managed=True),
    "managed, in a venv": Python(executable="/v/bin/python", environment="venv", externally_managed=True),
    "managed, uv": Python(executable="/usr/bin/python3", installer="uv", externally_managed=True),
}  # fmt: skip
CONTAINERS = {
    "snap": Container(docker_snap=True), "desktop": Container(docker_desktop=True),
    "rootless": Container(rootless=True), "toolkit": Container(toolkit_installed=True),
    "no toolkit": Container(toolkit_installed=False), "compose": Container(compose=True),
    "docker": Container(engine="docker"), "podman": Container(engine="podman"),
    "singularity": Container(engine="singularity"), "kubernetes": Container(engine="kubernetes"),
    "k3s": Container(engine="kubernetes", cluster="k3s"),
}  # fmt: skip


def machines() -> Iterator[tuple[str, Snapshot]]:
    yield "nothing known", Snapshot()
    for name in RECORDED:
        yield name, snapshot_of(name)
    for distribution in DISTRIBUTIONS.split():
        yield distribution, Snapshot(system=System(os="linux", distribution=distribution))
    for os in ("windows", "darwin", "linux"):
        yield os, Snapshot(system=System(os=os))
    yield "root", Snapshot(system=System(os="linux", distribution="debian", user_is_root=True))
    yield "WSL", Snapshot(system=System(os="linux", distribution="ubuntu", wsl=2))
    for engine in ("docker", "podman", "kubernetes", "singularity"):
        yield f"inside {engine}", Snapshot(system=System(os="linux", container=engine, user_is_root=True))
    for name, python in PYTHONS.items():
        yield f"Python {name}", Snapshot(python=python, system=System(os="linux", machine="x86_64"))
    for name, container in CONTAINERS.items():
        for place in (None, System(os="linux"), System(os="windows")):
            yield f"container {name} on {place and place.os}", Snapshot(container=container, system=place)
    for branch, capability in product(("470.57.02", "535.54.03", "580.65.06"), ("6.1", "8.9", "12.0")):
        yield (
            f"driver {branch} and {capability}",
            Snapshot(
                system=System(os="linux", machine="x86_64", distribution="ubuntu"),
                driver=Driver(version=DriverVersion.parse(branch)),
                devices=(Device(nvml_index=0, compute_capability=ComputeCapability.parse(capability)),),
                python=PYTHONS["uv"],
                torch=Torch(version=PackageVersion("2.4.1+cu121"), build="cuda", cuda_version=CudaVersion(12, 1)),
                toolkit=Toolkit(nvcc_version=CudaVersion(12, 4)),
                cupy=Cupy(distributions=(Package(name="cupy-cuda11x", version=PackageVersion("12.0.0")),)),
            ),
        )


def names() -> list[str]:
    for module in iter_modules(gpudoctor.remedies.__path__):
        import_module(f"gpudoctor.remedies.{module.name}")
    return sorted(name for name in fixes._builders if name not in NOT_ASKED and not name.startswith("made-up"))


def ways(name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments to ask the fix with: the least it needs, and each choice that it has."""
    parameters = inspect.signature(builder_of(name)).parameters
    own = {
        key: p for key, p in parameters.items() if key not in SECTIONS and key not in CONCLUSIONS and key != "machine"
    }
    least = {
        key: ARGUMENTS.get(key, f"a-{key}") for key, parameter in own.items() if parameter.default is parameter.empty
    }
    yield least
    for key, parameter in own.items():
        choices = CHOICES.get(key, (not parameter.default,) if isinstance(parameter.default, bool) else ())
        yield from ({**least, key: choice} for choice in choices if least.get(key) != choice)


def commands_of(name: str) -> dict[str, Any]:
    """Return the commands and needs of its remedies, and the machines on which they are these."""
    found: dict[str, list[str]] = {}
    for arguments in ways(name):
        way = ", ".join(f"{key}={value}" for key, value in arguments.items() if ARGUMENTS.get(key) is not value)
        for machine, snapshot in machines():
            made = remedies_of((Fix(name, **arguments),), Facts(snapshot))
            content = json.dumps([[list(remedy.commands), list(remedy.needs)] for remedy in made])
            found.setdefault(content, []).append(f"{machine} ({way})" if way else machine)
    return {"; ".join(where): json.loads(content) for content, where in found.items()}


@pytest.mark.parametrize("name", names())
def test_the_commands_of_a_fix(name: str) -> None:
    assert commands_of(name) == json.loads(FILE.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    parts = []
    for name in names():
        lines = (f"{json.dumps(where)}:\n  {json.dumps(content)}" for where, content in commands_of(name).items())
        parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
