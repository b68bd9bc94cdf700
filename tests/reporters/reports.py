"""Reports to render: of every kind, small enough to read."""

from dataclasses import replace

from gpudoctor.model import (
    CheckResult,
    ComputeCapability,
    Cupy,
    Device,
    Driver,
    DriverVersion,
    Evidence,
    Finding,
    NextStep,
    Outcome,
    PackageVersion,
    PossibleCause,
    Python,
    Remedy,
    Report,
    Severity,
    Snapshot,
    System,
    Torch,
    Triage,
)

INSTALL = (
    "/home/ann/.venv/bin/python -m pip install --force-reinstall torch==2.13.0+cu126 "
    "--index-url https://download.pytorch.org/whl/cu126"
)
RTX_4090 = Device(
    nvml_index=0,
    name="NVIDIA GeForce RTX 4090",
    compute_capability=ComputeCapability(8, 9),
    memory_total_bytes=24 * 2**30,
    memory_used_bytes=3 * 2**29,
    utilization_percent=3,
    temperature_celsius=41,
)
H200 = Device(nvml_index=1, name="NVIDIA H200", memory_total_bytes=141 * 2**30)
UBUNTU = System(os="linux", distribution_name="Ubuntu 24.04.1 LTS")
DRIVER_550 = Driver(version=DriverVersion((550, 54, 14)), installed=True)
PYTHON = Python(version=PackageVersion("3.12.3"), environment="venv", installer="pip")
CPU_TORCH = Torch(installed=True, version=PackageVersion("2.13.0+cpu"), build="cpu")
NO_CUPY = Cupy(distributions=())
DESKTOP = Snapshot(system=UBUNTU, driver=DRIVER_550, devices=(RTX_4090,), python=PYTHON, torch=CPU_TORCH, cupy=NO_CUPY)

CPU_BUILD = Finding(
    check_id="torch-cpu-build",
    severity=Severity.ERROR,
    subject="torch 2.13.0+cpu",
    summary="PyTorch 2.13.0+cpu was built without CUDA, and this machine has an NVIDIA GeForce RTX 4090",
    evidence=(
        Evidence(fact="torch.build", value="cpu", source="torch/version.py"),
        Evidence(fact="devices[0].name", value="NVIDIA GeForce RTX 4090", source="NVML"),
    ),
    remedies=(
        Remedy(
            summary="install the CUDA 12.6 build of PyTorch, which fits driver 550.54.14",
            commands=(INSTALL, "/home/ann/.venv/bin/python -c 'import torch; print(torch.cuda.is_available())'"),
            needs=("restart",),
            reference="https://pytorch.org/get-started/locally/",
        ),
    ),
)
PERSISTENCE = Finding(
    check_id="persistence-mode-off",
    severity=Severity.INFO,
    summary="persistence mode is off on 1 of 1 devices",
    remedies=(Remedy(summary="turn it on", commands=("sudo nvidia-smi -pm 1",), needs=("root",)),),
)
AMP = Finding(
    check_id="amp-unused",
    severity=Severity.INFO,
    summary="bf16 runs on the tensor cores of NVIDIA GeForce RTX 4090",
    remedies=(Remedy(summary='wrap the forward pass in torch.autocast("cuda", dtype=torch.bfloat16)'),),
)
MISMATCH = Finding(
    check_id="driver-library-mismatch",
    severity=Severity.ERROR,
    subject="driver 550.54.14",
    summary="the kernel module is 550.54.14 and the libraries are 550.90.07",
    evidence=(Evidence(fact="driver.library_version", value="550.90.07", source="name of libcuda.so.VERSION"),),
    remedies=(
        Remedy(summary="reboot", commands=("sudo reboot", "nvidia-smi"), needs=("root", "reboot")),
        Remedy(summary="load the new module", commands=("sudo modprobe nvidia",), needs=("root",)),
    ),
)
SHM = Finding(
    check_id="shm-too-small",
    severity=Severity.WARNING,
    subject="/dev/shm",
    summary="/dev/shm has 64.0 MiB",
    evidence=(Evidence(fact="system.shm_total_bytes", value=67108864, source="statvfs /dev/shm"),),
    remedies=(Remedy(summary="start the container with more"),),
)


def consequence(check_id: str, summary: str) -> Finding:
    return Finding(
        check_id=check_id,
        severity=Severity.INFO,
        summary=summary,
        caused_by=MISMATCH.check_id,
        remedies=MISMATCH.remedies,
    )


CONSEQUENCES = (
    consequence("torch-cuda-unavailable", "PyTorch 2.13.0+cu126 finds no CUDA device: Unexpected error"),
    consequence("cupy-device-unavailable", "CuPy finds no device: cudaErrorInsufficientDriver"),
    consequence("nvml-unavailable", "NVML cannot be initialised: Driver/library version mismatch"),
)


def passed(*ids: str) -> tuple[CheckResult, ...]:
    return tuple(CheckResult(check_id=check_id, outcome=Outcome.PASSED) for check_id in ids)


def skipped(reason: str, *ids: str) -> tuple[CheckResult, ...]:
    return tuple(CheckResult(check_id=check_id, outcome=Outcome.SKIPPED, reason=reason) for check_id in ids)


def not_applicable(reason: str, *ids: str) -> tuple[CheckResult, ...]:
    return tuple(replace(result, applicable=False) for result in skipped(reason, *ids))


