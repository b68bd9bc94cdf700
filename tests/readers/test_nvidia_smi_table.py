"""The table of nvidia-smi, of every age and however a paste has broken it."""

import time

import pytest

from gpudoctor.model import CudaVersion, Device, DeviceProcess, DriverVersion, System
from gpudoctor.parsers.nvidia_smi_xml import MIB
from gpudoctor.readers import nvidia_smi_table
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text
from tests.readers import pasted

R352 = """Tue May 17 09:10:11 2016
+------------------------------------------------------+
| NVIDIA-SMI 352.79     Driver Version: 352.79         |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla K80           On   | 0000:05:00.0     Off |                    0 |
| N/A   51C    P0    61W / 149W |     55MiB / 11519MiB |      7%   E. Process |
+-------------------------------+----------------------+----------------------+
"""
R550 = """Thu Jan 25 15:18:40 2024
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:2D:00.0 Off |                   On |
| N/A   36C    P0             61W /  400W |     430MiB /  81920MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:2E:00.0 Off |                    4 |
| N/A   38C    P0             60W /  400W |       7MiB /  81920MiB |      3%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|==================+==================================+===========+=======================|
|  No MIG devices found                                                                   |
+-----------------------------------------------------------------------------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    1   N/A  N/A      2331      G   /usr/lib/xorg/Xorg                              4MiB |
|    1   N/A  N/A      2400    C+G   ...with spaces --type=gpu-process                N/A |
+-----------------------------------------------------------------------------------------+
"""
WINDOWS = """C:\\work>nvidia-smi
| NVIDIA-SMI 546.33                 Driver Version: 546.33       CUDA Version: 12.3     |
| GPU  Name                     TCC/WDDM  | Bus-Id        Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA GeForce RTX 4060 ...  WDDM  | 00000000:01:00.0  On |                  N/A |
| N/A   45C    P8               2W /  80W |    722MiB /  8188MiB |      2%      Default |
"""
JETSON = """| NVIDIA-SMI 540.4.0                Driver Version: 540.4.0      CUDA Version: 12.6     |
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |
| N/A   N/A  N/A               N/A /  N/A | Not Supported        |     N/A          N/A |
"""


def read(raw: str) -> Facts:
    return nvidia_smi_table.read(clean_text(raw, "report.txt"))


def device(raw: str, index: int = 0) -> Device:
    found: Device = read(raw)["devices"][index]
    return found


def test_an_old_table_without_a_cuda_version() -> None:
    facts = read(R352)
    assert (facts["driver"].version, facts["driver"].cuda_version) == (DriverVersion((352, 79)), None)
    assert facts["taken_at"] == "2016-05-17T09:10:11Z"
    assert facts["system"] == System(os="linux")
    assert facts["devices"] == (
        Device(
            nvml_index=0,
            name="Tesla K80",
            pci_address="0000:05:00.0",
            memory_used_bytes=55 * MIB,
            memory_total_bytes=11519 * MIB,
            power_draw_watts=61.0,
            power_limit_watts=149.0,
            performance_state=0,
            temperature_celsius=51,
            utilization_percent=7,
            compute_mode="exclusive-process",
            ecc_uncorrected_volatile=0,
            persistence_enabled=True,
        ),
    )


def test_instances_are_listed_without_their_ids() -> None:
    none = "|  No MIG devices found                                                                   |"
    some = "|  1    3   0   0  |              37MiB / 40192MiB    | 42      0 |  3   0    2    0    0 |"
    first, second = read(R550.replace(none, some))["devices"]
    assert (first.mig_enabled, first.mig_uuids) == (True, None)
    assert (second.mig_enabled, second.mig_uuids) == (True, None)
    first, second = read(R550.partition("| MIG devices:")[0])["devices"]
    assert (first.mig_enabled, first.mig_uuids) == (True, None)
    assert (second.mig_enabled, second.mig_uuids) == (False, ())


def test_a_wide_table_with_mig_and_processes() -> None:
    facts = read(R550)
    assert facts["driver"].cuda_version == CudaVersion(12, 4)
    assert (facts["driver"].installed, facts["driver"].nvml_code) == (True, 0)
    first, second = facts["devices"]
    assert (first.mig_enabled, first.mig_uuids, first.processes) == (True, (), None)
    assert (second.mig_enabled, second.ecc_uncorrected_volatile) == (False, 4)
    assert second.processes == (
        DeviceProcess(pid=2331, name="/usr/lib/xorg/Xorg", used_bytes=4 * MIB),
        DeviceProcess(pid=2400, name="...with spaces --type=gpu-process"),
    )


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(R550.replace("\n", " "), id="lines joined"),
        pytest.param(R550.replace("|", " ").replace("+-", " ").replace("-+", " "), id="frames lost"),
        pytest.param("\n".join(" ".join(line.split()) for line in R550.splitlines()), id="spaces folded"),
        pytest.param("\n".join(f"\t> {line}" for line in R550.splitlines()), id="quoted with tabs"),
        pytest.param(R550.replace("CUDA Version: 12.4", "**CUDA Version: 12.4**"), id="bold"),
        pytest.param(f"{R352}\n$ nvidia-smi\n{R550}", id="after an older table"),
    ],
)
def test_a_broken_paste_reads_the_same(broken: str) -> None:
    expected, found = read(R550), read(broken)
    assert found["devices"] == expected["devices"]
    assert found["driver"] == expected["driver"]


