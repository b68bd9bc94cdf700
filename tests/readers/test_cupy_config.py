"""The reader of cupy.show_config(): old and new versions, both platforms, tables that are cut off."""

import pytest

from gpudoctor.model import ComputeCapability, CudaVersion, PackageVersion
from gpudoctor.readers import cupy_config
from gpudoctor.readers.cupy_config import read
from gpudoctor.readers.text import clean_text

NEW = """\
>>> cupy.show_config()
OS                           : Linux-6.8.0-45-generic-x86_64-with-glibc2.39
Python Version               : 3.12.3
CuPy Version                 : 13.3.0
CuPy Platform                : NVIDIA CUDA
NumPy Version                : 2.1.1
SciPy Version                : None
Cython Build Version         : 0.29.36
Cython Runtime Version       : None
CUDA Root                    : /usr/local/cuda
nvcc PATH                    : /usr/local/cuda/bin/nvcc
CUDA Build Version           : 12060
CUDA Driver Version          : 12050
CUDA Runtime Version         : 12060 (linked to CuPy) / 12040 (locally installed)
CUDA Extra Include Dirs      : ['/usr/local/cuda/include']
cuBLAS Version               : (available)
cuFFT Version                : 11202
cuRAND Version               : 10305
cuSOLVER Version             : (11, 6, 1)
cuSPARSE Version             : (available)
NVRTC Version                : (12, 4)
Thrust Version               : 200600
CUB Build Version            : 200600
Jitify Build Version         : 1a0ca0e
cuDNN Build Version          : None
cuDNN Version                : None
NCCL Build Version           : None
NCCL Runtime Version         : None
cuTENSOR Version             : None
cuSPARSELt Build Version     : None
Device 0 Name                : NVIDIA A10
Device 0 Compute Capability  : 86
Device 0 PCI Bus ID          : 0000:17:00.0
Device 1 Name                : NVIDIA RTX PRO 6000
Device 1 Compute Capability  : 120
Device 1 PCI Bus ID          : 0000:65:00.0
"""

OLD = """\
CuPy Version          : 5.4.0
CUDA Root             : /usr/local/cuda
CUDA Build Version    : 9020
CUDA Driver Version   : 10000
CUDA Runtime Version  : 9020
cuDNN Build Version   : 7301
cuDNN Version         : 7301
NCCL Build Version    : 2307
"""

ROCM_9 = """\
OS                           : Linux-5.4.0-42-generic-x86_64-with-debian-buster-sid
CuPy Version                 : 9.0.0
CuPy Platform                : AMD ROCm
CUDA Root                    : /opt/rocm
CUDA Build Version           : 0
CUDA Driver Version          : 321700
Device 0 Name                : Vega 20
Device 0 Compute Capability  : 96
"""

BROKEN = """\
OS                           : Windows-10-10.0.22631-SP0
Python Version               : 3.11.9
CuPy Version                 : 13.1.0
CUDA Root                    : None
CUDA Build Version           : 12020
CUDA Driver Version          : 12040
CUDA Runtime Version         : 12020 (linked to CuPy) / RuntimeError('CuPy failed to load cudart64_12.dll: x') (locally installed)
cuBLAS Version               : (available)
cuFFT Version                : RuntimeError('CuPy failed to load cufft64_11.dll: FileNotFoundError: Could not find module')
NVRTC Version                : RuntimeError("CuPy failed to load nvrtc64_120_0.dll: FileNotFoundError: no such module")
cuTENSOR Version             : ImportError('cutensor')
"""  # noqa: E501 - the lines are as they are printed


