"""Requirements: what can be written, and when a machine meets it."""

import string
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudoctor.conclusions.requirements import judgement as judgements
from gpudoctor.conclusions.requirements.judging import judge
from gpudoctor.configuration.requirement_names import names
from gpudoctor.configuration.requirements import UNITS, parse_requirement, sections_of
from gpudoctor.errors import UsageError
from gpudoctor.model import (
    SECTIONS,
    ComputeCapability,
    CudaDevice,
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    Driver,
    DriverVersion,
    FoundProfile,
    PackageVersion,
    PrecisionResult,
    ProbeReport,
    Python,
    Snapshot,
    System,
    Torch,
    TorchRuntime,
)
from gpudoctor.model.requirement import OPERATORS, Judgement, MachineRequirement
from tests.own_checks import own_checks

NAMES = names()

MIB = 2**20
GIB = 2**30
CAPABILITIES = {"NVIDIA GeForce RTX 4090": "8.9", "NVIDIA L4": "8.9", "NVIDIA A100-SXM4-80GB": "8.0", "Tesla T4": "7.5"}
MEMORY_MIB = {
    "NVIDIA GeForce RTX 4090": 24564,
    "NVIDIA L4": 23034,
    "NVIDIA A100-SXM4-80GB": 81920,
    "Tesla T4": 15360,
}


def gpu(name: str, number: int = 0, **fields: object) -> Device:
    known = {"name": name, "memory_total_bytes": MEMORY_MIB[name] * MIB}
    return Device(nvml_index=number, compute_capability=capability(name), **{**known, **fields})  # type: ignore[arg-type]


def capability(name: str) -> ComputeCapability:
    return ComputeCapability.parse(CAPABILITIES[name])


def machine(*names: str, visible: Sequence[str] | None = None) -> Snapshot:
    """A machine that can be asked. visible: the GPUs that CUDA gives a program, all of them by default."""
    given_to_programs = tuple(
        CudaDevice(name=name, compute_capability=capability(name)) for name in (names if visible is None else visible)
    )
    driver = Driver(
        installed=True,
        version=DriverVersion.parse("550.54.15"),
        cuda_version=CudaVersion(12, 4),
        cuda_init_code=0,
        cuda_device_count=len(given_to_programs),
        cuda_devices=given_to_programs,
    )
    return Snapshot(driver=driver, devices=tuple(gpu(name, number) for number, name in enumerate(names)))


def judged(snapshot: Snapshot, *texts: str) -> tuple[Judgement, ...]:
    return judge([parse_requirement(text) for text in texts], snapshot)


def met(snapshot: Snapshot, *texts: str) -> list[bool | None]:
    return [judgement.met for judgement in judged(snapshot, *texts)]


def found(snapshot: Snapshot, text: str) -> str:
    (judgement,) = judged(snapshot, text)
    assert judgement.met is not True
    return judgement.found


# What can be written.