def test_a_table_cut_off_shows_what_is_left() -> None:
    facts = read(R550[: R550.index("|     430MiB")])
    assert facts["driver"].version == DriverVersion((550, 54, 15))
    assert (facts["devices"][0].name, facts["devices"][0].memory_total_bytes) == ("NVIDIA A100-SXM4-80GB", None)


def test_nothing_runs() -> None:
    empty = "| Processes: |\n|  No running processes found  |"
    assert device(R352 + empty).processes == ()
    assert device(R352).processes is None


@pytest.mark.parametrize(
    ("raw", "system"),
    [
        pytest.param(WINDOWS, System(os="windows"), id="driver model"),
        pytest.param(
            WINDOWS.replace("TCC/WDDM", "Persistence-M").replace("WDDM", "On  ").replace("SMI 546.33", "SMI 545.23.05"),
            System(os="linux", wsl=2),
            id="the Windows driver below another version",
        ),
        pytest.param(JETSON, System(os="linux"), id="Jetson"),
    ],
)
def test_operating_system(raw: str, system: System) -> None:
    assert read(raw)["system"] == system


def test_a_jetson_has_no_bus_address() -> None:
    assert device(JETSON) == Device(nvml_index=0, name="Orin (nvgpu)")


def test_new_names_of_the_versions() -> None:
    facts = read("| NVIDIA-SMI 610.43.03   KMD Version: 610.43.03   CUDA UMD Version: 13.3  |")
    assert facts["driver"].version == DriverVersion((610, 43, 3))
    assert facts["driver"].cuda_version == CudaVersion(13, 3)


@pytest.mark.parametrize("shown", ["N/A", "ERR!"])
def test_an_unknown_cuda_version(shown: str) -> None:
    assert read(R550.replace("12.4 ", f"{shown} "))["driver"].cuda_version is None


@pytest.mark.parametrize(
    ("row", "error"),
    [
        pytest.param("|ERR!   38C   P0  ERR! /  400W |", "ERR!", id="fan and power"),
        pytest.param("| N/A   38C   P0  N/A / ERR! |", "", id="power of a laptop"),
        pytest.param("|ERR!   38C   P0  60W /  400W |", "", id="fan alone"),
        pytest.param("|ERR!   ERR!  ERR!   GPU is lost |", "GPU is lost", id="lost"),
    ],
)
def test_values_that_cannot_be_read(row: str, error: str) -> None:
    table = R550.replace("| N/A   38C    P0             60W /  400W |", row)
    assert [found.error for found in read(table)["devices"]] == ["", error]


def test_a_failure_next_to_the_table_leaves_its_facts() -> None:
    facts = read(R550 + "\n$ nvidia-smi\nFailed to initialize NVML: Unknown Error\n")
    assert len(facts["devices"]) == 2
    assert facts["driver"].nvml_code is None


def test_no_devices() -> None:
    assert read("$ nvidia-smi\nNo devices were found\n") == {"devices": ()}
    assert read("nvidia-smi says that no devices were found here") == {}


def test_versions_alone() -> None:
    smi = "NVIDIA-SMI version  : 550.54.14\nNVML version        : 550.54\n"
    assert read(smi + "DRIVER version      : 550.54.14\nCUDA Version : 12.4")["driver"].version == DriverVersion(
        (550, 54, 14)
    )


@pytest.mark.parametrize("text", ["", "nvidia-smi works", pasted.COLLECT_ENV, pasted.PIP_LIST])
def test_another_text_shows_nothing(text: str) -> None:
    assert read(text) == {}


@pytest.mark.parametrize(
    "piece", ["| 0 NVIDIA ", "0 A On 00000000:01:00.0 Off 0 ", "ERR! ", "| NVIDIA-SMI 1.1 Driver Version: "]
)
def test_a_long_text_is_quick(piece: str) -> None:
    began = time.process_time()
    read("nvidia-smi " + piece * 40_000)
    assert time.process_time() - began < 3.0  # generous; it takes some tenths of a second


@pytest.mark.parametrize(
    ("smi", "driver", "wsl"),
    [
        ("545.23.05", "546.33", 2),
        ("470.10.01", "480.00", 2),
        ("470.10.01", "481.00", None),
        ("546.10.01", "546.33", 2),
        ("547.10.01", "546.33", None),
        ("545.23.05", "546.33.01", None),
    ],
)
def test_the_two_names_of_one_release(smi: str, driver: str, wsl: int | None) -> None:
    text = WINDOWS.replace("TCC/WDDM", "Persistence-M").replace("WDDM", "On  ").replace("SMI 546.33", f"SMI {smi}")
    system = read(text.replace("Driver Version: 546.33", f"Driver Version: {driver}")).get("system")
    assert (None if system is None else system.wsl) == wsl


def test_without_its_last_column_a_row_takes_no_number_of_the_next_one() -> None:
    rows = """
|   0  Tesla P40                      Off | 00000000:06:10.0 Off |
|   1  Tesla P40                      Off | 00000000:06:11.0 Off |
"""
    first, second = nvidia_smi_table.read(clean_text(rows, "report"))["devices"]
    assert (first.ecc_uncorrected_volatile, second.ecc_uncorrected_volatile) == (None, None)