def report(
    *findings: Finding,
    snapshot: Snapshot = DESKTOP,
    others: tuple[CheckResult, ...] = (),
    proof: tuple[str, ...] = (),
    triage: Triage | None = None,
) -> Report:
    found = (CheckResult(check_id=f.check_id, outcome=Outcome.FOUND, findings=(f,)) for f in findings)
    results = (*found, *others)
    return Report(version="0.1.0", snapshot=snapshot, results=results, findings=findings, proof=proof, triage=triage)


OTHERS = (
    *passed(
        "driver-missing", "driver-too-old", "no-nvidia-gpu", "cuda-visible-devices-hides-gpu", "torch-not-installed"
    ),
    *skipped("not WSL", "wsl-driver-problem"),
    *skipped("CuPy is not installed", "cupy-multiple-packages", "cupy-nvrtc-missing", "cupy-a", "cupy-b"),
)

PROOF = "PyTorch 2.13.0+cu126 computed correctly on 2 GPUs (NVIDIA GeForce RTX 4090, NVIDIA H200; fp32)"
HEALTHY = report(
    snapshot=Snapshot(system=UBUNTU, driver=DRIVER_550, devices=(RTX_4090, H200), python=PYTHON),
    others=OTHERS,
    proof=(PROOF,),
)
WARNING = report(SHM, others=OTHERS)
ERROR = report(
    MISMATCH, *CONSEQUENCES, SHM, PERSISTENCE, AMP, others=(*OTHERS, *not_applicable("not a Mac", "mps-issues"))
)
CRASHED = report(
    CPU_BUILD,
    others=(
        CheckResult(
            check_id="driver-missing",
            outcome=Outcome.CRASHED,
            reason="crashed, which is a bug in gpudoctor: KeyError: 3",
        ),
    ),
)
QUESTIONS = Triage(
    understood=("Ubuntu 24.04.1 LTS", 'PyTorch finds no GPU: "no CUDA-capable device is detected"'),
    missing=("the driver version",),
    next_steps=(
        NextStep(command="nvidia-smi", why="Shows whether the driver answers.", where="on the host"),
        NextStep(command="lspci -nnk -d 10de:", why="Shows whether the GPU is on the PCI bus."),
    ),
    possible=(
        PossibleCause(check="driver-missing", why="Without a driver no program sees it.", confirm="nvidia-smi fails."),
    ),
)
UNKNOWN = report(
    snapshot=Snapshot(), others=skipped("driver: not known", "driver-missing", "driver-too-old"), triage=QUESTIONS
)
IGNORED = report(CPU_BUILD, others=(*skipped("ignored on the command line", "shm-too-small"), *OTHERS[:1]))
NOTHING = report(snapshot=Snapshot(), triage=Triage())

EVIL = (
    "\x1b[2J\r\n::error::x%\ud800 <script>alert(1)</script> </code></pre></details> ``` ````` ]]> @octocat #12 "
    "[click](https://evil.example) ![i](https://evil.example/i.png) www.evil.example javascript:x {0} | \u202e\x00"
)


def everywhere(text: str) -> Report:
    """Return a report with `text` in every field that a machine, a plugin or a pasted text can fill."""
    finding = Finding(
        check_id=text,
        severity=Severity.ERROR,
        subject=text,
        summary=text,
        evidence=(
            Evidence(fact=text, value=[text, {text: text}], source=text),
            Evidence(fact="a", value=text, source=""),
        ),
        remedies=(Remedy(summary=text, commands=(text, "ls"), needs=(text,), reference=text),),
        details={text: [text]},
    )
    advice = replace(finding, severity=Severity.INFO)
    snapshot = Snapshot(
        system=System(distribution_name=text, container=text),
        devices=(Device(nvml_index=0, name=text), Device(nvml_index=1, error=text)),
        python=Python(version=PackageVersion(text), environment=text),
        torch=Torch(version=PackageVersion(text)),
        cupy=Cupy(version=PackageVersion(text)),
    )
    crash = CheckResult(check_id=text, outcome=Outcome.CRASHED, reason=text)
    others = (*passed(text), *skipped(text, text), *not_applicable(text, text), crash)
    whole = report(finding, replace(advice, caused_by=text), advice, snapshot=snapshot, others=others)
    triage = Triage(
        understood=(text,),
        missing=(text,),
        next_steps=(NextStep(command=text, why=text, where=text),),
        possible=(PossibleCause(check=text, why=text, confirm=text),),
    )
    return replace(whole, version=text, proof=(text,), triage=triage)


HOSTILE = everywhere(EVIL)
HOSTILE_HEALTHY = replace(HOSTILE, findings=(), triage=None)
HOSTILE_UNKNOWN = replace(HOSTILE, findings=(), proof=())
HUNDREDS = report(*(replace(CPU_BUILD, check_id=f"check-{n}") for n in range(400)))
ALL = {
    "healthy": HEALTHY,
    "warning": WARNING,
    "error": ERROR,
    "crashed": CRASHED,
    "unknown": UNKNOWN,
    "ignored": IGNORED,
    "nothing": NOTHING,
    "hostile": HOSTILE,
    "hostile, healthy": HOSTILE_HEALTHY,
    "hostile, unknown": HOSTILE_UNKNOWN,
    "hundreds": HUNDREDS,
}
