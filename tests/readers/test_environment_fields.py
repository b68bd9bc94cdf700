"""Fields that the environment reports of several programs share."""

import pytest

from gpudoctor.model import CudaVersion, Device, PackageVersion, Python, Torch, TorchRuntime
from gpudoctor.readers import environment_fields as fields
from gpudoctor.readers.environment_fields import gpu_name, named_gpus, numbered_gpus, repeated, torch_facts

ONE = (Device(nvml_index=0, name="NVIDIA L4"),)
TWO = (*ONE, Device(nvml_index=1, name="NVIDIA A10"))


@pytest.mark.parametrize(
    ("devices", "count", "indexes"),
    [
        pytest.param(ONE, "3", [0, 1, 2], id="one name for three"),
        pytest.param(ONE, "1", [0], id="one"),
        pytest.param(ONE, "many", [0], id="no number"),
        pytest.param(TWO, "3", [0, 1], id="each has a name of its own"),
        pytest.param((), "3", [], id="no name"),
    ],
)
def test_one_device_stands_for_as_many_as_are_counted(
    devices: tuple[Device, ...], count: str, indexes: list[int]
) -> None:
    assert [device.nvml_index for device in repeated(devices, count)] == indexes


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("NVIDIA L4", "NVIDIA L4"),
        (" 'Tesla T4', 15360 MiB", "Tesla T4"),
        ("NVIDIA A10 (UUID: GPU-1)", "NVIDIA A10"),
        ("NVIDIA A10 (arch=8.6)", "NVIDIA A10"),
        ("AMD Radeon RX 6800", None),
        ("NVIDIA GeForce MX150 / AMD Ryzen", "NVIDIA GeForce MX150 / AMD Ryzen"),
        ("Quadro P2000 beside Intel UHD", "Quadro P2000 beside Intel UHD"),
        ("None", None),
        ("N/A", None),
        ("1", None),
        ("", None),
    ],
)
def test_the_name_of_a_gpu(value: str, name: str | None) -> None:
    assert gpu_name(value) == name


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        pytest.param(
            ["GPU 0: NVIDIA L4", "GPU 1: NVIDIA A10"], [(0, "NVIDIA L4", None), (1, "NVIDIA A10", None)], id="two"
        ),
        pytest.param(["GPU 0,1: NVIDIA L4"], [(0, "NVIDIA L4", None), (1, "NVIDIA L4", None)], id="two of one name"),
        pytest.param(["GPU 0: NVIDIA L4", "GPU 0: NVIDIA A10"], [(0, "NVIDIA A10", None)], id="the last of a number"),
        pytest.param(["GPU 0: AMD Radeon RX 6800", "GPU 1: NVIDIA L4"], [(1, "NVIDIA L4", None)], id="another's"),
        pytest.param(["as asked", "0: NVIDIA L4"], [], id="no such line"),
        pytest.param(
            ["GPU 0: NVIDIA A100", "  MIG 1g.5gb Device 0: (UUID: MIG-1)", "GPU 1: NVIDIA L4"],
            [(0, "NVIDIA A100", True), (1, "NVIDIA L4", None)],
            id="MIG",
        ),
        pytest.param(["  MIG 1g.5gb Device 0: (UUID: MIG-1)"], [], id="MIG of no GPU"),
    ],
)
def test_gpus_by_their_numbers(lines: list[str], found: list[tuple[int, str, bool | None]]) -> None:
    assert [(gpu.nvml_index, gpu.name, gpu.mig_enabled) for gpu in numbered_gpus(lines)] == found


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["2x RTX 3090", "NVIDIA L4"], ["RTX 3090", "RTX 3090", "NVIDIA L4"]),
        (["NVIDIA Something New"], ["NVIDIA Something New"]),
        (["Something New", "AMD Radeon RX 6800", ""], []),
    ],
)
def test_gpus_by_their_names(names: list[str], found: list[str]) -> None:
    assert [(gpu.nvml_index, gpu.name) for gpu in named_gpus(names)] == list(enumerate(found))


