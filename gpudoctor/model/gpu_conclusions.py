"""Conclusions about GPUs: driver, faults, memory and visibility to programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from gpudoctor.model.finding import Severity
from gpudoctor.model.machine import Xid
from gpudoctor.model.record import Fact, record
from gpudoctor.model.symptom import Symptom
from gpudoctor.model.versions import ComputeCapability, CudaVersion, DriverVersion


@record
class KnownGpu:
    """A GPU with a known compute capability."""

    name: str
    capability: ComputeCapability
    fact: Annotated[str, Fact("path of the fact that shows its compute capability")]

    def __str__(self) -> str:
        return f"{self.name} ({self.capability.sm})"


@record
class GpuNeed:
    """Whether an NVIDIA GPU is needed, whether one answers, and evidence that there is none."""

    asked: Annotated[bool | None, Fact("by a CUDA build, or by a program that misses a GPU")] = None
    answers: Annotated[bool, Fact("NVML, the driver, its kernel module or PyTorch shows one")] = False
    meant: Annotated[str, Fact("what else shows that the environment is meant for a GPU; empty for nothing")] = ""
    meant_fact: Annotated[str, Fact("path of the fact that shows it")] = ""
    required: Annotated[bool, Fact("by the user: --gpu required, or --require")] = False
    unneeded: Annotated[bool, Fact("nothing installed on this machine needs one")] = False
    severity: Annotated[Severity, Fact("how much it matters if there is none")] = Severity.WARNING
    denied: Annotated[Symptom | None, Fact("what says that there is none")] = None


@record
class Proof:
    """What was verified, in sentences, and evidence against it."""

    sentences: tuple[str, ...] = ()
    failures: Annotated[tuple[Symptom, ...], Fact("failure messages of a pasted report")] = ()


@record
class FaultSign:
    """One sign of a hardware fault."""

    text: Annotated[str, Fact('for a sentence: "Xid 79 (GPU has fallen off the bus)"')]
    fact: Annotated[str, Fact("path of the fact that shows it")]
    severe: Annotated[bool, Fact("the GPU cannot be used before a reset; otherwise the driver survives the fault")] = (
        False
    )
    lost: Annotated[bool, Fact("the driver does not reach the GPU any more: no reset helps, only a restart")] = False
    worn_out: Annotated[bool, Fact("its spare memory is used up")] = False
    xid: Xid | None = None


@record
class GpuFault:
    """The signs of a fault on one GPU."""

    subject: Annotated[str, Fact("its name, else its PCI address")]
    signs: tuple[FaultSign, ...]
    nvml_index: int | None = None

    @property
    def severe(self) -> bool:
        """Whether one of the signs is severe."""
        return any(sign.severe for sign in self.signs)

    @property
    def lost(self) -> bool:
        """Whether the driver has lost the GPU."""
        return any(sign.lost for sign in self.signs)

    @property
    def worn_out(self) -> bool:
        """Whether its spare memory is used up."""
        return any(sign.worn_out for sign in self.signs)


@record
class GpuFaults:
    """Evidence of GPU hardware faults."""

    faulty: tuple[GpuFault, ...] = ()
    not_started: Annotated[Symptom | None, Fact("the driver is loaded and lists no device at all")] = None
    of_programs: Annotated[tuple[FaultSign, ...], Fact("Xid errors for which NVIDIA asks no reset")] = ()
    known: Annotated[bool, Fact("the Xid errors, or the memory errors of a device, are known")] = False


@record
class DeviceChoice:
    """How CUDA or ROCm reads a variable that lists devices: the valid entries, and the one that ends the list."""

    name: Annotated[str, Fact('the variable: "CUDA_VISIBLE_DEVICES"')]
    value: str
    visible: tuple[str, ...] = ()
    bad: Annotated[str, Fact("the entry that ends the list; empty if none does")] = ""
    reason: Annotated[str, Fact('why it does: "is above the highest GPU number, 3"')] = ""
    after: Annotated[tuple[str, ...], Fact("the entries after it, which do not count")] = ()
    hides_all: Annotated[bool, Fact("it leaves nothing visible, whatever GPUs there are")] = False
    count: Annotated[int | None, Fact("GPUs of the machine")] = None


@record
class VisibleDevices:
    """Devices that the variables leave visible, and that programs find."""

    known: Annotated[bool, Fact("the environment is known")] = False
    nvidia: Annotated[DeviceChoice | None, Fact("CUDA_VISIBLE_DEVICES; None if it is unset or unknown")] = None
    amd: Annotated[DeviceChoice | None, Fact("the first variable that hides every AMD GPU")] = None
    misses: Annotated[
        bool, Fact("a driver is there, and CUDA finds no device, or PyTorch none and gives no reason")
    ] = False
    finds_none: Annotated[bool, Fact("a program finds a driver and no device, for whatever reason")] = False
    finds_some: Annotated[bool, Fact("CUDA finds devices in spite of the variable")] = False
    too_few: Annotated[bool, Fact("PyTorch sees fewer than are named, or a program asks for one too many")] = False
    seen_elsewhere: Annotated[str, Fact("what sees a GPU where PyTorch finds none, as a clause")] = ""
    seen_elsewhere_facts: tuple[str, ...] = ()


@record
class DriverState:
    """Whether the NVIDIA driver works, and the symptoms if it does not."""

    installed: bool | None = None
    label: Annotated[str, Fact('for a sentence: "driver 580.65.06"')] = "NVIDIA driver"
    works: Annotated[bool, Fact("CUDA was initialised, or NVML lists a device")] = False
    asked: Annotated[bool, Fact("CUDA was called: an error that it returns is known")] = False
    not_found: Annotated[Symptom | None, Fact("a program finds no driver at all: libcuda cannot be loaded")] = None
    too_old: Annotated[Symptom | None, Fact("a program calls the driver too old")] = None
    other_libcuda: Annotated[Symptom | None, Fact("that it is too old is said of a driver that is new enough")] = None
    cuda_version: Annotated[
        CudaVersion | None, Fact("highest CUDA version that it offers: by libcuda, by a message, by its branch")
    ] = None
    stays: Annotated[bool, Fact("this user cannot update it, or not to a branch that supports the GPU")] = False


@record
class Consumer:
    """An installed library or compiler whose programs need a driver for some CUDA version."""

    name: Annotated[str, Fact('"torch", "cupy", "nvcc"')]
    says: Annotated[str, Fact('for a sentence: "PyTorch was built with CUDA 13.0"')]
    cuda_version: CudaVersion
    fact: Annotated[str, Fact("path of the fact that gives the version")]
    works: Annotated[bool, Fact("it is known to compute on the GPU")] = False
    runs: Annotated[bool | None, Fact("the driver runs programs built with that version")] = None
    has_variants: Annotated[bool, Fact("its package comes for several CUDA versions: another one may fit")] = False
    likely: Annotated[str, Fact("why the version was inferred, not read; empty if it was read")] = ""


@record
class Consumers:
    """Installed software that needs the NVIDIA driver."""

    ask_for_cuda: Annotated[bool | None, Fact("a CUDA build of PyTorch or CuPy is installed")] = None
    libraries: tuple[Consumer, ...] = ()
    nvcc: Annotated[Consumer | None, Fact("the toolkit's compiler: what it makes needs a driver, not itself")] = None


@record
class DriverCondition:
    """A condition such as "cuda>=12.6 brand=tesla,driver>=470,driver<471".

    A blank separates alternatives, a comma the conditions of one alternative.
    Source: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    """

    text: str

    @property
    def cuda(self) -> CudaVersion | None:
        """The CUDA version that the first alternative requires."""
        match = re.search(r"\bcuda>=?(\d{1,3}(?:\.\d{1,3})?)", self.text)
        return CudaVersion.parse(match[1]) if match else None

    @property
    def driver(self) -> DriverVersion | None:
        """The driver version that the first alternative requires."""
        match = re.search(r"\bdriver>=?(\d{1,4}(?:\.\d{1,4}){0,2})", self.text)
        return DriverVersion.parse(match[1]) if match else None

    @property
    def label(self) -> str:
        """The first alternative and the number of the others, for a sentence."""
        first, *others = self.text.split()
        return f"{first} (or one of {len(others)} alternatives)" if others else first

    def is_met(self, offered: CudaVersion, driver: DriverVersion | None) -> bool:
        """Return whether a driver with this CUDA version meets one of the alternatives.

        Conditions that cannot be compared, such as the GPU brand, count as met: the runtime checks them anyway.
        """
        return any(
            all(_is_met(condition, offered, driver) for condition in alternative.split(","))
            for alternative in self.text.split()
        )


def condition_of_cuda_version(text: str | None) -> str:
    """Return the condition for an image that only names its CUDA version: the minor version may differ."""
    match = re.match(r"\d{1,3}(?=\.\d)", text or "")
    return f"cuda>={match[0]}.0" if match else ""


def _is_met(condition: str, offered: CudaVersion, driver: DriverVersion | None) -> bool:
    match = re.fullmatch(r"(cuda|driver)(>=|<=|!=|=|<|>)(\d{1,4}(?:\.\d{1,4}){0,3})", condition)
    if match is None:
        return True
    wanted = tuple(int(part) for part in match[3].split("."))
    present = (offered.major, offered.minor) if match[1] == "cuda" else driver.parts if driver is not None else None
    if present is None:
        return True
    length = max(len(wanted), len(present))
    left, right = (part + (0,) * (length - len(part)) for part in (present, wanted))
    return {
        ">=": left >= right,
        "<=": left <= right,
        "!=": left != right,
        "=": left == right,
        "<": left < right,
        ">": left > right,
    }[match[2]]


@record
class Wsl:
    """The Windows NVIDIA driver in WSL. A text or path is empty without evidence."""

    version: Annotated[int | None, Fact("1 or 2 inside WSL, 0 outside")] = None
    works: Annotated[bool, Fact("CUDA or NVML works in it, whatever else is installed")] = False
    failure: Annotated[str, Fact("path of the fact in which something misses the GPU or its driver")] = ""
    blocked: Annotated[str, Fact("path of the fact in which NVML says that GPU access is blocked")] = ""
    old_kernel: Annotated[str, Fact("release of a WSL 2 kernel that is older than GPU support")] = ""
    old_windows: Annotated[str, Fact('a Windows without GPUs in WSL 2: "Windows 10 2004"')] = ""
    old_windows_fact: str = ""
    driver_inside: Annotated[str, Fact("file of a Linux driver inside WSL")] = ""
    driver_inside_fact: str = ""


GIB = 2**30


@record
class Shortage:
    """The missing memory in bytes, from the message with most numbers. None means unknown."""

    cause: Annotated[
        str,
        Fact(
            '"others" (another process uses the memory), "fragmented", "refused" (although enough is free), '
            '"too-large", "unknown" (one of these), "host", "killed"; empty if no job lacked memory'
        ),
    ] = ""
    kind: Annotated[str, Fact("the kind of message that says so")] = ""
    library: str = ""
    text: str = ""
    fact: Annotated[str, Fact("path of the message")] = ""
    certain: Annotated[bool, Fact("the message has no other causes")] = True
    tried: Annotated[int | None, Fact("what the job asked for")] = None
    total: Annotated[int | None, Fact("memory of the device")] = None
    free: int | None = None
    mine: Annotated[int | None, Fact("held by the job")] = None
    reserved: Annotated[int | None, Fact("kept by the job's allocator, unused")] = None
    others: Annotated[int | None, Fact("held by other processes")] = None
    others_pids: Annotated[tuple[int, ...], Fact("those that the message names")] = ()

    @property
    def numbers(self) -> str:
        """The known sizes, for a sentence: "the job asked for 1.50 GiB, the device has 15.70 GiB"."""
        return ", ".join(self._numbers())

    def _numbers(self) -> Iterator[str]:
        if self.tried is not None:
            yield f"the job asked for {shown_bytes(self.tried)}"
        if self.free is not None:
            total = f" of {shown_bytes(self.total)}" if self.total is not None else ""
            yield f"{shown_bytes(self.free)}{total} are free"
        elif self.total is not None:
            yield f"the device has {shown_bytes(self.total)}"
        if self.mine is not None:
            yield f"the job uses {shown_bytes(self.mine)}"
        much = self.cause == "too-large" and 10 * (self.reserved or 0) >= (self.total or 0)
        if self.reserved and (self.cause == "fragmented" or much):
            of_these = "of which " if self.mine is not None else ""
            yield f"{of_these}{shown_bytes(self.reserved)} are reserved but unallocated"
        if self.cause == "others" and self.others:
            yield f"other processes use {shown_bytes(self.others)}"


def shown_bytes(size: int) -> str:
    """Return a size for a sentence: "2.00 GiB", "20 MiB"."""
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / 2**20:.0f} MiB"
