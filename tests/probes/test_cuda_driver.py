"""libcuda by ctypes, with a stand-in for libcuda.so.1."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from gpudoctor.model import ComputeCapability, CudaDevice, CudaVersion, Driver, DriverVersion
from gpudoctor.probes.driver import parse_cuda_driver
from gpudoctor.probes.host import ProbeContext
from gpudoctor.probes.workers import cuda_driver
from gpudoctor.processes import WorkerEnded, WorkerSilent
from tests.conftest import Install
from tests.probes.asked import asked
from tests.stand_ins import A10, RTX_4090, RTX_5090, Broken, Cuda, ask_worker, facts_of


@pytest.fixture
def ask(driver_stand_in: Install, tmp_path: Path) -> Any:
    """Return a function from a library to the worker's facts."""

    def ask(cuda: Cuda | Broken, **environ: str) -> dict[str, Any]:
        visible = {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}
        return facts_of("cuda_driver", {**visible, **driver_stand_in(tmp_path, cuda=cuda), **environ})

    return ask


def test_a_driver_in_full(ask: Any, tmp_path: Path) -> None:
    facts = ask(Cuda(devices=(RTX_4090, A10), version=12020, driver_version="535.129.03"))
    assert parse_cuda_driver(facts) == Driver(
        installed=True,
        library_version=DriverVersion.parse("535.129.03"),
        libcuda_path=str(tmp_path / "lib" / "libcuda.so.1"),
        libcuda_error="",
        cuda_version=CudaVersion(12, 2),
        cuda_init_code=0,
        cuda_init_error="",
        cuda_device_count=2,
        cuda_devices=(
            CudaDevice(
                name="NVIDIA GeForce RTX 4090",
                compute_capability=ComputeCapability(8, 9),
                memory_total_bytes=(24564 - 346) * 2**20,
            ),
            CudaDevice(
                name="NVIDIA A10",
                compute_capability=ComputeCapability(8, 6),
                memory_total_bytes=(23028 - 435) * 2**20,
            ),
        ),
    )
    assert facts["devices"] == [
        {
            "cuda_index": 0,
            "name": "NVIDIA GeForce RTX 4090",
            "compute_capability": [8, 9],
            "memory_total_bytes": (24564 - 346) * 2**20,
            "uuid": "0a4090aa111122223333444444444444",
        },
        {
            "cuda_index": 1,
            "name": "NVIDIA A10",
            "compute_capability": [8, 6],
            "memory_total_bytes": (23028 - 435) * 2**20,
            "uuid": "0ca10ccc111122223333444444444444",
        },
    ]


@pytest.mark.parametrize(
    ("number", "version"),
    [
        pytest.param(12040, CudaVersion(12, 4), id="12.4"),
        pytest.param(13000, CudaVersion(13, 0), id="13.0"),
        pytest.param(0, None, id="none"),
        pytest.param(2_000_000_000, None, id="garbage"),
    ],
)
def test_cuda_version(ask: Any, number: int, version: CudaVersion | None) -> None:
    assert parse_cuda_driver(ask(Cuda(devices=(RTX_5090,), version=number))).cuda_version == version


