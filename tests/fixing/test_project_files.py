"""Files of a project change in what contradicts the fix, and in nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from gpudoctor.errors import UsageError
from gpudoctor.fixing.project_files import edits_of, unread_files, with_gpu, with_versions
from gpudoctor.fixing.resolution import Pin, Resolution

CU130 = (Pin(name="torch", version="2.13.0+cu130"), Pin(name="torchvision", version="0.28.0+cu130"))
PLAN = Resolution(pins=CU130, removes=(), changes=())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("torch==2.13.0+cpu\n", "torch==2.13.0+cu130\n", id="requirements"),
        pytest.param("torch == 2.12.0  # torch==2.12.0\n", "torch == 2.13.0+cu130  # torch==2.12.0\n", id="comment"),
        pytest.param("torch==2.13.0\n", "torch==2.13.0\n", id="any build"),
        pytest.param("torch==2.13.*\n", "torch==2.13.*\n", id="any patch version"),
        pytest.param("torch>=2.4\ntorch-geometric==2.6\n", "torch>=2.4\ntorch-geometric==2.6\n", id="other names"),
        pytest.param("my-torch==1\nTorchVision==0.20.0\r\n", "my-torch==1\nTorchVision==0.28.0+cu130\r\n", id="case"),
        pytest.param(
            "--extra-index-url https://download.pytorch.org/whl/cpu\n",
            "--extra-index-url https://download.pytorch.org/whl/cu130\n",
            id="index",
        ),
        pytest.param(
            'dependencies = ["torch==2.13.0+cpu", "rich==13"]  # pinned\n',
            'dependencies = ["torch==2.13.0+cu130", "rich==13"]  # pinned\n',
            id="pyproject.toml",
        ),
        pytest.param(
            "RUN pip install torch==2.12.0 \\\n    --index-url https://download.pytorch.org/whl/cpu\n",
            "RUN pip install torch==2.13.0+cu130 \\\n    --index-url https://download.pytorch.org/whl/cu130\n",
            id="Dockerfile",
        ),
        pytest.param("torchvision===0.20.0+cpu\n", "torchvision===0.28.0+cu130\n", id="three signs"),
        pytest.param("https://example.com/whl/cpu#torch==1.0\n", "https://example.com/whl/cpu#torch==2.13.0+cu130\n"),
    ],
)  # fmt: skip
def test_versions(before: str, after: str) -> None:
    assert with_versions(before, CU130) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "ARG TORCH=2.13.0+cpu\nRUN pip install torch==${TORCH}\n",
            "ARG TORCH=2.13.0+cu130\nRUN pip install torch==${TORCH}\n",
            id="argument of a Dockerfile",
        ),
        pytest.param(
            'torch = {version = "2.13.0+cpu"}\n', 'torch = {version = "2.13.0+cu130"}\n', id="table of poetry"
        ),
        pytest.param("torch \\\n  == \\\n  2.13.0+cpu\n", "torch \\\n  == \\\n  2.13.0+cu130\n", id="several lines"),
        pytest.param("other==12.13.0+cpu  # 2.13.0+cpu\n", "other==12.13.0+cpu  # 2.13.0+cpu\n", id="another version"),
    ],
)
def test_a_version_that_names_a_build_is_changed_wherever_it_is(before: str, after: str) -> None:
    assert with_versions(before, CU130, {"2.13.0+cpu": "2.13.0+cu130"}) == after


@pytest.mark.parametrize(
    "line",
    [
        "torch @ https://download.pytorch.org/whl/cpu/torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl",
        "torchaudio==2.11.0+cpu",
    ],
)
def test_a_file_that_would_be_changed_by_half_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(f"# +cpu\ntorch==2.13.0+cpu\n{line}\n")
    with pytest.raises(UsageError, match=r"requirements\.txt, line 3, asks for another build \(.*cpu\)"):
        edits_of(PLAN, [], tmp_path)
    (tmp_path / "requirements.txt").write_text(f"{line}\n")
    assert edits_of(PLAN, [], tmp_path) == ()


COMPOSE = """\
# the project
services:
  web:
    image: nginx
  train:  # on the GPU

    # PyTorch
    image: pytorch/pytorch
    volumes: [.:/app]
volumes:
  train:
