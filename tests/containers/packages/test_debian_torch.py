"""PyTorch without CUDA that pip installed into an image, found without running it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudoctor.containers.setups import look_at_setups
from gpudoctor.model import Containers
from gpudoctor.model.codec import from_json
from gpudoctor.testing import run_check
from tests.containers.debian import PIP, Shelf

pytestmark = pytest.mark.engine

FOR_CUDA = "ENV NVIDIA_VISIBLE_DEVICES=all\n"


@pytest.mark.parametrize(
    ("builder", "install", "folder"),
    [
        pytest.param("classic", "RUN pip install torch\n", "/usr/local/lib/python3.11/dist-packages", id="for all"),
        pytest.param(
            "buildkit",
            "RUN useradd -m user\nUSER user\nRUN pip install --user torch\n",
            "/home/user/.local/lib/python3.11/site-packages",
            id="for its user",
        ),
    ],
)
def test_a_build_for_the_cpu(shelf: Shelf, tmp_path: Path, builder: str, install: str, folder: str) -> None:
    place = shelf.place(builder, PIP + FOR_CUDA + install)
    facts = look_at_setups({"directory": str(tmp_path), "image": place.tag}, os.environ)
    containers = from_json(Containers, facts["containers"])
    torch = containers.setups[0].torch
    assert torch is not None
    assert (str(torch.version), torch.build, torch.location) == ("2.9.0+cpu", "cpu", f"{folder}/torch")
    (finding,) = run_check("container-torch-cpu-build", containers=containers).findings
    assert finding.summary.startswith(f"PyTorch 2.9.0+cpu in the image {place.tag} is built without CUDA")
