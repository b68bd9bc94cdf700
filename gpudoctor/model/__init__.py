"""The data model: facts in, findings out. Everything is frozen; `None` means unknown."""

from gpudoctor.model.conclusions import CONCLUSIONS, Conclusions, CudaIntent, Gpu, KnownGpu, Origin, Place, Pytorch
from gpudoctor.model.containers import ContainerEngine, Containers, ContainerSetup, GpuRequest
from gpudoctor.model.driver_use import Consumer, Consumers, DriverState
from gpudoctor.model.fact import Fact
from gpudoctor.model.finding import CheckResult, Evidence, Finding, Fix, Outcome, Remedy, Severity
from gpudoctor.model.images import CopiedFiles, Mounted, ProjectImage, RunningContainer, UnmetRequirement
from gpudoctor.model.machine import (
    CudaDevice,
    Device,
    DeviceFile,
    DeviceProcess,
    Driver,
    PciGpu,
    System,
    Xid,
    known_facts,
    ranges,
)
from gpudoctor.model.pasted import Contradiction
from gpudoctor.model.profile import FoundProfile
from gpudoctor.model.report import Report
from gpudoctor.model.snapshot import SECTIONS, ProbeReport, Snapshot, look_up
from gpudoctor.model.software import (
    Container,
    Cupy,
    CupyRuntime,
    Environment,
    LibraryCall,
    Package,
    PrecisionResult,
    Project,
    Python,
    Requirement,
    SharedLibrary,
    Toolkit,
    ToolkitInstall,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.torch_devices import TorchDevice, TorchDevices, described
from gpudoctor.model.torch_request import TorchRequest
from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion, PackageVersion

__all__ = [
    "CONCLUSIONS",
    "SECTIONS",
    "CheckResult",
    "ComputeCapability",
    "Conclusions",
    "Consumer",
    "Consumers",
    "Container",
    "ContainerEngine",
    "ContainerSetup",
    "Containers",
    "Contradiction",
    "CopiedFiles",
    "CudaDevice",
    "CudaIntent",
    "CudaVersion",
    "Cupy",
    "CupyRuntime",
    "Device",
    "DeviceFile",
    "DeviceProcess",
    "Driver",
    "DriverState",
    "DriverVersion",
    "Environment",
    "Evidence",
    "Fact",
    "Finding",
    "Fix",
    "FoundProfile",
    "Gpu",
    "GpuRequest",
    "KnownGpu",
    "LibraryCall",
    "Mounted",
    "Origin",
    "Outcome",
    "Package",
    "PackageVersion",
    "PciGpu",
    "Place",
    "PrecisionResult",
    "ProbeReport",
    "Project",
    "ProjectImage",
    "Python",
    "Pytorch",
    "Remedy",
    "Report",
    "Requirement",
    "RunningContainer",
    "Severity",
    "SharedLibrary",
    "Snapshot",
    "Symptom",
    "System",
    "Toolkit",
    "ToolkitInstall",
    "Torch",
    "TorchDevice",
    "TorchDevices",
    "TorchRequest",
    "TorchRuntime",
    "UnmetRequirement",
    "Xid",
    "described",
    "known_facts",
    "look_up",
    "ranges",
]