@pytest.mark.parametrize(
    ("text", "requirement"),
    [
        ("gpu>=1", MachineRequirement(text="gpu>=1", name="gpu", operator=">=", value=1)),
        (" gpu  >= 1 ", MachineRequirement(text="gpu>=1", name="gpu", operator=">=", value=1)),
        ("vram>=24GiB", MachineRequirement(text="vram>=24GiB", name="vram", operator=">=", value=24 * GIB)),
        ("vram > 24 gb", MachineRequirement(text="vram>24gb", name="vram", operator=">", value=24 * 10**9)),
        ("shm>=1.5GiB", MachineRequirement(text="shm>=1.5GiB", name="shm", operator=">=", value=1536 * MIB)),
        ("torch==2.4.*", MachineRequirement(text="torch==2.4.*", name="torch", operator="==", value="2.4.*")),
        ("torch.cuda", MachineRequirement(text="torch.cuda", name="torch.cuda")),
        ("BF16", MachineRequirement(text="bf16", name="bf16")),
        (
            "compute-capability>=8.0",
            MachineRequirement(text="compute_capability>=8.0", name="compute_capability", operator=">=", value="8.0"),
        ),
    ],
)
def test_what_is_understood(text: str, requirement: MachineRequirement) -> None:
    assert parse_requirement(text) == requirement


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpus>=1", "--require: there is no requirement 'gpus': did you mean gpu?"),
        ("xyzzy", "--require: there is no requirement 'xyzzy': known are gpu, vram, compute_capability, "),
        ("vram>=blue", "--require: vram>=blue: expected a size with its unit, such as 24GiB (2^30 bytes) or 24GB"),
        ("vram>=24", "--require: vram>=24: expected a size with its unit, such as 24GiB (2^30 bytes) or 24GB"),
        ("vram>=25769803776", "--require: vram>=25769803776: expected a size with its unit"),
        ("vram", "--require: vram: expected an operator and a value, as in vram>=24GiB"),
        ("gpu>=", "--require: gpu>=: expected a whole number such as 1"),
        ("gpu>=1.5", "--require: gpu>=1.5: expected a whole number such as 1, not '1.5'"),
        ("gpu=1", "--require: gpu=1: the operator is one of >= <= == != > <, as in gpu==1"),
        ("gpu 1", "--require: gpu1: the operator is one of >= <= == != > <"),
        ("gpu=>1", "--require: gpu=>1: the operator is one of >= <= == != > <"),
        ("torch>=two", "--require: torch>=two: expected a version such as 12.4, not 'two'"),
        ("torch>=2.4.*", "--require: torch>=2.4.*: expected a version"),
        ("torch>=2.4,<3", "--require: torch>=2.4,<3: only one comparison is allowed"),
        ("torch.cuda>=12", "--require: torch.cuda>=12: torch.cuda takes no value: it is available or not"),
        ("", "--require: '' is not a requirement: write a name, or NAME OP VALUE: gpu>=1"),
        (">=1", "--require: '>=1' is not a requirement"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_is_expected(text: str, message: str) -> None:
    with pytest.raises(UsageError) as mistake:
        parse_requirement(text)
    assert str(mistake.value).startswith(message)
    assert "\n" not in str(mistake.value)


SIZES = st.builds(lambda n, unit: f"{n}{unit}", st.integers(0, 10**6), st.sampled_from(sorted(UNITS)))
VERSIONS = st.lists(st.integers(0, 999), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
VALUES = {"count": st.integers(0, 9999).map(str), "size": SIZES, "version": VERSIONS}
SPACES = st.text(" \t", max_size=3)


@given(st.data())
def test_whatever_fits_is_understood_with_or_without_spaces(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(name for name, entry in NAMES.items() if entry.value)))
    sign = data.draw(st.sampled_from(sorted(OPERATORS)))
    value = data.draw(VALUES[NAMES[name].value])
    before, after = data.draw(SPACES), data.draw(SPACES)
    requirement = parse_requirement(f"{before}{name}{after}{sign}{before}{value}{after}")
    assert (requirement.name, requirement.operator, requirement.text) == (name, sign, f"{name}{sign}{value}")
    assert parse_requirement(requirement.text) == requirement


@given(st.text(alphabet=string.printable + "é\x00\u2028", max_size=60) | st.text(max_size=300))
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        requirement = parse_requirement(text)
    except UsageError:
        return  # any other exception would be a fault
    assert parse_requirement(requirement.text) == requirement


# GPUs: how many, and what they have.


def test_the_gpus_that_count_are_those_that_a_program_can_use() -> None:
    hidden = machine("NVIDIA L4", "NVIDIA L4", visible=["NVIDIA L4"])
    assert met(hidden, "gpu", "gpu>=1", "gpu==1", "gpu>=2", "gpu<2", "gpu!=1") == [True, True, True, False, True, False]
    assert found(hidden, "gpu>=2") == "1 GPU can be used"


def test_without_a_number_of_gpus_every_one_must_have_it() -> None:
    both = machine("NVIDIA A100-SXM4-80GB", "Tesla T4")
    assert met(both, "compute_capability>=7.5", "compute_capability>=8.0") == [True, False]
    assert found(both, "compute_capability>=8.0") == "Tesla T4 has compute capability 7.5"


def test_with_a_number_of_gpus_as_many_must_have_it() -> None:
    both = machine("NVIDIA A100-SXM4-80GB", "Tesla T4")
    assert met(both, "gpu>=1", "vram>=40GiB", "bf16") == [True, True, True]
    assert met(both, "vram>=40GiB", "gpu>=2") == [False, True]


def test_it_must_be_the_same_gpus_that_have_it_all() -> None:
    mixed = machine("NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090")
    assert met(mixed, "gpu>=1", "fp8") == [True, True]
    assert met(mixed, "gpu>=1", "vram>=40GiB", "fp8") == [True, True, False]


def test_a_gpu_that_is_hidden_does_not_count() -> None:
    assert met(machine("NVIDIA A100-SXM4-80GB", "Tesla T4", visible=["Tesla T4"]), "vram>=40GiB") == [False]
    assert met(machine("NVIDIA A100-SXM4-80GB", "Tesla T4", visible=["NVIDIA A100-SXM4-80GB"]), "bf16") == [True]


def test_if_it_is_not_known_which_gpu_is_hidden_the_worst_is_assumed() -> None:
    devices = (gpu("NVIDIA A100-SXM4-80GB"), gpu("Tesla T4", 1))
    one_hidden = Snapshot(driver=Driver(cuda_device_count=1), devices=devices)
    assert met(one_hidden, "vram>=40GiB", "vram>=12GiB") == [False, True]


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        pytest.param("NVIDIA GeForce RTX 4090", "vram>=24GiB", True, id="23.99 GiB is what a 24 GB card tells"),
        pytest.param("NVIDIA GeForce RTX 4090", "vram<24GiB", False, id="and it is not less"),
        pytest.param("NVIDIA GeForce RTX 4090", "vram>24GiB", False, id="nor more"),
        pytest.param("NVIDIA L4", "vram>=24GiB", False, id="what ECC takes is not there"),
        pytest.param("NVIDIA L4", "vram>=22GiB", True, id="below it"),
        pytest.param("NVIDIA L4", "vram>=24GB", True, id="GB are smaller"),
    ],
)
def test_memory(name: str, text: str, answer: bool) -> None:
    assert met(machine(name), text) == [answer]