def test_a_table_of_cupy_13() -> None:
    facts = read(clean_text(NEW, "report"))
    system, runtime, cupy = facts["system"], facts["cupy_runtime"], facts["cupy"]
    assert (system.os, system.kernel, system.machine, system.glibc, system.wsl) == (
        "linux",
        "6.8.0-45-generic",
        "x86_64",
        "2.39",
        0,
    )
    assert facts["python"].version == PackageVersion("3.12.3")
    assert (str(cupy.version), cupy.platform, cupy.cuda_major, str(cupy.numpy_version)) == (
        "13.3.0",
        "cuda",
        12,
        "2.1.1",
    )
    assert runtime.build_cuda_version == runtime.runtime_cuda_version == CudaVersion(12, 6)
    assert (runtime.driver_cuda_version, runtime.nvrtc_version) == (CudaVersion(12, 5), CudaVersion(12, 4))
    assert (runtime.import_error, runtime.device_error) == ("", "")
    assert [call.library for call in runtime.calls] == ["cublas", "cufft", "curand", "cusolver", "cusparse", "nvrtc"]
    assert not any(call.error for call in runtime.calls)
    assert facts["driver"].cuda_version == CudaVersion(12, 5)
    assert [(d.nvml_index, d.name, d.compute_capability) for d in facts["devices"]] == [
        (0, "NVIDIA A10", ComputeCapability(8, 6)),
        (1, "NVIDIA RTX PRO 6000", ComputeCapability(12, 0)),
    ]


def test_a_table_of_cupy_5_names_less() -> None:
    facts = read(clean_text(OLD, "report"))
    assert set(facts) == {"cupy", "cupy_runtime", "driver"}
    assert facts["driver"].cuda_version == CudaVersion(10, 0)
    assert facts["cupy_runtime"].build_cuda_version == CudaVersion(9, 2)
    assert facts["cupy_runtime"].calls is None


def test_a_rocm_table_shows_no_nvidia_gpu() -> None:
    facts = read(clean_text(ROCM_9, "report"))
    assert facts["cupy"].platform == "rocm"
    assert "devices" not in facts
    assert "driver" not in facts


def test_errors_stand_in_place_of_versions() -> None:
    facts = read(clean_text(BROKEN, "report"))
    calls = {call.library: call.error for call in facts["cupy_runtime"].calls}
    assert calls["cublas"] == ""
    assert "cufft64_11.dll" in calls["cufft"]
    assert "nvrtc64_120_0.dll" in calls["nvrtc"]
    assert "cudart64_12.dll" in calls["cudart"]
    assert "cutensor" not in calls
    assert facts["system"].os == "windows"


def test_an_error_of_cuda_is_no_missing_library() -> None:
    text = (
        "CuPy Version : 12.3.0\nCUDA Build Version : 12020\ncuBLAS Version : CUDARuntimeError('cudaErrorNoDevice: x')\n"
    )
    runtime = read(clean_text(text, "report"))["cupy_runtime"]
    assert "cudaErrorNoDevice" in runtime.device_error
    assert runtime.calls is None


def test_without_a_driver_its_version_is_unknown() -> None:
    facts = read(clean_text("CuPy Version : 13.0.0\nCUDA Driver Version : 0\nCUDA Build Version : 12020", "report"))
    assert "driver" not in facts


def test_a_table_whose_line_ends_were_lost() -> None:
    facts = read(clean_text(" ".join(NEW.split()), "report"))
    assert facts["cupy_runtime"].build_cuda_version == CudaVersion(12, 6)
    assert [device.name for device in facts["devices"]] == ["NVIDIA A10", "NVIDIA RTX PRO 6000"]


def test_of_two_tables_the_last_whole_one_counts() -> None:
    facts = read(clean_text(OLD + NEW + "OS : Linux\nCuPy Version : 1.0.0\nCUDA Root : /x", "report"))
    assert str(facts["cupy"].version) == "13.3.0"


def test_wsl_is_seen_in_the_kernel() -> None:
    text = NEW.replace("6.8.0-45-generic", "5.15.153.1-microsoft-standard-WSL2")
    assert read(clean_text(text, "report"))["system"].wsl == 2


@pytest.mark.parametrize("text", ["", "CUDA Driver Version: 12.4", "OS : Linux\nPython Version : 3.12", "CuPy Version"])
def test_a_text_of_another_kind_shows_nothing(text: str) -> None:
    assert read(clean_text(text, "report")) == {}