"""


def test_a_service_gets_the_gpu() -> None:
    after = with_gpu(COMPOSE, "train")
    assert yaml.safe_load(after)["services"]["train"]["gpus"] == "all"
    assert after.replace("    gpus: all\n", "") == COMPOSE
    assert "gpus" not in yaml.safe_load(after)["services"]["web"]


def test_a_service_that_another_one_waits_for() -> None:
    waits = "services:\n  web:\n    depends_on:\n      train:\n        condition: x\n"
    assert with_gpu(f"{waits}  train:\n    image: y\n", "train") == f"{waits}  train:\n    gpus: all\n    image: y\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("services:\n  train: {image: x}\n", id="in one line"),
        pytest.param("services:\n  train:\n    deploy: {}\n", id="it has a reservation"),
        pytest.param("services:\n  train:\n    <<: *base\n", id="merged"),
        pytest.param("volumes:\n  train:\n    x: y\n", id="no service"),
        pytest.param("services:\n  other:\n    image: x\n", id="another service"),
        pytest.param("", id="empty"),
    ],
)
def test_a_compose_file_that_is_left_alone(text: str) -> None:
    assert with_gpu(text, "train") == text


def test_edits_are_diffs_and_written_once(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(b"# ours\r\ntorch==2.12.0\r\n")
    (tmp_path / "requirements-dev.txt").write_text("pytest==8\n")
    (tmp_path / "compose.yaml").write_text(COMPOSE)
    first, second = edits_of(PLAN, ["train"], tmp_path)
    assert [edit.path.name for edit in (first, second)] == ["requirements.txt", "compose.yaml"]
    assert first.diff[-2:] == ("-torch==2.12.0", "+torch==2.13.0+cu130")
    first.write()
    assert (tmp_path / "requirements.txt").read_bytes() == b"# ours\r\ntorch==2.13.0+cu130\r\n"
    with pytest.raises(UsageError, match="changed meanwhile"):
        first.write()
    assert [edit.path.name for edit in edits_of(PLAN, [], tmp_path)] == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a link away")
def test_a_link_of_another_user_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("torch==2.12.0\n")
    link = tmp_path / "requirements.txt"
    link.symlink_to(tmp_path / "mine.txt")
    os.chown(link, 12345, 12345, follow_symlinks=False)
    assert edits_of(PLAN, [], tmp_path) == ()


def test_what_cannot_be_read_is_left_alone_and_named(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes("# für alle\ntorch==2.12.0\n-r gpu.txt\n".encode("latin-1"))
    (tmp_path / "requirements-large.txt").write_bytes(b"torch==2.12.0\n" + b"#" * (1 << 20))
    (tmp_path / "requirements-dev.txt").write_text("-r pins.in\n")
    (tmp_path / "pins.in").write_bytes(b"\xff")
    (tmp_path / "compose.yaml").write_bytes(b"\xff")
    (tmp_path / "Dockerfile").mkdir()
    os.mkfifo(tmp_path / "constraints.txt")
    assert edits_of(PLAN, ["train"], tmp_path) == ()
    reasons = {
        "constraints.txt": "not a regular file",
        "pins.in": "it is not UTF-8 text",
        "requirements-large.txt": "larger than 1,048,576 bytes",
        "requirements.txt": "it is not UTF-8 text",
    }
    named = [f"{name} was not read, and stays as it is: {why}" for name, why in reasons.items()]
    assert [*unread_files([], tmp_path)] == named
    compose = "compose.yaml was not read, and stays as it is: it is not UTF-8 text"
    assert [*unread_files(["train"], tmp_path)] == [*named, compose]


def test_a_file_that_requirements_include_is_changed_too(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "pins").mkdir(parents=True)
    (project / "requirements.txt").write_text("-r pins/gpu.txt\n-c ../outside.txt\n--requirement=gone.txt\n")
    (project / "pins" / "gpu.txt").write_text("torch==2.12.0\n-r ../requirements.txt\n")
    (tmp_path / "outside.txt").write_text("torch==2.12.0\n")
    assert [edit.path for edit in edits_of(PLAN, [], project)] == [project / "pins" / "gpu.txt"]


def test_what_a_requirements_file_is_compiled_from_is_changed_too(tmp_path: Path) -> None:
    for name in ("requirements.txt", "requirements.in", "requirements-gpu.in"):
        (tmp_path / name).write_text("torch==2.13.0+cpu  # ours\n")
    names = ["requirements-gpu.in", "requirements.in", "requirements.txt"]
    assert [edit.path.name for edit in edits_of(PLAN, [], tmp_path)] == names


def test_a_file_with_hashes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(f"torch==2.12.0 \\\n    --hash=sha256:{'0' * 64}\n")
    with pytest.raises(UsageError, match=r"requirements\.txt has package hashes"):
        edits_of(PLAN, [], tmp_path)
    (tmp_path / "requirements.txt").write_text(f"numpy==2.0 \\\n    --hash=sha256:{'0' * 64}\n")
    assert edits_of(PLAN, [], tmp_path) == ()
