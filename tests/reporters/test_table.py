import subprocess
import sys
from dataclasses import replace

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
from gpudoctor.reporters.machine import machine_parts
from gpudoctor.reporters.table import render
from gpudoctor.reporters.terminal import Screen
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
    assert render(report(CPU_BUILD, PERSISTENCE, AMP, others=OTHERS), screen=Screen(width=80)) == (
        """\
1 error: torch-cpu-build

error  torch-cpu-build  torch 2.13.0+cpu
  PyTorch 2.13.0+cpu was built without CUDA, and this machine has an NVIDIA
  GeForce RTX 4090
    PyTorch build: cpu (torch/version.py)
    GPU 0: NVIDIA GeForce RTX 4090 (NVML)
  fix: install the CUDA 12.6 build of PyTorch, which fits driver 550.54.14
    (needs a restart of the program)
    /home/ann/.venv/bin/python -m pip install --force-reinstall torch==2.13.0+cu126 \
--index-url https://download.pytorch.org/whl/cu126
    /home/ann/.venv/bin/python -c 'import torch; print(torch.cuda.is_available())'
  see https://pytorch.org/get-started/locally/

advice: persistence-mode-off, amp-unused (-v shows details)

5 passed, 5 skipped (-v lists them)
Ubuntu 24.04.1 LTS · Python 3.12.3 (venv, pip) · driver 550.54.14 ·
  torch 2.13.0+cpu · CuPy none · NVIDIA GeForce RTX 4090 (24.0 GiB)
"""
    )


def test_a_mismatch_and_what_follows_from_it() -> None:
    mismatch = report(MISMATCH, *CONSEQUENCES, SHM, snapshot=Snapshot(driver=DRIVER_550))
    assert render(mismatch, screen=Screen(width=60)) == (
        """\
1 error, 1 warning; fix driver-library-mismatch first

error  driver-library-mismatch  driver 550.54.14
  the kernel module is 550.54.14 and the libraries are
  550.90.07
    driver library version: 550.90.07 (name of
      libcuda.so.VERSION)
  fix: reboot (needs root and a reboot)
    sudo reboot
    nvidia-smi
  or: load the new module (needs root)
    sudo modprobe nvidia
  also caused by this: torch-cuda-unavailable: PyTorch
    2.13.0+cu126 finds no CUDA device: Unexpected error
  also caused by this: cupy-device-unavailable: CuPy finds
    no device: cudaErrorInsufficientDriver
  also caused by this: nvml-unavailable: NVML cannot be
    initialised: Driver/library version mismatch

warning  shm-too-small  /dev/shm
  /dev/shm has 64.0 MiB
    size of /dev/shm: 64.0 MiB (statvfs /dev/shm)
  fix: start the container with more

system unknown · Python unknown · driver 550.54.14 ·
  torch unknown · CuPy unknown

1 error, 1 warning; fix driver-library-mismatch first
"""
    )


def test_a_healthy_machine() -> None:
    snapshot = Snapshot(system=UBUNTU, driver=DRIVER_550, devices=(RTX_4090, H200), python=PYTHON)
    proof = ("PyTorch computed correctly on 2 GPUs (NVIDIA GeForce RTX 4090, NVIDIA H200; fp32)",)
    assert render(report(snapshot=snapshot, others=OTHERS[:3], proof=proof), screen=Screen(width=80)) == (
        """\
healthy: PyTorch computed correctly on 2 GPUs (NVIDIA GeForce RTX 4090, NVIDIA
  H200; fp32)

3 passed (-v lists them)
Ubuntu 24.04.1 LTS · Python 3.12.3 (venv, pip) · driver 550.54.14 ·
  torch unknown · CuPy unknown · NVIDIA GeForce RTX 4090 (24.0 GiB) ·
  NVIDIA H200 (141.0 GiB)
"""
    )


def test_the_devices_are_listed_when_asked_for() -> None:
    snapshot = Snapshot(devices=(RTX_4090, H200))
    text = render(report(snapshot=snapshot, proof=WORKS), screen=Screen(width=80, verbosity=1))
    assert (
        """
GPU    name                     compute       memory           busy
                                capability
0      NVIDIA GeForce RTX 4090  8.9           1.5 of 24.0 GiB  3 %     41 °C
1      NVIDIA H200              unknown       141.0 GiB
"""
        in text
    )


