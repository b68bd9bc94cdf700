"""The data model: facts in, findings out. Everything is frozen; `None` means unknown."""

# fmt: off
from gpudoctor.model.conclusions import (
    CONCLUSIONS, AmdGpu, Attempts, Concern, Conclusions, CpuUse, CudaIntent, Gpu, Nvrtc, Origin, Place, Pytorch,
    Resemblance, TorchNeed, TwoEnvironments,
)
from gpudoctor.model.container_conclusions import (
    ContainerGpu, EngineLack, GpuIntent, ImageCuda, ImageVerdict, MissingGpu, OutdatedImage, SeenSetup,
    once_per_image, once_per_service,
)
from gpudoctor.model.containers import ContainerEngine, Containers, ContainerSetup, GpuRequest
from gpudoctor.model.cuda_conclusions import (
    Compiler, CudaLibraries, CupyMismatch, CupyMismatches, CupyNumpy, CupyStatus, Libcuda, MissingSymbol,
)
from gpudoctor.model.finding import CheckResult, Evidence, Finding, Fix, Outcome, Remedy, Severity
from gpudoctor.model.gpu_conclusions import (
    Consumer, Consumers, DeviceChoice, DriverCondition, DriverState, FaultSign, GpuFault, GpuFaults, GpuNeed,
    KnownGpu, Proof, Shortage, VisibleDevices, Wsl, condition_of_cuda_version, shown_bytes,
)
from gpudoctor.model.images import CopiedFiles, Mounted, ProjectImage, RunningContainer, UnmetRequirement
from gpudoctor.model.machine import (
    CudaDevice, Device, DeviceFile, DeviceProcess, Devices, Driver, PciGpu, System, Xid, known_facts, ranges,
)
from gpudoctor.model.profile import (
    FingerprintPart, FoundProfile, fingerprint_memory, fingerprint_value, same_device, same_memory,
)
from gpudoctor.model.record import Fact
from gpudoctor.model.report import NextStep, PossibleCause, Report, Triage
from gpudoctor.model.run import FEWEST_STEPS, Loader, Run, RunGpu, Steps, TorchMemory, measured, share_text, size_text
from gpudoctor.model.snapshot import SECTIONS, ProbeReport, Snapshot, look_up
from gpudoctor.model.software import (
    Container, Cupy, CupyRuntime, Environment, LibraryCall, Package, PrecisionResult, Project, Python, Requirement,
    SharedLibrary, Toolkit, ToolkitInstall, Torch, TorchRuntime,
)
from gpudoctor.model.symptom import Contradiction, Symptom
from gpudoctor.model.torch_conclusions import (
    Allocator, AllocatorVariable, BuiltExtension, Extensions, FailedExtension, HalfPrecision, Tf32, Tf32Product,
    TorchDevice, TorchDevices, TorchKernels, TorchRequest, described,
)
from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion, PackageVersion
