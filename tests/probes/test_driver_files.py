"""What files tell of the driver, on machines of several distributions and in containers."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from gpudoctor.model import DeviceFile, Driver, DriverVersion
from gpudoctor.probes import driver_files
from gpudoctor.probes.driver_files import parse_driver_files
from gpudoctor.probes.host import ProbeContext
from tests.probes.asked import asked

KERNEL = "6.8.0-45-generic"
LIB = "/usr/lib/x86_64-linux-gnu"
LIBRARIES = {
    f"{LIB}/libcuda.so": f"{LIB}/libcuda.so.550.54.14",
    f"{LIB}/libcuda.so.1": f"{LIB}/libcuda.so.550.54.14",
    f"{LIB}/libcuda.so.550.54.14": f"{LIB}/libcuda.so.550.54.14",
    f"{LIB}/libnvidia-ml.so.1": f"{LIB}/libnvidia-ml.so.550.54.14",
}
OPEN_550 = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build  (x@y)  Thu\n"
MODULES = "nvidia_uvm 4661248 0 - Live 0x0\nnvidia_drm 94208 0 - Live 0x0\nnvidia 54300672 2 nvidia_uvm, Live 0x0\n"


def machine(
    *,
    files: dict[str, str] | None = None,
    paths: tuple[str, ...] = (),
    links: dict[str, str] | None = None,
    nodes: dict[str, dict[str, Any]] | None = None,
    commands: dict[str, str] | None = None,
    values: dict[str, Any] | None = None,
    which: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return the answer of a Linux machine with these things, and nothing else."""
    patterns = asked("driver-files", ProbeContext(environ={}, directory=Path())).arguments["listings"]
    all_paths = [*paths, *(links or {})]
    known = {"platform": "linux", "uname": {"release": KERNEL}, "running:nv-fabricmanager": False, **(values or {})}
    return {
        "files": {path: {"text": text} for path, text in (files or {}).items()},
        "listings": {
            pattern: {"paths": [path for path in all_paths if fnmatchcase(path, pattern.replace("**/", "*"))]}
            for pattern in patterns
        },
        "links": {path: {"target": target} for path, target in (links or {}).items()},
        "nodes": nodes or {},
        "commands": {name: {"status": 0, "stdout": text} for name, text in (commands or {}).items()},
        "values": {name: {"value": value} for name, value in known.items()},
        "which": {"nv-fabricmanager": None, **{name: {"path": path} for name, path in (which or {}).items()}},
    }


def test_no_driver_at_all() -> None:
    driver = parse_driver_files(
        machine(files={"/proc/modules": "ext4 1 0 - Live 0x0\n"}, paths=(f"/lib/modules/{KERNEL}",))
    )
    assert driver == Driver(
        installed=False,
        module_loaded=False,
        uvm_loaded=False,
        nouveau_loaded=False,
        module_built_for_kernel=False,
        dkms=False,
        libcuda_files=(),
        device_files=(),
        fabric_manager="not-installed",
    )


def test_running_driver() -> None:
    driver = parse_driver_files(
        machine(
            files={"/proc/driver/nvidia/version": OPEN_550, "/proc/modules": MODULES},
            paths=(
                f"/lib/modules/{KERNEL}",
                f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko.zst",
                "/var/lib/dkms/nvidia",
            ),
            links=LIBRARIES,
        )
    )
    assert (driver.installed, driver.module_loaded, driver.uvm_loaded) == (True, True, True)
    assert (driver.module_flavor, driver.module_built_for_kernel, driver.dkms) == ("open", True, True)
    assert driver.module_version == driver.library_version == DriverVersion.parse("550.54.14")
    assert driver.libcuda_files == (f"{LIB}/libcuda.so", f"{LIB}/libcuda.so.1", f"{LIB}/libcuda.so.550.54.14")


def test_module_and_libraries_of_two_versions() -> None:
    old = OPEN_550.replace("550.54.14", "535.129.03")
    driver = parse_driver_files(machine(files={"/proc/driver/nvidia/version": old}, links=LIBRARIES))
    assert (str(driver.module_version), str(driver.library_version)) == ("535.129.03", "550.54.14")


def test_left_over_file_of_another_driver_does_not_count() -> None:
    """An image saved from a container with a GPU keeps the empty files of that host's driver."""
    left_over = {f"{LIB}/libcuda.so.470.57.02": f"{LIB}/libcuda.so.470.57.02"}
    driver = parse_driver_files(machine(links={**left_over, **LIBRARIES}))
    assert str(driver.library_version) == "550.54.14"


