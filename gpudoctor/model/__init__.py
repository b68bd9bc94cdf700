"""The data model: facts in, findings out. Everything is frozen; `None` means unknown."""

from gpudoctor.model.fact import Fact
from gpudoctor.model.finding import CheckResult, Evidence, Finding, Outcome, Remedy, Severity
from gpudoctor.model.machine import Device, DeviceFile, DeviceProcess, Driver, PciGpu, System, Xid
from gpudoctor.model.pasted import Contradiction, Message
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
from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion, PackageVersion

__all__ = [
    "SECTIONS",
    "CheckResult",
    "ComputeCapability",
    "Container",
    "Contradiction",
    "CudaVersion",
    "Cupy",
    "CupyRuntime",
    "Device",
    "DeviceFile",
    "DeviceProcess",
    "Driver",
    "DriverVersion",
    "Environment",
    "Evidence",
    "Fact",
    "Finding",
    "LibraryCall",
    "Message",
    "Outcome",
    "Package",
    "PackageVersion",
    "PciGpu",
    "PrecisionResult",
    "ProbeReport",
    "Project",
    "Python",
    "Remedy",
    "Report",
    "Requirement",
    "Severity",
    "SharedLibrary",
    "Snapshot",
    "System",
    "Toolkit",
    "ToolkitInstall",
    "Torch",
    "TorchRuntime",
    "Xid",
    "look_up",
]
