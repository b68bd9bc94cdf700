"""The section system, from what Linux distributions, WSL, containers and other systems answer."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import PciGpu, System
from gpudoctor.probes.host import ProbeContext
from gpudoctor.probes.system import SECURE_BOOT, parse_system
from tests.probes.asked import asked


def machine(
    *,
    files: dict[str, str | None] | None = None,
    listed: tuple[str, ...] = (),
    values: dict[str, Any] | None = None,
    kernel: str = "6.8.0-45-generic",
    platform: str = "linux",
) -> dict[str, Any]:
    """Return the answer of a machine with these files (None: not readable) and paths."""
    question = asked("system", ProbeContext(environ={}, directory=Path())).arguments
    unread = [path for path in files or {} if not any(fnmatchcase(path, pattern) for pattern in question["files"])]
    assert unread == []
    listings = {
        pattern: {"paths": [path for path in listed if _matches(path, pattern)]} for pattern in question["listings"]
    }
    known = {
        "platform": platform,
        "uname": {"system": "Linux", "release": kernel, "machine": "x86_64"},
        **(values or {}),
    }
    return {
        "files": {
            path: {"error": "EACCES Permission denied"} if text is None else {"text": text}
            for path, text in (files or {}).items()
        },
        "listings": listings,
        "values": {name: {"value": value} for name, value in known.items()},
    }


def _matches(path: str, pattern: str) -> bool:
    folder, _, name = pattern.rpartition("/")
    return path == pattern or (name == "*" and path.rpartition("/")[0] == folder)


def uevent(kind: str, number: str, driver: str = "", slot: str = "0000:01:00.0") -> dict[str, str | None]:
    bound = f"DRIVER={driver}\n" if driver else ""
    text = f"{bound}PCI_CLASS={kind}\nPCI_ID={number}\nPCI_SLOT_NAME={slot}\n"
    return {f"/sys/bus/pci/devices/{slot}/uevent": text}


def test_what_is_not_answered_is_unknown() -> None:
    assert parse_system({}) == System()
    assert parse_system({"values": {"platform": {"value": "linux"}}}) == System(os="linux", container="")


def test_ordinary_machine() -> None:
    system = parse_system(
        machine(
            files={
                "/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n',
            },
            values={
                "libc": "glibc 2.39",
                "euid": 1000,
                "cpu_affinity": 16,
                "memlock": -1,
                "statvfs:/dev/shm": {"total_bytes": 2**30},
            },
        )
    )
    assert system == System(
        os="linux",
        distribution="ubuntu",
        distribution_version="24.04",
        distribution_name="Ubuntu 24.04.1 LTS",
        kernel="6.8.0-45-generic",
        machine="x86_64",
        glibc="2.39",
        wsl=0,
        container="",
        user_is_root=False,
        cpu_count=16,
        shm_total_bytes=2**30,
        memlock_limit_bytes=0,
        has_infiniband=False,
    )


def test_root() -> None:
    assert parse_system(machine(values={"euid": 0})).user_is_root is True
    assert parse_system(machine()).user_is_root is None


def test_os_release_of_the_vendor_if_etc_has_none() -> None:
    files = {"/etc/os-release": None, "/usr/lib/os-release": "ID=fedora\nVERSION_ID=41\n"}
    assert parse_system(machine(files=files)).distribution == "fedora"


def test_another_c_library_is_no_glibc() -> None:
    assert parse_system(machine(values={"libc": None})).glibc == ""
    assert parse_system(machine()).glibc is None


@pytest.mark.parametrize(
    ("kernel", "listed", "wsl"),
    [
        pytest.param("5.15.90.1-microsoft-standard-WSL2", (), 2, id="WSL 2"),
        pytest.param("4.19.43-microsoft-standard", (), 2, id="early WSL 2"),
        pytest.param("4.4.0-19041-Microsoft", (), 1, id="WSL 1"),
        pytest.param(
            "6.6.36-custom", ("/proc/sys/fs/binfmt_misc/WSLInterop*", "/dev/dxg"), 2, id="kernel of one's own"
        ),
        pytest.param("6.6.36-custom", ("/dev/dxg",), 0, id="GPU paravirtualisation without WSL"),
        pytest.param("6.5.0-1016-azure", (), 0, id="Azure"),
    ],
)
def test_wsl(kernel: str, listed: tuple[str, ...], wsl: int) -> None:
    assert parse_system(machine(kernel=kernel, listed=listed)).wsl == wsl


@pytest.mark.parametrize(
    ("files", "listed", "values", "engine"),
    [
        pytest.param({}, ("/.dockerenv",), {}, "docker", id="Docker"),
        pytest.param({}, ("/run/.containerenv",), {}, "podman", id="Podman"),
        pytest.param(
            {}, ("/.dockerenv", "/var/run/secrets/kubernetes.io"), {}, "kubernetes", id="pod with its account"
        ),
        pytest.param({}, (), {"is_set:KUBERNETES_SERVICE_HOST": True}, "kubernetes", id="pod without an account"),
        pytest.param(
            {"/proc/1/cgroup": "12:memory:/kubepods/besteffort/pod1/2\n"},
            ("/.dockerenv",),
            {},
            "kubernetes",
            id="cgroup",
        ),
        pytest.param({"/proc/1/cgroup": "3:cpu:/docker/0123abcd\n"}, (), {}, "docker", id="Docker's cgroup"),
        pytest.param({"/proc/1/cgroup": "0::/machine.slice/libpod-0123.scope\n"}, (), {}, "podman", id="libpod"),
        pytest.param({"/run/systemd/container": "lxc\n"}, (), {}, "lxc", id="LXC"),
        pytest.param({}, ("/dev/lxd",), {}, "lxc", id="LXD"),
        pytest.param({}, ("/.singularity.d",), {"is_set:APPTAINER_CONTAINER": True}, "apptainer", id="Apptainer"),
        pytest.param({"/proc/1/comm": "sh\n"}, (), {"filesystem:/": "overlay"}, "other", id="build of an image"),
        pytest.param({"/run/systemd/container": "wsl\n"}, (), {}, "", id="WSL is no container"),
        pytest.param({}, ("/.singularity.d",), {}, "", id="image of Apptainer, unpacked"),
        pytest.param({"/proc/1/comm": "systemd\n"}, (), {"filesystem:/": "overlay"}, "", id="host that boots an image"),
        pytest.param({"/proc/1/cgroup": "0::/init.scope\n", "/proc/1/comm": "systemd\n"}, (), {}, "", id="host"),
        pytest.param({"/proc/1/cgroup": None, "/proc/1/comm": None}, (), {}, "", id="host that hides processes"),
    ],
)
def test_container(files: dict[str, str | None], listed: tuple[str, ...], values: dict[str, Any], engine: str) -> None:
    assert parse_system(machine(files=files, listed=listed, values=values)).container == engine


@pytest.mark.parametrize(
    ("text", "on"),
    [("\x06\x00\x00\x00\x01", True), ("\x06\x00\x00\x00\x00", False), ("\x06", None), (None, None)],
)
def test_secure_boot(text: str | None, on: bool | None) -> None:
    assert parse_system(machine(files={SECURE_BOOT: text})).secure_boot is on


@pytest.mark.parametrize(
    ("kind", "listed", "iommu"),
    [
        pytest.param("DMA-FQ\n", (), True, id="translates"),
        pytest.param("identity\n", (), False, id="pass-through"),
        pytest.param(None, ("/sys/class/iommu", "/sys/class/iommu/dmar0"), True, id="unit, no GPU's driver"),
        pytest.param(None, ("/sys/class/iommu",), False, id="no unit"),
        pytest.param(None, (), None, id="no sysfs"),
    ],
)
@pytest.mark.parametrize("driver", ["nvidia", "nouveau", "amdgpu"])
def test_iommu(kind: str | None, listed: tuple[str, ...], iommu: bool | None, driver: str) -> None:
    files = {f"/sys/bus/pci/drivers/{driver}/0000:01:00.0/iommu_group/type": kind}
    assert parse_system(machine(files=files, listed=listed)).iommu is iommu


PCI = ("/sys/bus/pci/devices",)


def test_nvidia_gpu() -> None:
    system = parse_system(machine(files=uevent("30000", "10DE:2684", "nouveau"), listed=PCI))
    assert system.pci_gpus == (
        PciGpu(
            address="0000:01:00.0",
            vendor="nvidia",
            device_id="2684",
            name="NVIDIA GeForce RTX 4090",
            bound_driver="nouveau",
        ),
    )
    assert system.amd_gfx_targets == ()


@pytest.mark.parametrize(
    ("kind", "number", "vendor"),
    [
        pytest.param("30200", "10DE:2330", "nvidia", id="3D controller"),
        pytest.param("38000", "1002:740F", "amd", id="display controller"),
        pytest.param("120000", "1002:74A1", "amd", id="accelerator"),
        pytest.param("30000", "1A03:2000", "1a03", id="display of the board's management"),
        pytest.param("120000", "1DA3:1020", None, id="accelerator of another maker"),
        pytest.param("40300", "10DE:22BA", None, id="sound of a graphics card"),
        pytest.param("68000", "10DE:22A3", None, id="NVSwitch"),
    ],
)
def test_what_is_a_gpu(kind: str, number: str, vendor: str | None) -> None:
    gpus = parse_system(machine(files=uevent(kind, number), listed=PCI)).pci_gpus
    assert gpus is not None
    assert [gpu.vendor for gpu in gpus] == ([vendor] if vendor else [])


@pytest.mark.parametrize(
    ("files", "listed", "gpus"),
    [
        pytest.param({}, PCI, (), id="bus without a GPU"),
        pytest.param({}, ("/sys/bus/cpu",), (), id="machine without the bus"),
        pytest.param({}, (), None, id="no sysfs"),
        pytest.param({"/sys/bus/pci/devices/0000:01:00.0/uevent": None}, PCI, None, id="not readable"),
    ],
)
def test_bus(files: dict[str, str | None], listed: tuple[str, ...], gpus: tuple[PciGpu, ...] | None) -> None:
    assert parse_system(machine(files=files, listed=listed)).pci_gpus == gpus


def test_amd_targets() -> None:
    nodes: dict[str, str | None] = {
        f"/sys/class/kfd/kfd/topology/nodes/{number}/properties": f"gfx_target_version {version}\n"
        for number, version in enumerate((0, 110000, 90010))
    }
    gpu = uevent("30000", "1002:744C", "amdgpu")
    assert parse_system(machine(files={**gpu, **nodes}, listed=PCI)).amd_gfx_targets == ("gfx1100", "gfx90a")
    assert parse_system(machine(files=gpu, listed=PCI)).amd_gfx_targets is None


@pytest.mark.parametrize(("platform", "name"), [("win32", "windows"), ("darwin", "darwin")])
def test_other_systems_know_little(platform: str, name: str) -> None:
    system = parse_system(machine(platform=platform, values={"memory": 2**34, "cpu_affinity": 8}))
    expected = System(os=name, machine="x86_64", kernel="6.8.0-45-generic", cpu_count=8)
    assert system == expected


def test_infiniband() -> None:
    def listing(*paths: str) -> dict[str, object]:
        shown = {"/dev/infiniband/uverbs*": {"paths": list(paths)}}
        return {"values": {"platform": {"value": "linux"}}, "listings": shown}

    assert parse_system(listing("/dev/infiniband/uverbs0")).has_infiniband is True
    assert parse_system(listing()).has_infiniband is False