def test_memory_is_named_as_it_is() -> None:
    assert found(machine("NVIDIA L4", "NVIDIA L4"), "vram>=24GiB") == "2 x NVIDIA L4 has 22.49 GiB"


def test_an_instance_of_mig_has_its_own_memory() -> None:
    whole = gpu("NVIDIA A100-SXM4-80GB", mig_enabled=True)
    instance = CudaDevice(name="NVIDIA A100-SXM4-80GB MIG 1g.10gb", memory_total_bytes=10 * GIB)
    driver = Driver(cuda_device_count=1, cuda_devices=(instance,))
    assert met(Snapshot(driver=driver, devices=(whole,)), "vram>=40GiB", "vram>=9GiB", "bf16") == [False, True, True]
    unnamed = Driver(cuda_device_count=1)
    assert met(Snapshot(driver=unnamed, devices=(whole,)), "vram>=9GiB") == [None]


@pytest.mark.parametrize(
    ("name", "native"),
    [
        ("Tesla T4", {"fp16"}),
        ("NVIDIA A100-SXM4-80GB", {"fp16", "bf16", "tf32"}),
        ("NVIDIA GeForce RTX 4090", {"fp16", "bf16", "tf32", "fp8"}),
    ],
)
def test_a_precision_must_be_native(name: str, native: set[str]) -> None:
    precisions = ["fp16", "bf16", "tf32", "fp8"]
    assert met(machine(name), *precisions) == [precision in native for precision in precisions]


def test_an_emulated_precision_is_called_so() -> None:
    assert found(machine("Tesla T4"), "bf16") == "Tesla T4 emulates bf16 (compute capability 7.5)"


@pytest.mark.parametrize(
    ("driver", "why"),
    [
        (Driver(installed=False), "no GPU can be used: no NVIDIA driver is installed"),
        (Driver(libcuda_path="", libcuda_error="no such file"), "no GPU can be used: libcuda cannot be loaded"),
        (
            Driver(cuda_init_code=999, cuda_init_error="CUDA_ERROR_UNKNOWN"),
            "no GPU can be used: CUDA does not start: CUDA_ERROR_UNKNOWN",
        ),
        (Driver(cuda_device_count=0), "no GPU can be used: driver.cuda_device_count is 0"),
    ],
)
@pytest.mark.parametrize("text", ["gpu>=1", "vram>=1GiB", "bf16"])
def test_if_no_gpu_can_be_used_nothing_is_met(driver: Driver, why: str, text: str) -> None:
    listed_all_the_same = Snapshot(driver=driver, devices=(gpu("NVIDIA L4"),))
    assert found(listed_all_the_same, text) == why


def test_no_gpu_may_be_what_is_required() -> None:
    assert met(Snapshot(driver=Driver(installed=False)), "gpu==0") == [True]


def test_a_report_counts_the_gpus_that_nvidia_smi_lists() -> None:
    pasted = Snapshot(devices=(gpu("NVIDIA L4"), gpu("NVIDIA L4", 1, error="GPU is lost")), contradictions=())
    assert met(pasted, "gpu==1", "vram>=20GiB") == [True, True]


