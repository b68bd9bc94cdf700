"""Compiled extensions of PyTorch."""

from __future__ import annotations

import pytest

from gpudoctor.conclusions.extensions import extensions
from gpudoctor.model import Package, PackageVersion, Project, Python, Requirement, Symptom


def installed(**versions: str) -> Python:
    return Python(
        packages=tuple(
            Package(name=name.replace("_", "-"), version=PackageVersion(version)) for name, version in versions.items()
        )
    )


@pytest.mark.parametrize(
    ("local", "torch", "cuda_major", "abi"),
    [
        ("cu123torch2.3cxx11abifalse", "2.3", 12, False),
        ("cu12torch2.6cxx11abitrue", "2.6", 12, True),
        ("pt20cu118", "2.0", 11, None),
        ("pt113cu117", "1.13", 11, None),
        ("torch260cu124", "2.6", 12, None),
        ("pt2.10cpu", "2.10", None, None),
    ],
)
def test_what_an_extension_was_built_for(local: str, torch: str, cuda_major: int | None, abi: bool | None) -> None:
    (built,) = extensions(installed(x=f"1.0+{local}"), Project(), None).built or ()
    assert (built.torch, built.cuda_major, built.cxx11_abi) == (torch, cuda_major, abi)
    assert built.fact == "python.packages[0].version"


@pytest.mark.parametrize("local", ["cu118", "torch210cu128", "gitabc"])
def test_a_version_that_names_no_pytorch(local: str) -> None:
    assert extensions(installed(x=f"1.0+{local}"), Project(), None).built == ()


@pytest.mark.parametrize("name", ["torch", "torchvision", "torchaudio", "torchtext"])
def test_pytorch_itself_is_no_extension(name: str) -> None:
    assert extensions(installed(**{name: "2.3+cu121torch2.3"}), Project(), None).built == ()


@pytest.mark.parametrize(
    "file",
    [
        *("torchvision/_C.so", "torchaudio/lib/x.so", "torch/lib/libtorch_cuda.so", "torch/lib/libc10.so"),
        *(
            "nvidia/libcudart.so.12",
            "nvidia/libcudnn.so.9",
            "nvidia/libnccl.so.2",
            "x/libcublas.so.12",
            "cupy/_core.so",
        ),
    ],
)
def test_files_that_other_checks_are_for(file: str) -> None:
    assert extensions(Python(), Project(), (failed(f"/e/site-packages/{file}"),)).failed == ()


def test_without_a_list_of_packages_nothing_is_known() -> None:
    assert extensions(Python(), Project(), None).built is None
    assert extensions(Python(), Project(), None).built is None


def failed(file: str = "", symbol: str = "", kind: str = "extension-undefined-symbol", library: str = "") -> Symptom:
    names = {key: value for key, value in (("file", file), ("symbol", symbol)) if value}
    return Symptom(kind=kind, text="x", library=library, names=names, fact="symptoms[0].text")


@pytest.mark.parametrize(
    ("symptom", "name"),
    [
        (failed("/e/site-packages/flash_attn_2_cuda.so"), "flash-attn"),
        (failed("/e/site-packages/torch_scatter/_scatter_cuda.so"), "torch-scatter"),
        (failed("/e/site-packages/Own_Thing/_C.so"), "own-thing"),
        (failed("/e/.cache/torch_extensions/py311/x.so"), "torch_extensions"),
        (failed(kind="xformers-built-for", library="xformers"), "xformers"),
        (failed(), ""),
    ],
)
def test_the_distribution_of_a_file(symptom: Symptom, name: str) -> None:
    (extension,) = extensions(Python(), Project(), (symptom,)).failed
    assert extension.name == name


def test_without_a_file_the_only_compiled_package_is_meant() -> None:
    (extension,) = extensions(installed(xformers="0.0.27", click="8"), Project(), (failed(),)).failed
    assert (extension.name, str(extension.version)) == ("xformers", "0.0.27")
    assert extension.facts == ("symptoms[0].text", "python.packages[0].version")
    (extension,) = extensions(installed(xformers="0.0.27", apex="1"), Project(), (failed(),)).failed
    assert extension.name == ""


@pytest.mark.parametrize(
    ("symbol", "abi"),
    [
        ("_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringE", "the C++11 ABI"),
        ("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", "the ABI before C++11"),
        ("_ZN3c104cuda9SetDeviceEi", ""),
    ],
)
def test_the_abi_of_a_symbol(symbol: str, abi: str) -> None:
    (extension,) = extensions(Python(), Project(), (failed("/e/site-packages/apex/x.so", symbol),)).failed
    assert extension.abi == abi


def test_each_distribution_once_and_only_of_a_report() -> None:
    twice = (failed("/e/site-packages/apex/a.so"), failed("/e/site-packages/apex/b.so"))
    assert len(extensions(Python(), Project(), twice).failed) == 1
    titled = (failed("_ext.cpython-38-x86_64-linux-gnu.so"), *twice)  # the title of a report, and its log
    assert [extension.name for extension in extensions(Python(), Project(), titled).failed] == ["apex"]
    live = Symptom(kind="extension-undefined-symbol", text="x", fact="torch_runtime.import_error")
    assert extensions(Python(), Project(), (live,)).failed == ()


@pytest.mark.parametrize(
    ("required", "there", "to_build"),
    [
        ("flash-attn", {}, "flash-attn"),
        ("flash-attn", {"flash_attn": "2.6"}, None),
        ("deepspeed", {"deepspeed": "0.15"}, "deepspeed"),
        *((name, {}, name) for name in ("xformers", "apex", "torch-scatter", "torch-sparse", "torch-cluster")),
        *((name, {}, name) for name in ("torch-spline-conv", "pyg-lib", "causal-conv1d", "mamba-ssm", "detectron2")),
        *((name, {}, name) for name in ("pytorch3d", "nvdiffrast", "gsplat", "tinycudann", "transformer-engine")),
        ("diff-gaussian-rasterization", {}, "diff-gaussian-rasterization"),
        ("numpy", {}, None),
    ],
)
def test_what_is_still_to_be_compiled(required: str, there: dict[str, str], to_build: str | None) -> None:
    project = Project(requirements=(Requirement(name=required, source="requirements.txt line 1"),))
    requirement = extensions(installed(**there), project, None).to_build
    assert (requirement.name if requirement else None) == to_build
