"""Compiled extensions of PyTorch against the installed PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from gpudoctor.model import CudaVersion, Outcome, Package, PackageVersion, Python, Severity, Symptom, Torch
from gpudoctor.testing import run_check

PYG_PAGE = "https://data.pyg.org/whl/torch-2.4.0+cu121.html"


def installed(**versions: str) -> Python:
    return Python(
        packages=tuple(
            Package(name=name.replace("_", "-"), version=PackageVersion(version)) for name, version in versions.items()
        )
    )


def torch(version: str, cuda: tuple[int, int] | None = (12, 1), abi: bool | None = None) -> Torch:
    return Torch(
        installed=True,
        version=PackageVersion(version),
        build="cuda" if cuda else "cpu",
        cuda_version=CudaVersion(*cuda) if cuda else None,
        cxx11_abi=abi,
    )


@pytest.mark.parametrize(
    ("there", "versions", "outcome"),
    [
        pytest.param(torch("2.3.1"), {"flash_attn": "2.6.3+cu123torch2.3cxx11abifalse"}, Outcome.PASSED, id="belongs"),
        pytest.param(torch("2.4.0"), {"flash_attn": "2.6.3+cu123torch2.3cxx11abifalse"}, Outcome.FOUND, id="release"),
        pytest.param(
            torch("2.3.1", abi=True), {"flash_attn": "2.6.3+cu123torch2.3cxx11abifalse"}, Outcome.FOUND, id="ABI"
        ),
        pytest.param(
            torch("2.3.1", abi=False), {"flash_attn": "2.6.3+cu123torch2.3cxx11abifalse"}, Outcome.PASSED, id="same ABI"
        ),
        pytest.param(
            torch("2.3.1", (11, 8)), {"flash_attn": "2.6.3+cu123torch2.3cxx11abifalse"}, Outcome.FOUND, id="CUDA major"
        ),
        pytest.param(
            torch("2.6.0", (12, 4)), {"flash_attn": "2.8.1+cu12torch2.6cxx11abitrue"}, Outcome.PASSED, id="cu12"
        ),
        pytest.param(torch("2.0.1", (11, 8)), {"torch_scatter": "2.1.2+pt20cu118"}, Outcome.PASSED, id="pt20"),
        pytest.param(
            torch("2.0.1", (11, 8), abi=True), {"torch_scatter": "2.1.2+pt20cu118"}, Outcome.PASSED, id="ABI not named"
        ),
        pytest.param(torch("2.1.0", (11, 8)), {"torch_scatter": "2.1.2+pt20cu118"}, Outcome.FOUND, id="pt20 on 2.1"),
        pytest.param(torch("1.13.1", (11, 7)), {"torch_sparse": "0.6.16+pt113cu117"}, Outcome.PASSED, id="pt113"),
        pytest.param(torch("2.6.0", (12, 4)), {"natten": "0.17.5+torch260cu124"}, Outcome.PASSED, id="torch260"),
        pytest.param(torch("2.7.0", (12, 6)), {"natten": "0.17.5+torch260cu126"}, Outcome.FOUND, id="torch260 on 2.7"),
        pytest.param(torch("2.10.0", (12, 8)), {"natten": "0.20.0+torch210cu128"}, Outcome.SKIPPED, id="2.1.0 or 2.10"),
        pytest.param(torch("2.3.1"), {"flash_attn": "2.6.3"}, Outcome.SKIPPED, id="names nothing"),
        pytest.param(torch("2.3.1"), {"torchvision": "0.18.1+cu118"}, Outcome.SKIPPED, id="no extension"),
    ],
)
def test_outcome(there: Torch, versions: dict[str, str], outcome: Outcome) -> None:
    assert run_check("extension-abi-mismatch", torch=there, python=installed(**versions)).outcome is outcome


def test_finding_and_command_of_flash_attention() -> None:
    python = installed(flash_attn="2.6.3+cu123torch2.3cxx11abifalse")
    (finding,) = run_check("extension-abi-mismatch", torch=torch("2.4.0"), python=python).findings
    assert finding.severity is Severity.ERROR
    assert finding.summary == (
        "flash-attn 2.6.3+cu123torch2.3cxx11abifalse was not built for the installed PyTorch 2.4.0 (CUDA 12.1)"
    )
    assert finding.remedies[0].commands == (
        "python -m pip install --force-reinstall --no-deps --no-build-isolation --no-cache-dir flash-attn==2.6.3",
        'python -c "import torch, flash_attn; print(torch.__version__)"',
    )


def test_one_finding_for_all_extensions() -> None:
    python = installed(torch_scatter="2.1.2+pt20cu118", torch_sparse="0.6.18+pt20cu118")
    (finding,) = run_check("extension-abi-mismatch", torch=torch("2.4.0+cu121"), python=python).findings
    assert len(finding.remedies) == 2
    assert finding.remedies[0].commands == (
        "python -m pip uninstall -y torch-scatter",
        f"python -m pip install --no-deps --no-cache-dir --find-links {PYG_PAGE} torch-scatter",
        'python -c "import torch, torch_scatter; print(torch.__version__)"',
    )


def test_of_another_extension_no_wheel_is_known() -> None:
    python = installed(natten="0.17.5+torch260cu126")
    (finding,) = run_check("extension-abi-mismatch", torch=torch("2.7.0", (12, 6)), python=python).findings
    assert finding.remedies[0].commands == ()


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        pytest.param({"torch": torch("2.3.1"), "python": Python()}, "python.packages is unknown", id="the packages"),
        pytest.param(
            {"torch": Torch(installed=True), "python": installed(torch_scatter="2.1.2+pt20cu118")},
            "torch.version is unknown",
            id="the version of PyTorch",
        ),
    ],
)
def test_unknown(sections: dict[str, Any], reason: str) -> None:
    result = run_check("extension-abi-mismatch", **sections)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, reason)


def said(kind: str, text: str = "as printed", **names: str) -> Symptom:
    return Symptom(kind=kind, text=text, names=names)


SYMBOL = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


@pytest.mark.parametrize(
    ("file", "name", "command"),
    [
        pytest.param(
            "/e/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so",
            "flash-attn",
            "python -m pip install --no-build-isolation --no-cache-dir --no-deps flash-attn",
            id="flash-attn",
        ),
        pytest.param(
            "/e/site-packages/torch_scatter/_scatter_cuda.so",
            "torch-scatter",
            "python -m pip install --no-deps --no-cache-dir --find-links "
            "https://data.pyg.org/whl/torch-2.3.0+cu121.html torch-scatter",
            id="PyG",
        ),
        pytest.param("/e/site-packages/mmcv/_ext.so", "mmcv", "python -m mim install mmcv", id="mmcv"),
        pytest.param(
            "/e/site-packages/xformers/_C.so",
            "xformers",
            "python -m pip install --no-cache-dir xformers --index-url "
            "https://download.pytorch.org/whl/cu121 torch==2.3.0",
            id="xformers",
        ),
        pytest.param(
            "/e/site-packages/some_ops/_C.so",
            "some-ops",
            "python -m pip install --no-build-isolation --no-cache-dir --no-deps some-ops",
            id="a package of nobody's list",
        ),
        pytest.param(
            "/h/.cache/torch_extensions/py310_cu121/fused_adam/fused_adam.so",
            "torch_extensions",
            "rm -rf ~/.cache/torch_extensions",
            id="compiled at run time",
        ),
    ],
)
def test_an_undefined_symbol_names_the_extension(file: str, name: str, command: str) -> None:
    torch = Torch(installed=True, build="cuda", version=PackageVersion("2.3.0"), cuda_version=CudaVersion(12, 1))
    message = said("extension-undefined-symbol", file=file, symbol=SYMBOL)
    (finding,) = run_check("extension-abi-mismatch", symptoms=(message,), torch=torch).findings
    assert finding.severity is Severity.ERROR
    assert finding.subject == name
    assert "PyTorch 2.3.0 (CUDA 12.1) (it asks for the C++11 ABI)" in finding.summary
    assert command in finding.remedies[0].commands


@pytest.mark.parametrize(
    "file", ["/e/site-packages/torchvision/_C.so", "/e/torch/lib/libtorch_cuda.so", "/e/cupy/_core/core.so"]
)
def test_other_checks_report_these(file: str) -> None:
    message = said("extension-undefined-symbol", file=file, symbol=SYMBOL)
    result = run_check("extension-abi-mismatch", symptoms=(message,))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "torch.installed is unknown")


def test_an_extension_without_a_name_is_rebuilt_by_its_user() -> None:
    (finding,) = run_check(
        "extension-abi-mismatch", symptoms=(said("extension-undefined-symbol", symbol="_ZN5torch3jit1fERKSs"),)
    ).findings
    assert finding.summary.startswith(
        "A compiled extension was not built for the installed PyTorch (it asks for the ABI"
    )
    assert "--no-build-isolation" in finding.remedies[0].summary