@pytest.mark.parametrize(
    ("code", "name"),
    [
        pytest.param(100, "CUDA_ERROR_NO_DEVICE", id="no device"),
        pytest.param(802, "CUDA_ERROR_SYSTEM_NOT_READY", id="fabric manager"),
        pytest.param(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", id="mismatch"),
        pytest.param(804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", id="compatibility package"),
        pytest.param(999, "CUDA_ERROR_UNKNOWN", id="unknown"),
        pytest.param(4321, None, id="without a name"),
    ],
)
def test_cuda_that_does_not_initialise(ask: Any, code: int, name: str | None) -> None:
    driver = parse_cuda_driver(ask(Cuda(devices=(RTX_4090,), fail={"cuInit": code})))
    assert (driver.cuda_init_code, driver.cuda_init_error, driver.cuda_device_count) == (code, name, None)
    assert driver.cuda_version == CudaVersion(12, 4)


@pytest.mark.parametrize(
    ("visible", "code", "names"),
    [
        pytest.param("1", 0, ["NVIDIA A10"], id="one"),
        pytest.param("1,0", 0, ["NVIDIA A10", "NVIDIA GeForce RTX 4090"], id="another order"),
        pytest.param("GPU-0ca10ccc", 0, ["NVIDIA A10"], id="by UUID"),
        pytest.param("0,7,1", 0, ["NVIDIA GeForce RTX 4090"], id="up to the first wrong one"),
        pytest.param("", 100, None, id="empty"),
        pytest.param("-1", 100, None, id="none"),
    ],
)
def test_the_environment_is_passed_on(ask: Any, visible: str, code: int, names: list[str] | None) -> None:
    facts = ask(Cuda(devices=(RTX_4090, A10)), CUDA_VISIBLE_DEVICES=visible)
    driver = parse_cuda_driver(facts)
    assert (driver.cuda_init_code, driver.cuda_device_count) == (code, len(names) if names is not None else None)
    assert [device["name"] for device in facts.get("devices", ())] == (names or [])


def test_a_library_that_does_not_load(ask: Any) -> None:
    driver = parse_cuda_driver(ask(Broken()))
    assert (driver.installed, driver.libcuda_path) == (None, "")
    assert "file too short" in (driver.libcuda_error or "")


@pytest.mark.parametrize("folder", ["compat", "stubs"])
def test_a_library_that_is_no_part_of_a_driver(driver_stand_in: Install, tmp_path: Path, folder: str) -> None:
    environ = driver_stand_in(tmp_path / folder, cuda=Cuda(devices=(RTX_4090,), driver_version="580.95.05"))
    driver = parse_cuda_driver(facts_of("cuda_driver", environ))
    assert (driver.installed, driver.library_version) == (None, None)
    assert folder in (driver.libcuda_path or "")


def test_a_device_without_facts_is_still_counted(ask: Any) -> None:
    functions = (
        "cuDeviceGetName",
        "cuDeviceGetAttribute",
        "cuDeviceTotalMem_v2",
        "cuDeviceGetUuid_v2",
        "cuDeviceGetUuid",
    )
    fail = dict.fromkeys(functions, 101)
    facts = ask(Cuda(devices=(RTX_4090.but(fail=fail), A10), missing=("cuDeviceGetUuid_v2",)))
    assert facts["devices"][0] == {"cuda_index": 0}
    assert facts["devices"][1]["uuid"] == "0ca10ccc111122223333444444444444"
    driver = parse_cuda_driver(facts)
    assert driver.cuda_device_count == 2
    assert driver.cuda_devices is not None
    assert driver.cuda_devices[0] == CudaDevice()


def test_a_count_that_cannot_be_is_unknown(ask: Any) -> None:
    facts = ask(Cuda(devices=(RTX_4090,), device_count=2_000_000_000))
    assert parse_cuda_driver(facts).cuda_device_count is None
    assert len(facts["devices"]) == 256


def test_a_name_of_any_bytes(ask: Any) -> None:
    facts = ask(Cuda(devices=(RTX_4090.but(name=b"\xff\xfe GPU"),)))
    assert facts["devices"][0]["name"] == "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} GPU"


class Library:
    """libcuda in this process. Each function fails with its code in `codes`; None takes it away."""

    _handle = 0
    VALUES: ClassVar[dict[str, int]] = {
        "cuDriverGetVersion": 12040,
        "cuDeviceGetCount": 1,
        "cuDeviceTotalMem_v2": 24 << 30,
    }
    VALUES |= {"cuDeviceGet": 5, "75": 8, "76": 9}

    def __init__(self, **codes: int | None) -> None:
        self.codes = codes

    def __getattr__(self, name: str) -> Any:
        if self.codes.get(name, 0) is None:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            code = self.codes.get(name) or 0
            if not code:
                self._fill(name, *arguments)
            return code

        return call

    def _fill(self, name: str, *arguments: Any) -> None:
        target: Any = getattr(arguments[0], "_obj", arguments[0]) if arguments else None
        if name == "cuDeviceGetName":
            assert (arguments[1], arguments[2].value) == (255, 5)
            target.value = b"GPU"
        elif name.startswith("cuDeviceGetUuid"):
            target[:] = [2 if name.endswith("_v2") else 1] * 16
        elif name == "cuGetErrorName":
            arguments[1]._obj.value = b"CUDA_ERROR_X"
        elif name == "cuDeviceGetAttribute":
            target.value = self.VALUES[str(arguments[1])]
        elif name in self.VALUES:
            target.value = self.VALUES[name]


DEVICE = {"cuda_index": 0, "name": "GPU", "compute_capability": [8, 9], "memory_total_bytes": 24 << 30}
DEVICE |= {"uuid": "02" * 16}
DRIVER = {"path": "/x/libcuda.so.1", "file": "/x/libcuda.so.1", "version_code": 0, "cuda_version": 12040}
COUNTED = {**DRIVER, "init_code": 0, "count_code": 0, "device_count": 1}


def device_without(*names: str, **others: str) -> dict[str, Any]:
    kept = {name: value for name, value in DEVICE.items() if name not in names}
    return {**COUNTED, "devices": [{**kept, **others}]}


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ({}, {**COUNTED, "devices": [DEVICE]}),
        ({"cuDeviceGetUuid": 1}, {**COUNTED, "devices": [DEVICE]}),
        ({"cuDeviceGetUuid_v2": None}, device_without(uuid="01" * 16)),
        ({"cuDeviceGetUuid_v2": 3}, device_without(uuid="01" * 16)),
        ({"cuDeviceGetUuid_v2": 3, "cuDeviceGetUuid": None}, device_without("uuid")),
        ({"cuDeviceGetName": 1}, device_without("name")),
        ({"cuDeviceGetAttribute": 1}, device_without("compute_capability")),
        ({"cuDeviceTotalMem_v2": 1}, device_without("memory_total_bytes")),
        ({"cuDeviceGet": 1}, {**COUNTED, "devices": [{"cuda_index": 0}]}),
        ({"cuDeviceGetCount": 3}, {**DRIVER, "init_code": 0, "count_code": 3}),
        ({"cuDeviceGetCount": None}, {**DRIVER, "init_code": 0, "count_code": None}),
        ({"cuInit": 803}, {**DRIVER, "init_code": 803, "init_error": "CUDA_ERROR_X"}),
        ({"cuInit": 803, "cuGetErrorName": 1}, {**DRIVER, "init_code": 803, "init_error": None}),
        ({"cuInit": None}, {**DRIVER, "init_code": None}),
    ],
)
def test_the_whole_answer(codes: dict[str, int | None], expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: Library(**codes))
    monkeypatch.setattr(cuda_driver, "_loaded_path", lambda cuda: "/x/libcuda.so.1")
    assert cuda_driver.collect({}) == expected