def test_equal_gpus_are_counted() -> None:
    snapshot = Snapshot(devices=(H200, replace(H200, nvml_index=1), RTX_4090))
    last = render(report(snapshot=snapshot, proof=WORKS), screen=Screen(width=100)).splitlines()[-1]
    assert last.endswith("2 x NVIDIA H200 (141.0 GiB) · NVIDIA GeForce RTX 4090 (24.0 GiB)")


def test_quiet_is_the_verdict_only() -> None:
    text = render(report(CPU_BUILD, PERSISTENCE, others=OTHERS), screen=Screen(verbosity=-1))
    assert text == "1 error: torch-cpu-build\n"


@pytest.mark.parametrize(("height", "times"), [(1, 2), (17, 2), (18, 1), (50, 1)])
def test_the_verdict_comes_again_if_the_first_line_has_left_the_screen(height: int, times: int) -> None:
    text = render(report(CPU_BUILD, PERSISTENCE, AMP, others=OTHERS), screen=Screen(height=height))
    assert text.count("1 error: torch-cpu-build\n") == times
    assert text.endswith("1 error: torch-cpu-build\n") is (times == 2)


def test_a_healthy_machine_with_much_advice_is_twelve_lines() -> None:
    advice = tuple(replace(AMP, check_id=f"advice-{number}") for number in range(9))
    proof = ("PyTorch computed correctly on 2 GPUs (NVIDIA GeForce RTX 4090, NVIDIA H200; fp32, bf16)",)
    lines = render(report(*advice, others=OTHERS, proof=proof), screen=Screen(width=80)).splitlines()
    assert len(lines) <= 12
    assert lines[3] == "advice  advice-0: bf16 runs on the tensor cores of NVIDIA GeForce RTX 4090"
    assert "and 5 more (-v shows details)" in lines


def test_verbose_shows_paths_of_facts_and_how_to_follow_advice() -> None:
    text = render(report(CPU_BUILD, PERSISTENCE, others=OTHERS), screen=Screen(verbosity=1))
    assert "    PyTorch build [torch.build]: cpu (torch/version.py)\n" in text
    assert "    sudo nvidia-smi -pm 1\n" in text
    assert "(-v" not in text


def test_without_verbose_no_path_of_a_fact_is_shown() -> None:
    whole = report(CPU_BUILD, MISMATCH, *CONSEQUENCES, SHM, PERSISTENCE, AMP, others=OTHERS)
    facts = {evidence.fact for finding in whole.findings for evidence in finding.evidence}
    assert facts
    assert [fact for fact in facts if fact in render(whole, screen=Screen())] == []


def test_nothing_checked() -> None:
    crash = CheckResult(
        check_id="b", outcome=Outcome.CRASHED, reason="crashed, which is a bug in gpudoctor: KeyError: 3"
    )
    nothing = report(snapshot=Snapshot(), others=(*skipped("driver: not known", "a"), crash))
    assert render(nothing, screen=Screen(width=80)) == (
        """\
unknown: 1 check crashed

b crashed, which is a bug in gpudoctor: KeyError: 3

1 skipped (-v lists them)
system unknown · Python unknown · driver unknown · torch unknown · CuPy unknown
"""
    )
    assert render(report(snapshot=Snapshot()), screen=Screen(width=80)).startswith("unknown: no check ran\n")


def test_an_unknown_verdict_says_what_to_do_next() -> None:
    assert render(UNKNOWN, screen=Screen(width=60)) == (
        """\
unknown: too little is known for a verdict

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

2 skipped (-v lists them)
system unknown · Python unknown · driver unknown ·
  torch unknown · CuPy unknown
"""
    )


def test_no_driver_and_no_torch_are_known_absences() -> None:
    snapshot = Snapshot(driver=Driver(installed=False), torch=Torch(installed=False), cupy=NO_CUPY)
    last = render(report(snapshot=snapshot), screen=Screen(width=80)).splitlines()[-1]
    assert last == "system unknown · Python unknown · driver none · torch none · CuPy none"


def test_a_lost_device_says_so() -> None:
    lost = Device(nvml_index=1, name="NVIDIA H200", error="GPU is lost")
    text = render(report(snapshot=Snapshot(devices=(RTX_4090, lost))), screen=Screen(width=80, verbosity=1))
    assert "GPU 1: NVIDIA H200: GPU is lost\n" in text


def test_colour_makes_the_severity_and_commands_stand_out() -> None:
    lines = render(report(CPU_BUILD, AMP, others=OTHERS), screen=Screen(color=True, width=80)).splitlines()
    assert lines[0] == "\x1b[31m1 error\x1b[0m: torch-cpu-build"
    assert lines[2] == "\x1b[31merror\x1b[0m  torch-cpu-build  torch 2.13.0+cpu"
    commands = [f"    \x1b[1m{command}\x1b[0m" for command in CPU_BUILD.remedies[0].commands]
    assert [line for line in lines if "\x1b" in line] == [lines[0], lines[2], *commands]


