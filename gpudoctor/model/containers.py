"""Facts about containers seen from the host: how each is, or would be, started. `None` means unknown, never none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from gpudoctor.model.record import Fact, record
from gpudoctor.model.software import Torch
from gpudoctor.model.symptom import Symptom


@record
class GpuRequest:
    """A device request: `--gpus`, `--device nvidia.com/gpu=all`, or a reservation in a compose file."""

    driver: Annotated[str, Fact('"nvidia", "cdi"; empty if the capabilities choose it')] = ""
    count: Annotated[int | None, Fact("how many; -1 for all")] = None
    device_ids: Annotated[tuple[str, ...], Fact('"0", "GPU-...", "nvidia.com/gpu=all"')] = ()
    capabilities: Annotated[tuple[str, ...], Fact('"gpu", "compute", "utility"')] = ()


@record
class ContainerSetup:
    """How an engine started a container, or would start it from a compose file or image."""

    name: str
    kind: Annotated[str, Fact('"container", "service" of a compose file, or "image"')]
    service: Annotated[str | None, Fact("service of the compose file that it belongs to")] = None
    image: str | None = None
    base: Annotated[str | None, Fact("image of FROM in the Dockerfile of its image", source="Dockerfile")] = None
    state: Annotated[str | None, Fact('"created", "running", "exited"', source="inspect: State.Status")] = None
    failures: Annotated[
        tuple[Symptom, ...],
        Fact("failure messages of its last start and in its log since then", source="inspect: State.Error; its log"),
    ] = ()
    gpu_requests: Annotated[
        tuple[GpuRequest, ...] | None,
        Fact("requests for GPUs; unknown for an image", source="inspect: HostConfig.DeviceRequests"),
    ] = None
    device_files: Annotated[
        tuple[str, ...] | None, Fact("device nodes of the host", source="inspect: HostConfig.Devices")
    ] = None
    is_privileged: bool | None = None
    runtime: Annotated[
        str | None, Fact("OCI runtime; empty for the engine's default", source="inspect: HostConfig.Runtime")
    ] = None
    environment: Annotated[
        Mapping[str, str], Fact("variables that bear on GPUs, those of its image too", source="inspect: Config.Env")
    ] = field(default_factory=dict)
    image_environment: Annotated[
        Mapping[str, str] | None, Fact("those of its image", source="inspect of the image: Config.Env")
    ] = None
    shm_size_bytes: Annotated[int | None, Fact("size of /dev/shm", "bytes", "inspect: HostConfig.ShmSize")] = None
    ipc: Annotated[
        str | None, Fact('"private", "host", "none", "container:ID"', source="inspect: HostConfig.IpcMode")
    ] = None
    has_own_shm: Annotated[bool | None, Fact("something else is mounted over /dev/shm")] = None
    memlock_bytes: Annotated[
        int | None, Fact("memory that it may lock; 0 for unlimited", "bytes", "inspect: HostConfig.Ulimits")
    ] = None
    torch: Annotated[
        Torch | None,
        Fact("PyTorch in its files; unknown if none was found in the usual folders", source="torch/version.py"),
    ] = None


@record
class ContainerEngine:
    """The container engine's own information."""

    name: Annotated[str | None, Fact('"docker" or "podman"', source="version")] = None
    is_local: Annotated[
        bool | None,
        Fact("it runs on this machine, and not in a virtual machine of its own", source="DOCKER_HOST, info"),
    ] = None
    runtimes: Annotated[tuple[str, ...] | None, Fact("OCI runtimes it knows", source="info: Runtimes")] = None
    default_runtime: Annotated[str | None, Fact("the one it takes", source="info: DefaultRuntime")] = None
    cdi_folders: Annotated[
        tuple[str, ...] | None,
        Fact("where it looks for CDI specifications; () if CDI is off", source="info: CDISpecDirs"),
    ] = None
    cdi_devices: Annotated[
        tuple[str, ...] | None, Fact("CDI devices it has found", source="info: DiscoveredDevices")
    ] = None
    cgroup_driver: Annotated[str | None, Fact('"systemd" or "cgroupfs"', source="info: CgroupDriver")] = None
    has_device_links: Annotated[
        bool | None, Fact("/dev/char has links to the device nodes of the driver", source="/dev/char")
    ] = None


@record
class Containers:
    """The examined containers, services and images, and their engine."""

    setups: Annotated[
        tuple[ContainerSetup, ...], Fact("each in its turn", source="engine's API, compose file, Dockerfile")
    ] = ()
    engine: Annotated[ContainerEngine | None, Fact("unknown if it cannot be asked", source="engine's API")] = None
