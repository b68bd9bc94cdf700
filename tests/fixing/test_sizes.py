"""How much a plan downloads, as pip and uv say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudoctor.fixing.sizes import in_words, size_of_file, size_of_pip, sizes_of_pip, sizes_of_uv

# As pip 26.3 and uv 0.13.9 write them.
PIP = """\
Collecting torch==2.13.0
  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (29 kB)
Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (539.0 MB)
  Using cached https://index.example/numpy-2.4.6-cp311-none-any.whl (12.5 kB)
"""
UV = """\
[[packages]]
name = "torch"
version = "2.13.0"
wheels = [{ url = "https://index.example/torch.whl", size = 539000000, hashes = { sha256 = "6d86" } }]

[[packages]]
name = "numpy"
version = "2.4.6"
wheels = [
    { url = "https://index.example/a.whl", size = 1, hashes = {} },
    { url = "https://index.example/b.whl", size = 2, hashes = {} },
]

[[packages]]
name = "tiny"
wheels = [{ url = "https://index.example/tiny.whl", hashes = {} }]
"""


def test_pip() -> None:
    sizes = sizes_of_pip(PIP)
    torch = "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert sizes == {torch: 539_000_000, "numpy-2.4.6-cp311-none-any.whl": 12_500}
    assert size_of_pip(f"https://index.example/whl/{torch}#sha256=0", sizes) == 539_000_000
    assert size_of_pip("https://index.example/other.whl", sizes) is None


def test_uv() -> None:
    assert sizes_of_uv(UV) == {"torch": 539_000_000}


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a+b.whl"
    path.write_bytes(b"12345")
    assert size_of_file(path.as_uri()) == size_of_file(str(path)) == 5
    assert size_of_file((tmp_path / "none").as_uri()) is None
    assert sizes_of_uv(UV.replace("https://index.example/tiny.whl", path.as_uri()))["tiny"] == 5


@pytest.mark.parametrize(
    ("size", "words"), [(5, "5 bytes"), (1000, "1.0 kB"), (539_000_000, "539.0 MB"), (2_500_000_000, "2.5 GB")]
)
def test_words(size: int, words: str) -> None:
    assert in_words(size) == words
