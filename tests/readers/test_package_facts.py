"""What a list of installed packages says."""

import pytest

from gpudoctor.model import Cupy, PackageVersion, Python, Torch
from gpudoctor.readers.package_facts import bears_on_gpus, package, package_facts, packages_of

TORCH, NUMPY = package("torch", "2.5.1+cu124"), package("NumPy", "2.1.0")
CUPY = package("cupy-cuda12x", "13.3.0")


@pytest.mark.parametrize(
    ("name", "kept"), [("torch", True), ("nvidia-cudnn-cu12", True), ("Flash_Attn", True), ("requests", False)]
)
def test_what_bears_on_gpus(name: str, *, kept: bool) -> None:
    assert bears_on_gpus(name) is kept
    assert [item.version for item in packages_of([(name, "1.0")])] == [PackageVersion("1.0")] * kept


def test_the_last_of_two_counts() -> None:
    found = package_facts([package("torch", "2.0.0"), TORCH])
    assert found == {"python": Python(packages=(TORCH,)), "torch": Torch(installed=True, version=TORCH.version)}


@pytest.mark.parametrize(
    ("location", "folder"), [("/venv/site-packages", "/venv/site-packages/torch"), ("https://x", None), ("", None)]
)
def test_where_torch_is(location: str, folder: str | None) -> None:
    assert package_facts([package("torch", "2.5.1", location=location)])["torch"].location == folder


@pytest.mark.parametrize(
    ("whole", "torch"),
    [
        (("numpy",), Torch(installed=False)),
        (("numpy", "pytorch"), None),
        (("numpy", "PyTorch-CUDA"), None),
        (("numpy", "torchmetrics"), Torch(installed=False)),
    ],
)
def test_a_whole_list_shows_what_is_missing(whole: tuple[str, ...], torch: Torch | None) -> None:
    found = package_facts([NUMPY], whole=whole, complete=True)
    assert found.get("torch") == torch
    assert found["cupy"] == Cupy(distributions=(), numpy_version=NUMPY.version)
    assert package_facts([NUMPY], whole=whole) == {"python": Python(packages=(NUMPY,))}


def test_an_empty_list() -> None:
    assert package_facts([]) == {}
    assert package_facts([], complete=True)["python"] == Python(packages=())


@pytest.mark.parametrize(
    ("name", "installer", "platform", "major"),
    [
        ("cupy-cuda12x", "", "cuda", 12),
        ("cupy-rocm-5-0", "", "rocm", None),
        ("amd-cupy", "", "rocm", None),
        ("cupy", "conda", "cuda", None),
        ("cupy", "pip", None, None),
    ],
)
def test_what_cupy_is_for(name: str, installer: str, platform: str | None, major: int | None) -> None:
    cupy = package(name, "13.3.0", installer)
    expected = Cupy(distributions=(cupy,), version=cupy.version, platform=platform, cuda_major=major)
    assert package_facts([cupy])["cupy"] == expected


def test_of_several_cupys_only_what_they_share_is_known() -> None:
    others = [package("cupy-cuda11x", version) for version in ("13.3.0", "12.0.0")]
    same, different = (package_facts([CUPY, other])["cupy"] for other in others)
    assert same == Cupy(distributions=(CUPY, others[0]), version=CUPY.version)
    assert different == Cupy(distributions=(CUPY, others[1]))