def test_of_a_machine_that_could_be_asked_nvml_alone_proves_nothing() -> None:
    hung = ProbeReport(section="driver", probe="cuda-driver", state="timed-out", detail="no answer in 30 s")
    snapshot = Snapshot(devices=(gpu("NVIDIA L4"),), reports=(hung,))
    assert found(snapshot, "gpu>=1") == "which GPUs can be used is not known: driver: timed-out (no answer in 30 s)"


def test_gpus_of_rocm_count_and_what_they_have_is_not_known() -> None:
    runtime = TorchRuntime(hip_version="6.4", available=True, device_count=2)
    snapshot = Snapshot(torch_runtime=runtime, driver=Driver(installed=False))
    assert met(snapshot, "gpu>=2", "gpu>=3", "vram>=1GiB", "bf16") == [True, False, None, None]


# Versions.

SOFTWARE = Snapshot(
    driver=Driver(version=DriverVersion.parse("535.54.03"), cuda_version=CudaVersion(12, 2)),
    python=Python(version=PackageVersion("3.10.4")),
    torch=Torch(installed=True, version=PackageVersion("2.13.0+cu130"), build="cuda"),
    cupy=Cupy(version=PackageVersion("13.6.0"), distributions=()),
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("driver>=535", True),
        ("driver>=550", False),
        ("driver==535.*", True),
        ("cuda>=12.2", True),
        ("cuda>=12.10", False),
        ("python>=3.9", True),
        ("python<3.10", False),
        ("torch>=2.4", True),
        ("torch==2.13.0", True),
        ("torch!=2.13.0", False),
        ("torch>2.13.0", False),
        ("torch", True),
        ("cupy>=13", True),
        ("cupy<13", False),
    ],
)
def test_versions_compare_as_versions(text: str, answer: bool) -> None:
    assert met(SOFTWARE, text) == [answer]


def test_a_version_that_is_none_is_not_known() -> None:
    assert met(Snapshot(torch=Torch(installed=True, version=PackageVersion("main"))), "torch>=2", "torch") == [
        None,
        True,
    ]


def test_what_is_there_instead_is_named() -> None:
    assert found(SOFTWARE, "driver>=550") == "the driver is 535.54.03"
    assert found(SOFTWARE, "cuda>=12.4") == "the driver supports CUDA 12.2"
    assert found(Snapshot(torch=Torch(installed=False)), "torch>=2.4") == "PyTorch is not installed"
    assert found(Snapshot(cupy=Cupy(distributions=())), "cupy") == "CuPy is not installed"


def test_a_library_whose_import_fails_is_not_there() -> None:
    torch = Torch(installed=True, version=PackageVersion("2.13.0"))
    broken = TorchRuntime(import_error="OSError: libcudart.so.12")
    assert found(Snapshot(torch=torch, torch_runtime=broken), "torch") == (
        "importing PyTorch fails: OSError: libcudart.so.12"
    )
    crashed = ProbeReport(section="cupy_runtime", state="failed", detail="killed by SIGSEGV")
    cupy = Cupy(version=PackageVersion("13.6.0"), distributions=())
    assert "killed by SIGSEGV" in found(Snapshot(cupy=cupy, reports=(crashed,)), "cupy")
    assert met(Snapshot(cupy=cupy, cupy_runtime=CupyRuntime(import_error="")), "cupy") == [True]


# torch.cuda: PyTorch really computes.


def torch_runtime(**fields: object) -> Snapshot:
    torch = Torch(installed=True, version=PackageVersion("2.13.0+cu130"), build="cuda")
    return Snapshot(torch=torch, torch_runtime=TorchRuntime(import_error="", **fields))  # type: ignore[arg-type]


def product(device: str, error: float | None) -> tuple[PrecisionResult, ...]:
    failed = "" if error is not None else "RuntimeError: no kernel image is available"
    return (PrecisionResult(device=device, precision="fp32", relative_error=error, error=failed),)


def test_torch_that_computes_on_a_gpu() -> None:
    assert met(torch_runtime(available=True, precision_results=product("cuda:0", 1e-7)), "torch.cuda") == [True]