def test_the_loader_s_cache_decides_between_folders() -> None:
    cache = "2 libs found in cache\n\tlibcuda.so.1 (libc6,x86-64) => /usr/lib64/libcuda.so.1\n"
    links = {**LIBRARIES, "/usr/lib64/libcuda.so.1": "/usr/lib64/libcuda.so.570.86.15"}
    driver = parse_driver_files(machine(links=links, commands={"ldconfig": cache}))
    assert str(driver.library_version) == "570.86.15"
    assert driver.libcuda_files
    assert driver.libcuda_files[0] == "/usr/lib64/libcuda.so.1"


@pytest.mark.parametrize("name", ["libcuda.so.1", "libnvidia-ml.so.1"])
def test_a_library_that_only_the_loader_s_cache_names(name: str) -> None:
    path, other = f"/odd/{name}", "/odd/libnvidia-egl.so.1"
    cache = f"2 libs found in cache\n\tlibnvidia-egl.so.1 (libc6) => {other}\n\t{name} (libc6,x86-64) => {path}\n"
    links = {path: f"/odd/{name[:-2]}.570.86.15", other: "/odd/libnvidia-egl.so.470.57.02"}
    driver = parse_driver_files(machine(links=links, commands={"ldconfig": cache}))
    assert str(driver.library_version) == "570.86.15"


def test_compat_of_a_toolkit_is_no_driver() -> None:
    path = "/usr/local/cuda/compat/libcuda.so.1"
    cache = f"1 libs found in cache\n\tlibcuda.so.1 (libc6,x86-64) => {path}\n"
    driver = parse_driver_files(machine(commands={"ldconfig": cache}))
    assert (driver.installed, driver.libcuda_files) == (False, ())


def test_only_nvml() -> None:
    """A container with the driver capability "utility" has NVML and no libcuda."""
    driver = parse_driver_files(machine(links={f"{LIB}/libnvidia-ml.so.1": f"{LIB}/libnvidia-ml.so.535.54.03"}))
    assert (driver.installed, driver.libcuda_files, str(driver.library_version)) == (True, (), "535.54.03")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/usr/lib/wsl/lib/libcuda.so.1", id="WSL"),
        pytest.param("/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1", id="Jetson"),
    ],
)
def test_library_without_a_version_in_its_name(path: str) -> None:
    driver = parse_driver_files(machine(links={path: path + ".1"}))
    assert (driver.installed, driver.library_version, driver.libcuda_files) == (True, None, (path,))


@pytest.mark.parametrize(
    "file",
    [
        "updates/dkms/nvidia.ko",
        "updates/dkms/nvidia-current.ko.xz",
        "extra/nvidia/nvidia.ko.xz",
        "weak-updates/nvidia/nvidia.ko",
        "kernel/drivers/video/nvidia.ko",
        "kernel/nvidia-535srv-open/nvidia.ko",
        "extramodules/nvidia.ko.zst",
        "updates/dkms/nvidia-tesla-470-current.ko",
    ],
)
def test_module_file(file: str) -> None:
    folder = f"/lib/modules/{KERNEL}"
    driver = parse_driver_files(machine(files={"/proc/modules": ""}, paths=(folder, f"{folder}/{file}")))
    assert (driver.installed, driver.module_loaded, driver.module_built_for_kernel) == (True, False, True)


@pytest.mark.parametrize("file", ["updates/nvidia-drm.ko", "updates/nvidia-peermem.ko.xz", "extra/nvidiafb.ko"])
def test_other_module_file(file: str) -> None:
    folder = f"/lib/modules/{KERNEL}"
    assert parse_driver_files(machine(paths=(folder, f"{folder}/{file}"))).installed is False


def test_module_of_another_kernel() -> None:
    paths = (f"/lib/modules/{KERNEL}", "/lib/modules/6.8.0-40-generic/updates/dkms/nvidia.ko.zst")
    driver = parse_driver_files(machine(files={"/proc/modules": "nouveau 1 0 - Live 0x0\n"}, paths=paths))
    assert (driver.installed, driver.module_built_for_kernel, driver.nouveau_loaded) == (True, False, True)


def test_modules_are_not_seen_from_a_container() -> None:
    driver = parse_driver_files(machine(files={"/proc/modules": MODULES}, paths=("/.dockerenv",)))
    assert (driver.module_built_for_kernel, driver.fabric_manager) == (None, None)
    assert (driver.module_loaded, driver.installed) == (True, True)