@pytest.mark.parametrize("code", [1, None])
def test_a_version_that_the_library_does_not_show(code: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: Library(cuDriverGetVersion=code, cuInit=3))
    monkeypatch.setattr(cuda_driver, "_loaded_path", lambda cuda: "/x/libcuda.so.1")
    found = cuda_driver.collect({})
    assert (found["version_code"], "cuda_version" in found) == (code, False)


MAPS = "1-2 r-xp 0 0 1 /lib/libc.so\n3-4 r-xp 0 0 2 /z/libcuda.so.1\n5-6 r-xp 0 0 3 /my driver/libcuda.so.550\n"


@pytest.mark.parametrize(
    ("maps", "path"), [(MAPS, "/my driver/libcuda.so.550"), ("", "libcuda.so.1"), (None, "libcuda.so.1")]
)
def test_the_file_that_is_mapped_if_the_loader_does_not_show(
    maps: str | None, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_maps(*_: Any, **__: Any) -> Any:
        if maps is None:
            raise OSError
        return io.StringIO(maps)

    monkeypatch.setattr("ctypes.CDLL", lambda name: SimpleNamespace())
    monkeypatch.setattr(cuda_driver, "open", open_maps, raising=False)
    monkeypatch.setattr(cuda_driver, "LIBRARY", "libcuda.so.1")
    assert cuda_driver._loaded_path(Library()) == path


def test_a_hang_is_left_to_the_time_limit(driver_stand_in: Install, tmp_path: Path) -> None:
    environ = driver_stand_in(tmp_path, cuda=Cuda(fail={"cuInit": "hang"}))
    with pytest.raises(WorkerSilent):
        ask_worker("cuda_driver", environ, timeout=2)


def test_a_crash_takes_the_worker_only(driver_stand_in: Install, tmp_path: Path) -> None:
    with pytest.raises(WorkerEnded, match="killed by SIGSEGV"):
        ask_worker("cuda_driver", driver_stand_in(tmp_path, cuda=Cuda(fail={"cuInit": "crash"})))


def test_the_loader_s_text_is_made_fit_to_show() -> None:
    driver = parse_cuda_driver({"library_error": "libcuda.so.1:\n\x1b[31mcannot open"})
    assert (driver.libcuda_path, driver.libcuda_error) == ("", "libcuda.so.1: [31mcannot open")


@pytest.mark.parametrize(
    ("file", "version"),
    [
        pytest.param("/usr/lib/x86_64-linux-gnu/libcuda.so.550.120", "550.120", id="two numbers"),
        pytest.param("/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1", None, id="Jetson"),
        pytest.param("/usr/lib/wsl/lib/libcuda.so.1", None, id="WSL"),
        pytest.param("C:\\Windows\\System32\\nvcuda.dll", None, id="Windows"),
    ],
)
def test_library_version(file: str, version: str | None) -> None:
    driver = parse_cuda_driver({"path": file, "file": file})
    assert driver.library_version == (DriverVersion.parse(version) if version else None)
    assert driver.installed is True


def test_the_question() -> None:
    question = asked("cuda-driver", ProbeContext(environ={}, directory="/"))
    assert (question.name, question.worker, question.in_environment) == ("cuda-driver", "cuda_driver", False)
