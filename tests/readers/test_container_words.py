"""Which words and manifests tell of a container."""

import pytest

from gpudoctor.model import Container
from gpudoctor.readers.container_words import read
from gpudoctor.readers.report import read_texts
from gpudoctor.readers.text import clean_text

POD = """apiVersion: v1
kind: Pod
spec:
  containers:
    - name: train
      image: ghcr.io/lab/train:3
      {more}
"""


def container(text: str) -> Container | None:
    found: Container | None = read(clean_text(text, "report.txt")).get("container")
    return found


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("It fails inside the running container.", "docker"),
        ("I run it in Docker on Ubuntu", "docker"),
        ("$ docker exec web python a.py", "docker"),
        ("在docker容器里报错", "docker"),
        ("コンテナ内で失敗する", "docker"),
        ("within my podman setup", "podman"),
        ("podman-compose run train", "podman"),
        ("the pod: we deploy on a k3s cluster with k3s", "kubernetes"),
        ("runtimeClassName is missing", "kubernetes"),
        ("nvidia-smi is not there in my pod", "kubernetes"),
    ],
)
def test_the_engine(text: str, engine: str) -> None:
    found = container(text)
    assert found is not None
    assert found.engine == engine


@pytest.mark.parametrize(
    ("text", "cluster"),
    [
        ("we deploy on k3s", "k3s"),
        ("RKE2 v1.30, device plugin in the pod fails", "rke2"),
        ("with k3s and with rke2 in the pod", None),
        ("with kubeadm in the pod", None),
    ],
)
def test_the_cluster(text: str, cluster: str | None) -> None:
    found = container(text)
    assert found is not None
    assert found.cluster == cluster


@pytest.mark.parametrize(
    "text",
    [
        "I use Windows 11 with an RTX 3060.",
        "I installed Docker Desktop.",
        "the container toolkit is installed",
        "a podium, and docking stations",
    ],
)
def test_other_words_show_none(text: str) -> None:
    assert container(text) is None


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        pytest.param("resources: {limits: {nvidia.com/gpu: 1}}", True, id="a GPU"),
        pytest.param("resources:\n        limits:\n          nvidia.com/mig-1g.5gb: 2", True, id="an instance of MIG"),
        pytest.param("resources: {limits: {nvidia.com/gpu: 0}}", False, id="none"),
        pytest.param("resources: {limits: {memory: 8Gi}}", False, id="something else"),
        pytest.param("...", None, id="cut off"),
    ],
)
def test_a_manifest(more: str, asked: bool | None) -> None:
    found = container(POD.format(more=more))
    assert found == Container(engine="kubernetes", image="ghcr.io/lab/train:3", gpus_requested=asked)


def test_a_manifest_of_something_else() -> None:
    assert container("kind: Service\nspec:\n  ports: []") is None


def test_a_dev_container() -> None:
    found = container('{"runArgs": ["--gpus", "all"], "image": "x"}')
    assert found == Container(engine="docker", gpus_requested=True)


@pytest.mark.parametrize(
    "used",
    [
        pytest.param("Allocated resources: nvidia.com/gpu  4  4", id="what kubectl shows"),
        pytest.param("All four are handed out, as planned.", id="in words"),
    ],
)
def test_a_cluster_whose_gpus_are_all_in_use_has_no_fault(used: str) -> None:
    pending = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. "
    found = read_texts([("report.txt", (pending + used).encode())]).symptoms or ()
    assert "container-k8s-insufficient" not in [symptom.kind for symptom in found]
    found = read_texts([("report.txt", pending.encode())]).symptoms or ()
    assert "container-k8s-insufficient" in [symptom.kind for symptom in found]
