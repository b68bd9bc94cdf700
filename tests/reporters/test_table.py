import subprocess
import sys

import pytest

from gpudoctor.model import (
    CheckResult,
    Cupy,
    Device,
    Driver,
    DriverVersion,
    Evidence,
    Finding,
    Outcome,
    PackageVersion,
    Python,
    Remedy,
    Severity,
    Snapshot,
    System,
    Torch,
)
from gpudoctor.reporters.table import render
from tests.reporters.reports import (
    AMP,
    CONSEQUENCES,
    CPU_BUILD,
    DRIVER_550,
    H200,
    INSTALL,
    MISMATCH,
    NO_CUPY,
    OTHERS,
    PERSISTENCE,
    PYTHON,
    RTX_4090,
    SHM,
    UBUNTU,
    UNKNOWN,
    not_applicable,
    passed,
    report,
    skipped,
)

WORKS = ("it works",)


def test_cpu_build_on_a_desktop() -> None:
    assert render(report(CPU_BUILD, PERSISTENCE, AMP, others=OTHERS), color=False, width=80) == (
        """\
1 error: torch-cpu-build

error  torch-cpu-build  torch 2.13.0+cpu
  PyTorch 2.13.0+cpu was built without CUDA, and this machine has an NVIDIA
  GeForce RTX 4090
    torch.build = cpu (torch/version.py)
    devices[0].name = NVIDIA GeForce RTX 4090 (NVML)
  fix: install the CUDA 12.6 build of PyTorch, which driver 550.54.14 can run
    1. /home/ann/.venv/bin/python -m pip install --force-reinstall torch==2.13.0+cu126 \
--index-url https://download.pytorch.org/whl/cu126
    2. /home/ann/.venv/bin/python -c 'import torch; print(torch.cuda.is_available())'
    needs a restart of the program
    see https://pytorch.org/get-started/locally/

info  persistence-mode-off: persistence mode is off on 1 of 1 devices
    1. sudo nvidia-smi -pm 1
info  amp-unused: bf16 runs on the tensor cores of NVIDIA GeForce RTX 4090
  wrap the forward pass in torch.autocast("cuda", dtype=torch.bfloat16)

passed 5: driver-missing, driver-too-old, no-nvidia-gpu,
  cuda-visible-devices-hides-gpu, torch-not-installed

skipped 5:
  CuPy is not installed: cupy-multiple-packages, cupy-nvrtc-missing, 2 more
  not WSL: wsl-driver-problem

GPU 0: NVIDIA GeForce RTX 4090, compute capability 8.9, memory 1.5 of 24.0 GiB,
  3 % busy, 41 °C

Ubuntu 24.04.1 LTS · Python 3.12.3 (venv, pip) · driver 550.54.14 ·
  torch 2.13.0+cpu · CuPy none
"""
    )


def test_a_mismatch_and_what_follows_from_it() -> None:
    mismatch = report(MISMATCH, *CONSEQUENCES, SHM, snapshot=Snapshot(driver=DRIVER_550))
    assert render(mismatch, color=False, width=60) == (
        """\
1 error, 1 warning; fix driver-library-mismatch first

error  driver-library-mismatch  driver 550.54.14
  the kernel module is 550.54.14 and the libraries are
  550.90.07
    driver.library_version = 550.90.07 (name of
      libcuda.so.VERSION)
  fix: reboot
    1. sudo reboot
    2. nvidia-smi
    needs root and a reboot
  or: load the new module
    1. sudo modprobe nvidia
    needs root
  follows from it: torch-cuda-unavailable: PyTorch
    2.13.0+cu126 finds no CUDA device: Unexpected error
  follows from it: cupy-device-unavailable: CuPy finds no
    device: cudaErrorInsufficientDriver
  follows from it: nvml-unavailable: NVML cannot be
    initialised: Driver/library version mismatch

warning  shm-too-small  /dev/shm
  /dev/shm has 64.0 MiB
    system.shm_total_bytes = 64.0 MiB (statvfs /dev/shm)
  fix: start the container with more

system unknown · Python unknown · driver 550.54.14 ·
  torch unknown · CuPy unknown
"""
    )


def test_a_healthy_machine() -> None:
    snapshot = Snapshot(system=UBUNTU, driver=DRIVER_550, devices=(RTX_4090, H200), python=PYTHON)
    proof = ("PyTorch computed correctly on 2 GPUs (NVIDIA GeForce RTX 4090, NVIDIA H200; fp32)",)
    assert render(report(snapshot=snapshot, others=OTHERS[:3], proof=proof), color=False, width=80) == (
        """\
healthy: PyTorch computed correctly on 2 GPUs (NVIDIA GeForce RTX 4090, NVIDIA
  H200; fp32)

passed 3: driver-missing, driver-too-old, no-nvidia-gpu

GPU    name                     compute       memory           busy
                                capability
0      NVIDIA GeForce RTX 4090  8.9           1.5 of 24.0 GiB  3 %     41 °C
1      NVIDIA H200              unknown       141.0 GiB

Ubuntu 24.04.1 LTS · Python 3.12.3 (venv, pip) · driver 550.54.14 ·
  torch unknown · CuPy unknown
"""
    )


