"""Single layers out of `docker save`."""

from __future__ import annotations

import gzip
import hashlib
import tarfile

import pytest

from gpudoctor.containers.images.files import Layer, Unreadable, read_layers
from tests.containers.archives import archive, chunks, member, saved

HISTORY = (
    {"created_by": "FROM something"},
    {"created_by": "WORKDIR /app", "empty_layer": True},
    {"created_by": "COPY a.py ."},
)
LAYERS = {
    "1/layer.tar": archive(member("app/a.py", b"base"), member("app/other.py", b"other")),
    "2/layer.tar": archive(member("app/a.py", b"copy"), member("app/b.py", type=tarfile.LNKTYPE, linkname="app/a.py")),
}


def read(data: bytes, sizes: dict[str, int], *, in_time: bool = True) -> tuple[Layer, ...]:
    return read_layers(chunks(data), sizes, lambda: in_time)


def test_each_layer_has_its_line_of_the_history_and_the_files_asked_for() -> None:
    first, second = read(saved(LAYERS, HISTORY), {"/app/a.py": 4})
    assert (first.created_by, second.created_by) == ("FROM something", "COPY a.py .")
    assert first.files["/app/a.py"].digest == hashlib.sha256(b"base").hexdigest()
    assert second.files["/app/a.py"].digest == hashlib.sha256(b"copy").hexdigest()
    assert "/app/other.py" not in first.files


def test_a_hard_link_is_the_file_that_it_links() -> None:
    _, second = read(saved(LAYERS, HISTORY), {"/app/a.py": 4, "/app/b.py": 4})
    assert second.files["/app/b.py"] == second.files["/app/a.py"]


def test_a_compressed_layer_is_read() -> None:
    """Engines with containerd's image store save layers as they keep them."""
    compressed = {f"blobs/sha256/{name[0]}": gzip.compress(data) for name, data in LAYERS.items()}
    assert read(saved(compressed, HISTORY), {"/app/a.py": 4}) == read(saved(LAYERS, HISTORY), {"/app/a.py": 4})


def test_names_that_lead_out_are_passed_over() -> None:
    hostile = {"1/layer.tar": archive(member("../app/a.py", b"evil"), member("/app/a.py", b"evil"))}
    (layer,) = read(saved(hostile, HISTORY[:1]), {"/app/a.py": 4})
    assert layer.files == {}


def test_it_stops_when_there_is_no_time() -> None:
    with pytest.raises(Unreadable, match="too long"):
        read(saved(LAYERS, HISTORY), {"/app/a.py": 4}, in_time=False)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(saved(LAYERS, HISTORY[:1]), id="a history of fewer layers"),
        pytest.param(saved({"layer": b"\x28\xb5\x2f\xfd no tar"}, HISTORY[:1]), id="a compression of its own"),
        pytest.param(archive(member("manifest.json", b"{}")), id="a manifest of another form"),
        pytest.param(archive(member("manifest.json", b'[{"Config": "../x", "Layers": []}]')), id="no configuration"),
        pytest.param(archive(member("manifest.json", b"[" * 100_000)), id="a deep manifest"),
        pytest.param(saved(LAYERS, ("FROM x", {}, {})), id="a history of texts"),  # type: ignore[arg-type]
        pytest.param(archive(), id="nothing"),
        pytest.param(b"no archive" * 200, id="no archive"),
    ],
)
def test_what_is_not_understood(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read(data, {"/app/a.py": 4})