PLAIN, CUDA_BUILD = PackageVersion("2.1.0"), PackageVersion("2.1.0+cu118")


@pytest.mark.parametrize(
    ("version", "cuda", "hip", "torch"),
    [
        (PLAIN, None, "", Torch(installed=True, version=PLAIN)),
        (PLAIN, "None", "", Torch(installed=True, version=PLAIN, build="cpu")),
        (PLAIN, "Could not collect", "N/A", Torch(installed=True, version=PLAIN, build="cpu")),
        (PLAIN, "12.1", "", Torch(installed=True, version=PLAIN, build="cuda", cuda_version=CudaVersion(12, 1))),
        (CUDA_BUILD, "None", "", Torch(installed=True, version=CUDA_BUILD)),
        (PLAIN, "6.0", "6.0.32830", Torch(installed=True, version=PLAIN, build="rocm", hip_version="6.0.32830")),
        (None, "12.1", "", Torch(installed=True, build="cuda", cuda_version=CudaVersion(12, 1))),
        (None, "None", "", None),
        (None, None, "", None),
        *(
            (
                PackageVersion(f"2.1.0+{local}"),
                None,
                "",
                Torch(installed=True, version=PackageVersion(f"2.1.0+{local}"), build=build),
            )
            for local, build in (("cpu", "cpu"), ("rocm5.6", "rocm"), ("xpu", "xpu"), ("git1", None))
        ),
    ],
)
def test_pytorch_by_what_a_report_says_of_it(
    version: PackageVersion | None, cuda: str | None, hip: str, torch: Torch | None
) -> None:
    expected = {} if torch is None else {"torch": torch}
    assert torch_facts(version, cuda, None, hip) == expected
    runtime = TorchRuntime(available=False)
    assert torch_facts(version, cuda, False, hip) == {**expected, "torch_runtime": runtime}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("True", True),
        ("yes", True),
        ("No: none", False),
        ("false", False),
        ("是", True),
        ("否", False),
        ("perhaps", None),
        ("-", None),
    ],
)
def test_an_answer(value: str, said: bool | None) -> None:
    assert fields.answer(value) is said


@pytest.mark.parametrize(
    ("value", "cuda"),
    [
        ("5.5", None),
        ("6.0", CudaVersion(6, 0)),
        ("12.1.105", CudaVersion(12, 1)),
        ("29.9", CudaVersion(29, 9)),
        ("30.0", None),
        ("12", None),
        ("N/A", None),
    ],
)
def test_a_cuda_version(value: str, cuda: CudaVersion | None) -> None:
    assert fields.cuda_version(value) == cuda


@pytest.mark.parametrize(
    ("value", "gcc"),
    [
        ("(Ubuntu 9.4.0-1ubuntu1) 9.4.0", (9, 4, 0)),
        ("gcc (GCC) 4.8.5", (4, 8, 5)),
        ("gcc 11.2", (11, 2)),
        ("(MinGW.org) 6.3.0", None),
        ("Clang 12.0.0", None),
        ("gcc 11", None),
    ],
)
def test_a_version_of_gcc(value: str, gcc: tuple[int, ...] | None) -> None:
    assert fields.gcc_version(value) == gcc


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3.11.4", Python(version=PackageVersion("3.11.4"))),
        ("2.7.18", Python(version=PackageVersion("2.7.18"))),
        ("4.0.1", None),
        ("1.5.2", None),
        (
            "3.9.0 | packaged by conda-forge | (default) [GCC] (64-bit runtime)",
            Python(version=PackageVersion("3.9.0"), environment="conda"),
        ),
        ("3.8.1 (32-bit runtime)", Python(version=PackageVersion("3.8.1"), platform_tag="win32")),
        ("3.13.1 free-threading build", Python(version=PackageVersion("3.13.1"), free_threaded=True)),
        ("N/A", None),
    ],
)
def test_a_python(value: str, expected: Python | None) -> None:
    assert fields.python_facts(value) == expected
    assert fields.release_of(expected) == (expected.version.release if expected and expected.version else ())