def test_nothing_checked() -> None:
    crash = CheckResult(
        check_id="b", outcome=Outcome.CRASHED, reason="crashed, which is a fault of gpudoctor: KeyError: 3"
    )
    nothing = report(snapshot=Snapshot(), others=(*skipped("driver: not known", "a"), crash))
    assert render(nothing, color=False, width=80) == (
        """\
unknown: 1 check crashed

b crashed, which is a fault of gpudoctor: KeyError: 3

0 passed, 1 skipped, 0 not applicable

system unknown · Python unknown · driver unknown · torch unknown · CuPy unknown
"""
    )
    assert render(report(snapshot=Snapshot()), color=False, width=80).startswith("unknown: no check ran\n")


def test_an_unknown_verdict_says_what_to_do_next() -> None:
    assert render(UNKNOWN, color=False, width=60) == (
        """\
unknown: none of 2 checks could answer

Understood:
  Ubuntu 24.04.1 LTS
  PyTorch finds no GPU: "no CUDA-capable device is detected"

Missing for a verdict:
  the driver version

Possible causes, most frequent first:
  driver-missing: Without a driver no program sees it.
    Check: nvidia-smi fails.

Next: run this, then paste the output into gpudoctor check --from -:
    nvidia-smi
  Shows whether the driver answers. Run it on the host.
    lspci -nnk -d 10de:
  Shows whether the GPU is on the PCI bus.

0 passed, 2 skipped, 0 not applicable

system unknown · Python unknown · driver unknown ·
  torch unknown · CuPy unknown
"""
    )


def test_no_driver_and_no_torch_are_known_absences() -> None:
    snapshot = Snapshot(driver=Driver(installed=False), torch=Torch(installed=False), cupy=NO_CUPY)
    last = render(report(snapshot=snapshot), color=False, width=80).splitlines()[-1]
    assert last == "system unknown · Python unknown · driver none · torch none · CuPy none"


def test_a_lost_device_says_so() -> None:
    lost = Device(nvml_index=1, name="NVIDIA H200", error="GPU is lost")
    text = render(report(snapshot=Snapshot(devices=(RTX_4090, lost))), color=False, width=80)
    assert "GPU 1: NVIDIA H200: GPU is lost\n" in text


def test_colour_paints_the_severity_and_never_a_command() -> None:
    lines = render(report(CPU_BUILD, AMP, others=OTHERS), color=True, width=80).splitlines()
    assert lines[0] == "\x1b[31m1 error\x1b[0m: torch-cpu-build"
    assert lines[2] == "\x1b[31merror\x1b[0m  torch-cpu-build  torch 2.13.0+cpu"
    assert f"    1. {INSTALL}" in lines
    assert [line for line in lines if "\x1b" in line] == [
        lines[0],
        lines[2],
        "\x1b[34minfo\x1b[0m  amp-unused: bf16 runs on the tensor cores of NVIDIA GeForce RTX 4090",
    ]


@pytest.mark.parametrize("width", [1, 20, 40, 60, 80, 100])
def test_every_width_holds_each_command_whole(width: int) -> None:
    whole = report(CPU_BUILD, MISMATCH, *CONSEQUENCES, SHM, PERSISTENCE, AMP, others=OTHERS)
    lines = render(whole, color=False, width=width).splitlines()
    assert f"    1. {INSTALL}" in lines
    if width >= 40:
        wide = [line for line in lines if len(line) > width and not line.startswith(("    1. ", "    2. ", "    see "))]
        assert wide == []


def test_text_from_the_machine_cannot_act_on_the_terminal() -> None:
    evil = "\x1b[2J\r\nhealthy\u202e"
    finding = Finding(
        check_id="probe-failed",
        severity=Severity.WARNING,
        subject=evil,
        summary=evil,
        evidence=(Evidence(fact=f"environment.{evil}", value=[evil, {evil: evil}], source=evil),),
        remedies=(Remedy(summary=evil, commands=(evil,), needs=(evil,), reference=evil),),
    )
    snapshot = Snapshot(
        system=System(distribution_name=evil, container=evil),
        devices=(Device(nvml_index=0, name=evil), Device(nvml_index=1, error=evil)),
        python=Python(version=PackageVersion(evil), environment=evil),
        torch=Torch(version=PackageVersion(evil)),
        cupy=Cupy(version=PackageVersion(evil)),
    )
    text = render(report(finding, snapshot=snapshot, others=skipped(evil, "a")), color=False, width=80)
    assert set(text) - {"\n"} == {character for character in text if character.isprintable()}
    assert text.count("\\x1b[2J\\r\\nhealthy\\u202e") >= 12