def test_unreadable_list_of_modules_is_unknown() -> None:
    driver = parse_driver_files(machine(links=LIBRARIES))
    assert (driver.module_loaded, driver.uvm_loaded, driver.nouveau_loaded) == (None, None, None)


def test_version_by_sysfs_if_proc_has_none() -> None:
    driver = parse_driver_files(machine(files={"/sys/module/nvidia/version": "535.129.03\n", "/proc/modules": MODULES}))
    assert (str(driver.module_version), driver.module_flavor) == ("535.129.03", None)


def test_device_files() -> None:
    nodes = {
        "/dev/nvidia0": {"mode": "666", "accessible": True, "error": ""},
        "/dev/nvidiactl": {"mode": "666", "accessible": False, "error": "EPERM Operation not permitted"},
        "/dev/nvidia-uvm": {"mode": "", "accessible": False, "error": "ENOENT No such file or directory"},
    }
    assert parse_driver_files(machine(nodes=nodes)).device_files == (
        DeviceFile(path="/dev/nvidia0", mode="666", accessible=True),
        DeviceFile(path="/dev/nvidiactl", mode="666", accessible=False, error="Operation not permitted"),
    )


def test_nvswitches() -> None:
    devices = [("0000:05:00.0", "10DE:22A3"), ("0000:06:00.0", "10DE:22A3"), ("0000:07:00.0", "8086:1234")]
    files = {
        f"/sys/bus/pci/devices/{slot}/uevent": f"PCI_CLASS=68000\nPCI_ID={number}\nPCI_SLOT_NAME={slot}\n"
        for slot, number in devices
    }
    assert parse_driver_files(machine(files=files, paths=("/sys/bus/pci/devices",))).nvswitches == 2


@pytest.mark.parametrize(
    ("running", "which", "state"),
    [
        pytest.param(True, {}, "running", id="runs"),
        pytest.param(False, {"nv-fabricmanager": "/usr/bin/nv-fabricmanager"}, "not-running", id="installed"),
        pytest.param(False, {}, "not-installed", id="not installed"),
        pytest.param(None, {}, None, id="processes are hidden"),
    ],
)
def test_fabric_manager(running: bool | None, which: dict[str, str], state: str | None) -> None:
    driver = parse_driver_files(machine(values={"running:nv-fabricmanager": running}, which=which))
    assert driver.fabric_manager == state


def test_fabric_manager_version() -> None:
    facts = machine(commands={"fabric-manager": "\n\n\tFabric Manager version is : 535.161.08\n\n"})
    assert str(parse_driver_files(facts).fabric_manager_version) == "535.161.08"
    assert parse_driver_files(machine(commands={"fabric-manager": "?"})).fabric_manager_version is None


@pytest.mark.parametrize(
    ("platform", "listed", "installed"),
    [("win32", True, True), ("win32", False, False), ("darwin", False, None)],
)
def test_other_systems(platform: str, listed: bool, installed: bool | None) -> None:
    path = "C:\\Windows\\System32\\nvcuda.dll"
    facts = machine(values={"platform": platform}, paths=(path,) if listed else ())
    facts["listings"][path] = {"paths": [path] if listed else []}
    assert parse_driver_files(facts) == Driver(installed=installed)


def test_nothing_answered() -> None:
    assert parse_driver_files({}) == Driver()


@pytest.mark.parametrize(
    ("folders", "loaded", "files", "built"),
    [
        (["/lib/modules/6.8"], "nouveau", ["/lib/modules/6.8/nvidia.ko"], True),
        (["/lib/modules/6.8"], "nouveau", ["/lib/modules/6.80/nvidia.ko"], False),
        (["/lib/modules/6.8"], "nouveau", [], False),
        (["/lib/modules/6.8"], "nvidia", [], None),
        (["/lib/modules/6.5"], "nouveau", [], None),
        (["/lib/modules/6.5"], "nvidia", [], None),
    ],
)
def test_whether_a_module_is_built_for_the_kernel(
    folders: list[str], loaded: str, files: list[str], built: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {
        "values": {"uname": {"value": {"release": "6.8"}}},
        "listings": {"/lib/modules/*": {"paths": folders}},
    }
    monkeypatch.setattr(driver_files, "_is_loaded", lambda facts, name: name == loaded)
    assert driver_files._built_for_kernel(facts, tuple(files)) is built
