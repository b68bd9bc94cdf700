"""The data model: facts in, findings out. Everything is frozen; `None` means unknown."""

from gpudoctor.model.allocator import Allocator, AllocatorVariable
from gpudoctor.model.conclusions import (
    CONCLUSIONS,
    AmdGpu,
    Conclusions,
    CudaIntent,
    Gpu,
    Nvrtc,
    Origin,
    Place,
    Pytorch,
    TorchNeed,
    TwoEnvironments,
)
from gpudoctor.model.container_gpu import ContainerGpu
from gpudoctor.model.containers import ContainerEngine, Containers, ContainerSetup, GpuRequest
from gpudoctor.model.cuda_libraries import CudaLibraries, Libcuda, MissingSymbol
from gpudoctor.model.cupy_conclusions import Compiler, CupyMismatch, CupyMismatches, CupyNumpy, CupyStatus
from gpudoctor.model.driver_condition import DriverCondition, condition_of_cuda_version
from gpudoctor.model.driver_use import Consumer, Consumers, DriverState
from gpudoctor.model.extensions import BuiltExtension, Extensions, FailedExtension
from gpudoctor.model.fact import Fact
from gpudoctor.model.finding import CheckResult, Evidence, Finding, Fix, Outcome, Remedy, Severity, applicable
from gpudoctor.model.fingerprint import FingerprintPart, fingerprint_memory, fingerprint_value, same_device, same_memory
from gpudoctor.model.gpu import KnownGpu
from gpudoctor.model.gpu_faults import FaultSign, GpuFault, GpuFaults
from gpudoctor.model.gpu_need import GpuNeed
from gpudoctor.model.image_verdict import ImageVerdict
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
from gpudoctor.model.outdated_image import OutdatedImage
from gpudoctor.model.pasted import Contradiction
from gpudoctor.model.precision import HalfPrecision, Tf32, Tf32Product
from gpudoctor.model.profile import FoundProfile
from gpudoctor.model.report import Report
from gpudoctor.model.setups import (
    EngineLack,
    GpuIntent,
    ImageCuda,
    MissingGpu,
    SeenSetup,
    once_per_image,
    once_per_service,
)
from gpudoctor.model.shortage import Shortage, shown_bytes
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
from gpudoctor.model.torch_kernels import TorchKernels
from gpudoctor.model.torch_request import TorchRequest
from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion, PackageVersion
from gpudoctor.model.visible_devices import DeviceChoice, VisibleDevices
from gpudoctor.model.wsl import Wsl

__all__ = [
    "CONCLUSIONS",
    "SECTIONS",
    "Allocator",
    "AllocatorVariable",
    "AmdGpu",
    "BuiltExtension",
    "CheckResult",
    "Compiler",
    "ComputeCapability",
    "Conclusions",
    "Consumer",
    "Consumers",
    "Container",
    "ContainerEngine",
    "ContainerGpu",
    "ContainerSetup",
    "Containers",
    "Contradiction",
    "CopiedFiles",
    "CudaDevice",
    "CudaIntent",
    "CudaLibraries",
    "CudaVersion",
    "Cupy",
    "CupyMismatch",
    "CupyMismatches",
    "CupyNumpy",
    "CupyRuntime",
    "CupyStatus",
    "Device",
    "DeviceChoice",
    "DeviceFile",
    "DeviceProcess",
    "Driver",
    "DriverCondition",
    "DriverState",
    "DriverVersion",
    "EngineLack",
    "Environment",
    "Evidence",
    "Extensions",
    "Fact",
    "FailedExtension",
    "FaultSign",
    "Finding",
    "FingerprintPart",
    "Fix",
    "FoundProfile",
    "Gpu",
    "GpuFault",
    "GpuFaults",
    "GpuIntent",
    "GpuNeed",
    "GpuRequest",
    "HalfPrecision",
    "ImageCuda",
    "ImageVerdict",
    "KnownGpu",
    "Libcuda",
    "LibraryCall",
    "MissingGpu",
    "MissingSymbol",
    "Mounted",
    "Nvrtc",
    "Origin",
    "Outcome",
    "OutdatedImage",
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
    "SeenSetup",
    "Severity",
    "SharedLibrary",
    "Shortage",
    "Snapshot",
    "Symptom",
    "System",
    "Tf32",
    "Tf32Product",
    "Toolkit",
    "ToolkitInstall",
    "Torch",
    "TorchDevice",
    "TorchDevices",
    "TorchKernels",
    "TorchNeed",
    "TorchRequest",
    "TorchRuntime",
    "TwoEnvironments",
    "UnmetRequirement",
    "VisibleDevices",
    "Wsl",
    "Xid",
    "applicable",
    "condition_of_cuda_version",
    "described",
    "fingerprint_memory",
    "fingerprint_value",
    "known_facts",
    "look_up",
    "once_per_image",
    "once_per_service",
    "ranges",
    "same_device",
    "same_memory",
    "shown_bytes",
]
