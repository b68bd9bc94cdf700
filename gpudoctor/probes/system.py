"""The operating system: what it is, what it runs in, its limits, and the GPUs on its PCI bus."""

from typing import Any

from gpudoctor.model import PciGpu, System
from gpudoctor.parsers import attempt, linux
from gpudoctor.probes.container_engines import CONTAINER_SIGNS, container_engine
from gpudoctor.probes.reading import Facts, file_text, file_texts, is_linux, known_paths, listed, unreadable, value
from gpudoctor.untrusted import cleaned

OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
INFINIBAND = "/dev/infiniband/uverbs*"
# EFI_GLOBAL_VARIABLE of the UEFI specification
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
PCI_UEVENTS = "/sys/bus/pci/devices/*/uevent"
IOMMU_TYPES = "/sys/bus/pci/drivers/{}/*/iommu_group/type"
KFD_NODES = "/sys/class/kfd/kfd/topology/nodes/*/properties"
SYSTEMS = {"linux": "linux", "win32": "windows", "cygwin": "windows", "darwin": "darwin"}
VENDORS = {"10DE": "nvidia", "1002": "amd", "8086": "intel"}


READING_LIST: dict[str, Any] = {
    "files": [
        *(*OS_RELEASE, SECURE_BOOT, PCI_UEVENTS, KFD_NODES, *CONTAINER_SIGNS["files"]),
        *(IOMMU_TYPES.format(driver) for driver in ("nvidia", "nouveau", "amdgpu")),
    ],
    "listings": [*known_paths("system_listings"), INFINIBAND, *CONTAINER_SIGNS["listings"]],
    "values": [*known_paths("system_values"), *CONTAINER_SIGNS["values"]],
}


def parse_system(facts: Facts) -> System:
    """Return the section. What is specific to Linux is unknown elsewhere."""
    uname = value(facts, "uname") or {}
    common: dict[str, Any] = {
        "os": SYSTEMS.get(value(facts, "platform") or ""),
        "machine": uname.get("machine"),
        "kernel": uname.get("release"),
        "user_is_root": _is_zero(value(facts, "euid")),
        "cpu_count": value(facts, "cpu_affinity"),
    }
    return System(**common, **(_linux(facts, uname.get("release")) if is_linux(facts) else {}))


def _linux(facts: Facts, kernel: str | None) -> dict[str, Any]:
    release = _os_release(facts)
    shm = value(facts, "statvfs:/dev/shm") or {}
    memlock = value(facts, "memlock")
    pci_gpus = _pci_gpus(facts)
    infiniband = listed(facts, INFINIBAND)
    return {
        "distribution": release.get("ID"),
        "distribution_version": release.get("VERSION_ID"),
        "distribution_name": release.get("PRETTY_NAME"),
        "glibc": _glibc(facts),
        "wsl": _wsl(facts, kernel),
        "container": container_engine(facts),
        "shm_total_bytes": shm.get("total_bytes"),
        "memlock_limit_bytes": None if memlock is None else max(memlock, 0),
        "has_infiniband": None if infiniband is None else bool(infiniband),
        "secure_boot": _secure_boot(facts),
        "iommu": _iommu(facts),
        "pci_gpus": pci_gpus,
        "amd_gfx_targets": _amd_gfx_targets(facts, pci_gpus),
    }


def _is_zero(number: int | None) -> bool | None:
    return None if number is None else number == 0


def _os_release(facts: Facts) -> dict[str, str]:
    read = (attempt(linux.parse_os_release, file_text(facts, path)) for path in OS_RELEASE)
    return {name: cleaned(value) for name, value in next(filter(None, read), {}).items()}


def _glibc(facts: Facts) -> str | None:
    """Return the version of glibc; "" if the C library has no such name, as musl."""
    answer = facts.get("values", {}).get("libc", {})
    if "value" not in answer:
        return None
    name, _, version = (answer["value"] or "").partition(" ")
    return version if name == "glibc" else ""


def _wsl(facts: Facts, kernel: str | None) -> int | None:
    """Return 1 or 2 inside WSL, 0 outside."""
    if kernel is None:
        return None
    if kernel.endswith("-Microsoft"):  # "4.4.0-19041-Microsoft"; WSL 2 is "5.15.90.1-microsoft-standard-WSL2"
        return 1
    # a kernel of the user's own has another name, the interoperability with Windows stays
    interop = listed(facts, "/proc/sys/fs/binfmt_misc/WSLInterop*")
    return 2 if "microsoft" in kernel.lower() or (interop and listed(facts, "/dev/dxg")) else 0


def _secure_boot(facts: Facts) -> bool | None:
    """Return the fifth byte of the variable, which follows four of attributes."""
    text = file_text(facts, SECURE_BOOT)
    return text[4] == "\x01" if text is not None and len(text) == 5 else None


def _iommu(facts: Facts) -> bool | None:
    """Return whether an IOMMU translates for the GPUs: in pass-through mode ("identity") it is there and does not."""
    types = file_texts(facts, IOMMU_TYPES.format("*"))
    if types:
        return any(text.strip() != "identity" for text in types.values())
    units = listed(facts, "/sys/class/iommu/*")
    return bool(units) if units is not None and listed(facts, "/sys/class/iommu") else None


def pci_devices(facts: Facts) -> tuple[linux.PciDevice, ...] | None:
    """Return the devices on the PCI bus; None if the bus cannot be read."""
    if not listed(facts, "/sys/bus/pci/devices"):
        # without the folder there is no bus, unless sysfs is not there at all
        return () if listed(facts, "/sys/bus/*") else None
    read = (attempt(linux.parse_pci_uevent, text) for text in file_texts(facts, PCI_UEVENTS).values())
    devices = [device for device in read if device is not None]
    return None if not devices and unreadable(facts, PCI_UEVENTS) else tuple(devices)


def _pci_gpus(facts: Facts) -> tuple[PciGpu, ...] | None:
    devices = pci_devices(facts)
    return None if devices is None else tuple(_gpu(device) for device in devices if _is_gpu(device))


def _is_gpu(device: linux.PciDevice) -> bool:
    return device.kind in linux.DISPLAY or (device.kind == linux.ACCELERATOR and device.vendor in VENDORS)


def _gpu(device: linux.PciDevice) -> PciGpu:
    vendor = VENDORS.get(device.vendor, device.vendor.lower())
    return PciGpu(
        address=device.address,
        vendor=vendor,
        device_id=device.device,
        name=_name_of(device) if vendor == "nvidia" else "",
        bound_driver=device.driver,
    )


def _name_of(device: linux.PciDevice) -> str:
    """Return the product's name; "" if the table has none, or several under this number."""
    from gpudoctor.data.tables import load_table

    names = {row["name"] for row in load_table("gpu_names")["gpus"] if device.device in row.get("pci", ())}
    return names.pop() if len(names) == 1 else ""


def _amd_gfx_targets(facts: Facts, gpus: tuple[PciGpu, ...] | None) -> tuple[str, ...] | None:
    """Return the targets by node; none without an AMD GPU on the bus, unknown if its driver is not loaded."""
    read = (attempt(linux.parse_gfx_target, text) for text in file_texts(facts, KFD_NODES).values())
    if targets := tuple(filter(None, read)):
        return targets
    return () if gpus is not None and not any(gpu.vendor == "amd" for gpu in gpus) else None