def test_forty_skipped_checks_are_a_few_lines() -> None:
    many = skipped("PyTorch is not installed", *(f"check-{n}" for n in range(40)))
    lines = render(report(snapshot=Snapshot(), others=many, proof=WORKS), color=False, width=80).splitlines()
    assert lines[2:4] == ["skipped 40:", "  PyTorch is not installed: check-0, check-1, 38 more"]
    assert len(lines) == 6


def test_checks_without_a_fact_are_one_entry_that_names_the_facts() -> None:
    results = (
        *skipped("torch.version is unknown", "a", "b"),
        *skipped("not WSL", "c"),
        *skipped("driver.version is unknown", "d"),
        *skipped("whether any of them has one is unknown", "e"),
    )
    lines = render(report(snapshot=Snapshot(), others=results, proof=WORKS), color=False, width=80).splitlines()
    assert lines[2:6] == [
        "skipped 5:",
        "  unknown torch.version, driver.version: a, b, d",
        "  not WSL: c",
        "  whether any of them has one is unknown: e",
    ]


def test_a_text_of_many_lines_keeps_its_first_lines() -> None:
    detail = "killed by SIGSEGV\n\n" + "\n".join(f"  frame\x1b {n}" for n in range(6))
    finding = Finding(
        check_id="probe-failed",
        severity=Severity.ERROR,
        summary="s",
        evidence=(Evidence(fact="reports[0].detail", value=detail, source="reports"),),
    )
    lines = render(report(finding, snapshot=Snapshot()), color=False, width=80).splitlines()
    assert lines[4:9] == [
        "    reports[0].detail = killed by SIGSEGV",
        r"        frame\x1b 0",
        r"        frame\x1b 1",
        r"        frame\x1b 2",
        "      and 3 more lines",
    ]


def test_a_source_that_only_repeats_the_section_is_left_out() -> None:
    evidence = Evidence(fact="environment.CUDA_HOME", value="/usr", source="environment")
    finding = Finding(check_id="x", severity=Severity.ERROR, summary="s", evidence=(evidence,))
    assert "    environment.CUDA_HOME = /usr\n" in render(report(finding), color=False, width=80)


def test_long_lists_are_cut_and_say_so() -> None:
    evidence = tuple(Evidence(fact=f"torch.fact_{n}", value=n, source="") for n in range(20))
    finding = Finding(check_id="x", severity=Severity.ERROR, summary="s", evidence=evidence)
    devices = tuple(Device(nvml_index=n) for n in range(40))
    text = render(report(finding, snapshot=Snapshot(devices=devices)), color=False, width=80)
    assert "    and 12 more facts\n" in text
    assert "and 24 more devices\n" in text


@pytest.mark.parametrize(
    ("fact", "value", "shown"),
    [
        ("torch.version", None, "unknown"),
        ("torch.debug", False, "false"),
        ("toolkit.nvcc_path", "", '""'),
        ("torch.architectures", [], "none"),
        ("torch.architectures", ["sm_80", "sm_90"], "sm_80, sm_90"),
        ("devices[0].memory_used_bytes", 512, "512 B"),
        ("devices[0].memory_used_bytes", 2**50, "1024.0 TiB"),
        ("devices[0].power_draw_watts", 449.5, "449.5 W"),
        ("devices[0].temperature_celsius", 88, "88 °C"),
        ("devices[0].processes", [{"pid": 7, "used_bytes": 2**30}], "pid=7 used_bytes=1.0 GiB"),
    ],
)
def test_values_are_readable(fact: str, value: object, shown: str) -> None:
    finding = Finding(
        check_id="x", severity=Severity.ERROR, summary="s", evidence=(Evidence(fact=fact, value=value, source=""),)
    )
    assert f"    {fact} = {shown}\n" in render(report(finding), color=False, width=100)


def test_tabulate_is_imported_only_for_a_table_of_devices() -> None:
    code = "import sys, gpudoctor.reporters.table; print('tabulate' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"


def test_checks_that_do_not_apply_are_told_from_those_without_an_answer() -> None:
    results = (
        *passed("a"),
        *skipped("devices: failed", "b"),
        *not_applicable("this is not a container", "c", "d"),
        *not_applicable("this is not WSL", "e"),
        *not_applicable("this is not a Mac", "f"),
    )
    text = render(report(snapshot=Snapshot(), others=results, proof=WORKS), color=False, width=80)
    assert text.startswith("healthy: it works\n")
    assert (
        """
skipped 1:
  devices: failed: b

not applicable 4:
  this is not a container: c, d
  for one reason each (see --format json): e, f
"""
        in text
    )


def test_a_driver_that_is_not_loaded_and_a_system_without_a_distribution() -> None:
    driver = Driver(library_version=DriverVersion.parse("550.144.03"), module_loaded=False)
    python = Python(version=PackageVersion("3.12.3"), environment="conda", installer="conda")
    snapshot = Snapshot(system=System(os="windows"), driver=driver, python=python)
    last = render(report(snapshot=snapshot), color=False, width=120).splitlines()[-1]
    assert last.startswith("Windows · Python 3.12.3 (conda) · driver 550.144.03, not loaded · ")
