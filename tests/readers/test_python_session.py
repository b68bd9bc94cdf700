"""Expressions of a Python session, and the facts of their values."""

from typing import Any

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Cupy,
    CupyRuntime,
    Device,
    PackageVersion,
    Torch,
    TorchRuntime,
)
from gpudoctor.readers.python_session import read_session
from gpudoctor.readers.text import clean_text

INSTALLED = Torch(installed=True)
L4 = Device(nvml_index=0, name="NVIDIA L4")
ADA = Device(nvml_index=0, compute_capability=ComputeCapability(8, 9))


def read(text: str) -> dict[str, Any]:
    found = list(read_session(clean_text(text, "report.txt")))
    return dict(found[0]) if found else {}


def torch(**runtime: Any) -> dict[str, Any]:
    return {"torch_runtime": TorchRuntime(**runtime), "torch": INSTALLED}


SHOWN = [
    (
        "torch.__version__",
        "'2.1.0+cu118'",
        {
            "torch_runtime": TorchRuntime(version=PackageVersion("2.1.0+cu118")),
            "torch": Torch(installed=True, version=PackageVersion("2.1.0+cu118")),
        },
    ),
    (
        "torch.version.cuda",
        "'11.8'",
        {
            "torch_runtime": TorchRuntime(cuda_version=CudaVersion(11, 8)),
            "torch": Torch(installed=True, build="cuda", cuda_version=CudaVersion(11, 8)),
        },
    ),
    ("torch.version.cuda", "None", {"torch": Torch(installed=True, build="cpu")}),
    (
        "torch.version.hip",
        "'6.2.41133-dd7f95766'",
        {
            "torch_runtime": TorchRuntime(hip_version="6.2.41133-dd7f95766"),
            "torch": Torch(installed=True, build="rocm"),
        },
    ),
    ("torch.cuda.is_available()", "True", torch(available=True)),
    ("torch.cuda.is_available()", "false", torch(available=False)),
    ("torch.cuda.device_count()", "2", torch(device_count=2)),
    ("torch.cuda.device_count()", "0", torch(device_count=0, available=False)),
    ("torch.cuda.get_arch_list()", "['sm_80', 'compute_90']", torch(architectures=("sm_80", "compute_90"))),
    ("torch.cuda.get_device_name(0)", "'NVIDIA L4'", {**torch(device_names=("NVIDIA L4",)), "devices": (L4,)}),
    ("torch.cuda.get_device_name()", "'AMD Radeon'", torch(device_names=("AMD Radeon",))),
    (
        "torch.cuda.get_device_capability(0)",
        "(8, 9)",
        {**torch(device_capabilities=(ComputeCapability(8, 9),)), "devices": (ADA,)},
    ),
    ("torch.backends.cudnn.version()", "8902", torch(cudnn_version=8902)),
    ("torch.backends.cudnn.version()", "None", torch(cudnn_version=0)),
    ("torch.cuda.nccl.version()", "(2, 18, 1)", {"torch": INSTALLED}),
    ("torch.backends.mps.is_available()", "True", torch(mps_available=True)),
    (
        "cupy.__version__",
        "'13.3.0'",
        {"cupy": Cupy(version=PackageVersion("13.3.0")), "cupy_runtime": CupyRuntime(version=PackageVersion("13.3.0"))},
    ),
    (
        "cp.cuda.runtime.runtimeGetVersion()",
        "12040",
        {"cupy_runtime": CupyRuntime(runtime_cuda_version=CudaVersion(12, 4))},
    ),
    (
        "cupy.cuda.runtime.driverGetVersion()",
        "12020",
        {"cupy_runtime": CupyRuntime(driver_cuda_version=CudaVersion(12, 2))},
    ),
]


@pytest.mark.parametrize(("expression", "value", "expected"), SHOWN)
@pytest.mark.parametrize("form", [">>> {}\n{}\n", "{}  # {}\n", "print({})\n\n{}\n", "`{}` returns {}.\n"])
def test_an_expression_and_its_value(expression: str, value: str, expected: dict[str, Any], form: str) -> None:
    if not (form.startswith("{}  #") or (form.startswith("`") and "[" in value)):
        assert read(form.format(expression, value)) == expected


@pytest.mark.parametrize(
    ("text", "available"),
    [
        (">>> torch.cuda.is_available()\nwait\nfor it\nTrue\n", True),
        (">>> torch.cuda.is_available()\nwait\nfor it\nlonger\nTrue\n", None),
        (">>> torch.cuda.is_available()\nUserWarning: one\nUserWarning: two\nreturn 3\nFalse\n", False),
        ("if torch.cuda.is_available():\nTrue\n", None),
        ("it should be that torch.cuda.is_available() -> True\n", None),
        ("torch.cuda.is_available() == True\n", None),
        ("torch.cuda.is_available() -> False, then torch.cuda.is_available() -> True\n", True),
    ],
)
def test_what_is_between_and_around(text: str, available: bool | None) -> None:
    runtime = read(text).get("torch_runtime")
    assert (runtime.available if runtime is not None else None) is available


def test_several_expressions_of_one_line() -> None:
    expected = torch(available=True, device_count=2)
    assert read("print(torch.cuda.is_available(), torch.cuda.device_count())\nTrue 2\n") == expected
    assert read(">>> torch.cuda.is_available(), torch.cuda.device_count()\n(True, 2)\n") == expected
    assert read("print(torch.cuda.is_available())\nprint(torch.cuda.device_count())\nTrue\n2\n") == expected


def test_a_value_of_none_shows_nothing() -> None:
    text = ">>> torch.version.cuda\n>>> torch.cuda.is_available()\nFalse\n"
    assert read(text) == {"torch_runtime": TorchRuntime(available=False), "torch": Torch(installed=True, build="cpu")}
    assert read(f"{text}macOS 14\n") == torch(available=False)