@pytest.mark.parametrize("width", [1, 20, 40, 60, 80, 100])
def test_every_width_holds_each_command_whole(width: int) -> None:
    whole = report(CPU_BUILD, MISMATCH, *CONSEQUENCES, SHM, PERSISTENCE, AMP, others=OTHERS)
    lines = render(whole, screen=Screen(width=width)).splitlines()
    commands = [f"    {c}" for finding in whole.findings for remedy in finding.remedies for c in remedy.commands]
    assert f"    {INSTALL}" in lines
    if width >= 40:
        wide = [line for line in lines if len(line) > width and not line.startswith("  see ") and line not in commands]
        assert wide == []


def test_the_commands_of_a_fix_are_one_block_to_copy() -> None:
    lines = render(report(MISMATCH), screen=Screen()).splitlines()
    first = lines.index("    sudo reboot")
    assert lines[first : first + 2] == ["    sudo reboot", "    nvidia-smi"]


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
    text = render(report(finding, snapshot=snapshot, others=skipped(evil, "a")), screen=Screen(width=80, verbosity=1))
    assert set(text) - {"\n"} == {character for character in text if character.isprintable()}
    assert text.count("\\x1b[2J\\r\\nhealthy\\u202e") >= 12


def test_forty_skipped_checks_are_a_few_lines() -> None:
    many = skipped("PyTorch is not installed", *(f"check-{n}" for n in range(40)))
    lines = render(report(snapshot=Snapshot(), others=many, proof=WORKS), screen=Screen(width=80)).splitlines()
    assert lines[2] == "40 skipped (-v lists them)"
    assert len(lines) == 4
    all_lines = render(report(snapshot=Snapshot(), others=many, proof=WORKS), screen=Screen(verbosity=1)).splitlines()
    assert all_lines[2:4] == [
        "skipped 40:",
        "  PyTorch is not installed: check-0, check-1, check-2, check-3, check-4,",
    ]