@pytest.mark.parametrize(
    ("snapshot", "why"),
    [
        (torch_runtime(available=False), "PyTorch can use no GPU: torch.cuda.is_available() is False"),
        (
            torch_runtime(available=True, precision_results=product("cuda:0", None)),
            "PyTorch computed no correct float32 product",
        ),
        (
            torch_runtime(available=True, precision_results=product("cuda:0", 0.5)),
            "PyTorch computed no correct float32 product",
        ),
        (
            torch_runtime(available=True, precision_results=product("cpu", 1e-7)),
            "PyTorch computed no correct float32 product",
        ),
        (torch_runtime(available=True), "whether PyTorch computes on the GPU is not known"),
        (Snapshot(torch=Torch(installed=False)), "PyTorch is not installed"),
    ],
)
def test_torch_that_does_not(snapshot: Snapshot, why: str) -> None:
    assert found(snapshot, "torch.cuda").startswith(why)


def test_without_an_import_nothing_is_known_of_torch_cuda() -> None:
    not_run = ProbeReport(section="torch_runtime", probe="torch-runtime", state="not-run", detail="not asked: --fast")
    snapshot = Snapshot(torch=Torch(installed=True, build="cuda"), reports=(not_run,))
    assert found(snapshot, "torch.cuda") == (
        "whether PyTorch can use a GPU is not known: PyTorch was not imported (--fast)"
    )


def test_a_report_says_whether_torch_finds_a_gpu() -> None:
    said = TorchRuntime(available=True)
    assert met(Snapshot(torch_runtime=said, contradictions=()), "torch.cuda") == [True]


# The rest.


def test_shared_memory_is_compared_exactly() -> None:
    docker = Snapshot(system=System(shm_total_bytes=64 * MIB))
    assert met(docker, "shm>=64MiB", "shm>=65MiB", "shm>=1GiB") == [True, False, False]
    assert found(docker, "shm>=1GiB") == "the shared memory has 64 MiB"


PROFILE = FoundProfile(fingerprint="device:NVIDIA_L4,driver:550.54.15")


def test_a_profile_that_fits() -> None:
    here = machine("NVIDIA L4")
    assert met(Snapshot(profile=PROFILE, driver=here.driver, devices=here.devices), "profile") == [True]


def test_a_profile_that_does_not() -> None:
    other = machine("Tesla T4")
    assert found(Snapshot(profile=PROFILE, driver=other.driver, devices=other.devices), "profile") == (
        "gpudoctor.env was tuned on device NVIDIA_L4 (now Tesla_T4)"
    )
    assert met(Snapshot(profile=PROFILE, driver=other.driver), "profile") == [None]
    assert met(Snapshot(profile=FoundProfile(problem="it is empty")), "profile") == [False]
    absent = ProbeReport(section="profile", state="absent")
    assert found(Snapshot(reports=(absent,)), "profile") == "there is no profile"


@pytest.mark.parametrize("text", [name if entry.bare else f"{name}>=0MiB" for name, entry in NAMES.items()])
def test_what_could_not_be_read_meets_no_requirement(text: str) -> None:
    text = text.replace("0MiB", "0") if NAMES[text.partition(">")[0]].value in ("count", "version") else text
    for snapshot in (Snapshot(), Snapshot(contradictions=())):
        (judgement,) = judged(snapshot, text)
        assert judgement.met is None
        assert "not known" in judgement.found


@pytest.mark.parametrize("name", NAMES)
def test_the_table_names_facts_that_exist(name: str) -> None:
    assert NAMES[name].facts
    assert NAMES[name].sections <= set(SECTIONS)


def test_the_sections_to_ask_for_are_those_of_all() -> None:
    requirements = [parse_requirement("python>=3.10"), parse_requirement("shm>=1GiB")]
    assert sections_of(requirements) == {"python", "system"}


def test_the_faults_that_explain_a_requirement_are_checks() -> None:
    ids = {check.id for check in own_checks()}
    lists = [value for name, value in vars(judgements).items() if name.isupper() and isinstance(value, tuple)]
    named = {fault for faults in lists for fault in faults}
    assert len(lists) == 9
    assert named <= ids


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("1KiB", 1024), ("2MiB", 2_097_152), ("24GiB", 25_769_803_776), ("1TiB", 1_099_511_627_776)),
        *(("1KB", 1000), ("2MB", 2_000_000), ("24GB", 24_000_000_000), ("1TB", 1_000_000_000_000)),
        ("1.5gib", 1_610_612_736),
    ],
)
def test_units_of_sizes(text: str, size: int) -> None:
    assert parse_requirement(f"vram>={text}").value == size