@pytest.mark.parametrize("end", range(0, len(NEW), 37))
def test_a_table_cut_off_anywhere_is_read(end: int) -> None:
    read(clean_text(NEW[:end], "report"))
    read(clean_text(NEW[end:], "report"))


@pytest.mark.parametrize(
    ("value", "local"),
    [
        ("12060 (linked to CuPy) / 13000 (locally installed)", CudaVersion(13, 0)),
        ("12060 (linked to CuPy) / RuntimeError('CuPy failed to load libcudart.so.12') (locally installed)", None),
        ("11080", None),
    ],
)
def test_the_runtime_next_to_that_of_cupy(value: str, local: CudaVersion | None) -> None:
    text = f"CuPy Version : 14.0.1\nCUDA Build Version : 12060\nCUDA Runtime Version : {value}\n"
    assert read(clean_text(text, "report.txt"))["cupy_runtime"].local_cuda_version == local


KEYS = """
    OS, Python Version, CuPy Version, CuPy Platform, NumPy Version, SciPy Version,
    Cython Build Version, Cython Runtime Version,
    CUDA Root, nvcc PATH, hipcc PATH, CUDA Build Version, CUDA Driver Version, CUDA Runtime Version, CUDA Runtime Path,
    CUDA Extra Include Dirs, cuBLAS Version, cuFFT Version, cuRAND Version, cuSOLVER Version, cuSPARSE Version,
    NVRTC Version, Thrust Version, CUB Build Version, Jitify Build Version, HIP Build Version, HIP Runtime Version,
    ROCm Root, cuDNN Build Version, cuDNN Version, NCCL Build Version, NCCL Runtime Version, cuTENSOR Version,
    cuSPARSELt Build Version
"""


@pytest.mark.parametrize("key", [" ".join(key.split()).lower() for key in KEYS.split(",")])
def test_a_line_of_the_table_is_known(key: str) -> None:
    assert set(cupy_config._table([f"{key} : 1", "CUB Build Version: 2", "Thrust Version: 3"])) == {
        key, "cub build version", "thrust version",
    }  # fmt: skip
    own = key in cupy_config._table([f"{key}: 1", "Thrust Version: 3"]) or key in cupy_config._table(
        [f"{key}: 1", "CUB Build Version: 3"]
    )
    common = (
        "os",
        "python version",
        "numpy version",
        "scipy version",
        "cython build version",
        "cython runtime version",
    )
    others = (*common, "nvcc path", "hipcc path", "cudnn build version", "cudnn version", "nccl build version")
    assert own is (key not in (*others, "nccl runtime version", "cutensor version", "cusparselt build version"))


@pytest.mark.parametrize(
    ("number", "cuda"),
    [
        ("4999", None),
        ("5000", CudaVersion(5, 0)),
        ("12050", CudaVersion(12, 5)),
        ("39999", CudaVersion(39, 99)),
        ("40000", None),
        ("None", None),
    ],
)
def test_the_cuda_version_of_a_number(number: str, cuda: CudaVersion | None) -> None:
    text = NEW.replace("CUDA Driver Version          : 12050", f"CUDA Driver Version          : {number}")
    driver = read(clean_text(text, "r")).get("driver")
    assert (driver.cuda_version if driver is not None else None) == cuda


@pytest.mark.parametrize(
    ("key", "is_of_cuda"),
    [
        *((key, False) for key in ("cuDNN Version", "NCCL Runtime Version", "cuTENSOR Version")),
        ("CUDA Runtime Version", True),
        ("cuBLAS Version", True),
    ],
)
def test_whose_error_it_is(key: str, is_of_cuda: bool) -> None:
    text = f"CuPy Version : 12.3.0\nCUDA Build Version : 12020\n{key} : CUDARuntimeError('cudaErrorNoDevice: x')\n"
    assert bool(read(clean_text(text, "r"))["cupy_runtime"].device_error) is is_of_cuda