def test_checks_without_the_same_fact_are_one_entry_with_its_label() -> None:
    results = (
        *skipped("torch.version is unknown", "a", "b"),
        *skipped("not WSL", "c"),
        *skipped("driver.version is unknown", "d"),
        *skipped("whether any of them has one is unknown", "e"),
    )
    lines = render(report(snapshot=Snapshot(), others=results, proof=WORKS), screen=Screen(verbosity=1)).splitlines()
    assert lines[2:7] == [
        "skipped 5:",
        "  not known (PyTorch version): a, b",
        "  not WSL: c",
        "  not known (driver version): d",
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
    lines = render(report(finding, snapshot=Snapshot()), screen=Screen(verbosity=1)).splitlines()
    assert lines[4:9] == [
        "    probe output [reports[0].detail]: killed by SIGSEGV",
        r"        frame\x1b 0",
        r"        frame\x1b 1",
        r"        frame\x1b 2",
        "      and 3 more lines",
    ]
    short = render(report(finding, snapshot=Snapshot()), screen=Screen()).splitlines()
    assert short[4:9] == ["    probe output: killed by SIGSEGV", *lines[5:8], "      ..."]


def test_a_source_that_only_repeats_the_section_is_left_out() -> None:
    evidence = Evidence(fact="environment.CUDA_HOME", value="/usr", source="environment")
    finding = Finding(check_id="x", severity=Severity.ERROR, summary="s", evidence=(evidence,))
    assert "    CUDA_HOME: /usr\n" in render(report(finding), screen=Screen(width=80))


def test_long_lists_are_cut_and_say_so() -> None:
    evidence = tuple(Evidence(fact=f"environment.V{n}", value=n, source="") for n in range(20))
    finding = Finding(check_id="x", severity=Severity.ERROR, summary="s", evidence=evidence)
    devices = tuple(Device(nvml_index=n) for n in range(40))
    text = render(report(finding, snapshot=Snapshot(devices=devices)), screen=Screen(width=80))
    assert "    and 12 more facts (-v shows them)\n" in text
    assert "40 x unknown GPU" in text
    everything = render(report(finding, snapshot=Snapshot(devices=devices)), screen=Screen(verbosity=1))
    assert "    V19 [environment.V19]: 19\n" in everything
    assert "and 24 more devices\n" in everything


@pytest.mark.parametrize(
    ("fact", "value", "shown"),
    [
        ("torch.version", None, "PyTorch version: unknown"),
        ("torch.installed", False, "PyTorch installed: no"),
        ("torch.conda_cpuonly", True, "conda CPU-only package: yes"),
        ("toolkit.nvcc_path", "", 'nvcc: ""'),
        ("torch.architectures", [], "GPU architectures in PyTorch: none"),
        ("torch.architectures", ["sm_80", "sm_90"], "GPU architectures in PyTorch: sm_80, sm_90"),
        ("devices[0].memory_used_bytes", 512, "GPU 0 memory in use: 512 B"),
        ("devices[1].memory_used_bytes", 2**50, "GPU 1 memory in use: 1024.0 TiB"),
        ("devices[0].power_draw_watts", 449.5, "GPU 0 power draw: 449.5 W"),
        ("devices[0].temperature_celsius", 88, "GPU 0 temperature: 88 °C"),
        ("devices[0].processes", [{"pid": 7, "used_bytes": 2**30}], "GPU 0 processes: pid 7, used 1.0 GiB"),
        (
            "system.pci_gpus",
            [{"name": "A", "vendor": "amd", "device_id": "", "bound_driver": None}, {"name": "B"}, {"name": ""}],
            "GPUs on the PCI bus: A (vendor amd), B, unknown",
        ),
        ("torch_runtime.precision_results[0].relative_error", 0.00421, "error of the test calculation: 0.42 %"),
        ("torch_runtime.precision_results[0].relative_error", 1e-4, "error of the test calculation: 0.01 %"),
        ("torch_runtime.precision_results[0].relative_error", 3e-7, "error of the test calculation: less than 0.01 %"),
        ("torch_runtime.cudnn_version", 8902, "cuDNN version: 8.9.2"),
        ("torch_runtime.cudnn_version", 91002, "cuDNN version: 9.10.2"),
        ("torch_runtime.cudnn_version", 0, "cuDNN version: 0"),
        ("contradictions[0].fact", "torch.version", "contradictory values: PyTorch version"),
    ],
)
def test_evidence_has_a_label_and_a_readable_value(fact: str, value: object, shown: str) -> None:
    finding = Finding(
        check_id="x", severity=Severity.ERROR, summary="s", evidence=(Evidence(fact=fact, value=value, source=""),)
    )
    assert f"    {shown}\n" in render(report(finding), screen=Screen(width=100))


def test_tabulate_is_imported_only_for_a_table_of_devices() -> None:
    code = "import sys, gpudoctor.reporters.table; print('tabulate' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"


def test_checks_that_do_not_apply_differ_from_those_without_an_answer() -> None:
    results = (
        *passed("a"),
        *skipped("devices: failed", "b"),
        *not_applicable("this is not a container", "c", "d"),
        *not_applicable("this is not WSL", "e"),
        *not_applicable("this is not a Mac", "f"),
    )
    text = render(report(snapshot=Snapshot(), others=results, proof=WORKS), screen=Screen(verbosity=1))
    assert text.startswith("healthy: it works\n")
    counted = render(report(snapshot=Snapshot(), others=results, proof=WORKS), screen=Screen())
    assert "\n1 passed, 1 skipped, 4 not applicable (-v lists them)\n" in counted
    assert (
        """
skipped 1:
  devices: failed: b

not applicable 4:
  this is not a container: c, d
  this is not WSL: e
  this is not a Mac: f
"""
        in text
    )


def test_a_driver_that_is_not_loaded_and_a_system_without_a_distribution() -> None:
    driver = Driver(library_version=DriverVersion.parse("550.144.03"), module_loaded=False)
    python = Python(version=PackageVersion("3.12.3"), environment="conda", installer="conda")
    snapshot = Snapshot(system=System(os="windows"), driver=driver, python=python)
    last = render(report(snapshot=snapshot), screen=Screen(width=120)).splitlines()[-1]
    assert last.startswith("Windows · Python 3.12.3 (conda) · driver 550.144.03, not loaded · ")


def test_the_activated_environment_is_named_if_it_is_diagnosed() -> None:
    python = Python(
        version=PackageVersion("3.12.3"), environment="venv", prefix="~/train", active_environment="~/train"
    )
    assert machine_parts(Snapshot(python=python))[1] == "Python 3.12.3 (venv, activated: ~/train)"
    other = replace(python, prefix="~/tools")
    assert machine_parts(Snapshot(python=other))[1] == "Python 3.12.3 (venv)"
