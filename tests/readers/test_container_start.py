"""The reader of commands that start containers."""

from typing import Any

import pytest

from gpudoctor.model import Container, CudaVersion
from gpudoctor.readers.container_start import (
    bytes_of,
    cuda_of_image,
    is_image,
    joined_lines,
    known_variables,
    read_starts,
)
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text


def starts(text: str) -> list[Facts]:
    return list(read_starts(clean_text(text, "report.txt")))


def container(text: str) -> Container:
    found: Container = starts(text)[0]["container"]
    return found


# Source: https://docs.docker.com/reference/cli/docker/container/run/; --hooks-dir is Podman's.
VALUED = """
    -v -p -e -w -u -h -m -l -a --volume --publish --env --workdir --user --hostname --memory --label --name
    --network --net --env-file --mount --entrypoint --restart --add-host --cap-add --cap-drop --cpus --cpuset-cpus
    --device --gpus --ipc --pid --pull --platform --runtime --security-opt --shm-size --stop-signal --tmpfs
    --ulimit --userns --uts --volumes-from --log-driver --log-opt --group-add --memory-swap --device-cgroup-rule
    --cgroupns --annotation --expose --ip --dns --domainname --link --cidfile --health-cmd --oom-score-adj
    --hooks-dir
"""


@pytest.mark.parametrize("option", VALUED.split())
def test_the_word_after_an_option_is_its_value_and_not_the_image(option: str) -> None:
    assert container(f"docker run {option} value my/app:1 nvidia-smi\n").image == "my/app:1"
    assert container(f"docker run {option}=value my/app:1 nvidia-smi\n").image == "my/app:1"


@pytest.mark.parametrize("end", [".", ", and it fails", "!", "`."])
def test_the_end_of_a_sentence_is_not_part_of_the_image(end: str) -> None:
    assert container(f"I start it with docker run --gpus all -it my/app{end}\n").image == "my/app"


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("A container started with docker run --gpus all trains for some hours", ""),
        ("A container started with `docker run --gpus all` trains for some hours", ""),
        ("I use `docker run --gpus all ubuntu nvidia-smi` and it hangs", "ubuntu"),
        ("I use docker run --gpus all my/app:2 and it hangs", "my/app:2"),
        ("$ docker run --gpus all trainer", "trainer"),
    ],
)
def test_a_word_of_a_sentence_is_not_the_image(text: str, image: str) -> None:
    assert container(f"{text}\n").image == (image or None)


@pytest.mark.parametrize("option", ["-it", "--rm", "-d", "--privileged", "--init"])
def test_an_option_without_a_value(option: str) -> None:
    assert container(f"docker run {option} my/app:1 nvidia-smi\n").image == "my/app:1"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("docker run --gpus all a/b", True),
        ("docker run --gpus 0 a/b", False),
        ("docker run --gpus none a/b", False),
        ("docker run --runtime nvidia a/b", True),
        ("docker run --runtime runc a/b", False),
        ("docker run --device nvidia.com/gpu=all a/b", True),
        ("docker run --device /dev/fuse a/b", False),
        ("docker run --device /dev/kfd a/b", None),
        ("nvidia-docker run a/b", True),
        ("podman run --gpus all a/b", None),
        ("podman run --gpus all --runtime nvidia a/b", True),
        ("podman run a/b", False),
        ("docker run <image>", False),
        ("docker run $IMAGE", False),
        ("docker run {image}", False),
        ("docker run [OPTIONS]", False),
        ("docker run --rm", None),
        ("singularity exec --nv x.sif", True),
        ("apptainer exec --nvccli x.sif", True),
        ("singularity run x.sif", False),
    ],
)
def test_whether_a_gpu_was_asked_for(command: str, expected: bool | None) -> None:
    assert container(f"{command}\n").gpus_requested is expected


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("docker run a/b", ("docker", True, None)),
        ("nerdctl run a/b", ("docker", True, None)),
        ("podman run a/b", ("podman", None, True)),
        ("singularity run x.sif", ("singularity", None, None)),
    ],
)
def test_the_engine(command: str, engine: tuple[str, bool | None, bool | None]) -> None:
    found = container(f"{command}\n")
    assert (found.engine, found.docker_installed, found.podman_installed) == engine


def test_the_last_command_comes_first() -> None:
    found = starts("docker run a/b:1\ndocker run a/b:2\ndocker run a/b:3\n")
    assert [facts["container"].image for facts in found] == ["a/b:3", "a/b:2", "a/b:1"]


def test_an_example_starts_nothing() -> None:
    assert starts("A command such as docker run a/b would do\n") == []
    assert starts("for example docker run a/b\n") == []


def test_a_shell_without_nvidia_smi_runs_in_another_container() -> None:
    commands = "docker run --gpus all a/b:2 python x.py\ndocker run --gpus all a/b:1 nvidia-smi\n"
    images = [facts["container"].image for facts in starts(commands)]
    without = [facts["container"].image for facts in starts(f"{commands}bash: line 1: nvidia-smi: command not found\n")]
    assert (images, without) == (["a/b:1", "a/b:2"], ["a/b:2"])


@pytest.mark.parametrize("option", ["-e", "--env"])
def test_variables_that_a_container_was_given(option: str) -> None:
    found = starts(
        f"docker run {option} NVIDIA_VISIBLE_DEVICES='all' {option} HOME=/x {option} CUDA_VISIBLE_DEVICES a/b\n"
    )
    assert [dict(facts["environment"].variables) for facts in found if "environment" in facts] == [
        {"NVIDIA_VISIBLE_DEVICES": "all"}
    ]


def test_the_first_value_of_a_variable_counts() -> None:
    assert known_variables([("CUDA_HOME", "/a"), ("CUDA_HOME", "/b"), ("HOME", "/c")]) == {"CUDA_HOME": "/a"}


def test_the_banner_of_nvidias_images() -> None:
    found = starts("==========\n== CUDA ==\n==========\n\nCUDA Version 12.4.1\n")
    assert found == [{"container": Container(image_cuda_version=CudaVersion(12, 4))}]


@pytest.mark.parametrize("end", ["\\", " ^", " `"])
def test_lines_that_are_joined(end: str) -> None:
    assert [line.split() for line in joined_lines([f"a{end}", f"b{end}  ", "c", "d"])] == [["a", "b", "c"], ["d"]]


def test_a_last_line_that_goes_on_is_kept() -> None:
    assert list(joined_lines(["a \\"])) == ["a  "]
    assert list(joined_lines(["a"])) == ["a"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia/cuda:12.2.2-devel", CudaVersion(12, 2)),
        ("cuda:11.8", CudaVersion(11, 8)),
        ("nvcr.io/nvidia/cudagl:11.4.2-base", CudaVersion(11, 4)),
        ("pytorch:2.1.0-cuda11.8-cudnn8", CudaVersion(11, 8)),
        ("a/b:cuda-12.1", CudaVersion(12, 1)),
        ("a/b:cu121", CudaVersion(12, 1)),
        ("a/b:1.0-cu118-py3", CudaVersion(11, 8)),
        ("a/b:cu139", CudaVersion(13, 9)),
        ("a/b:cu149", None),
        ("a/b:1.0", None),
        ("a/barracuda:1.0", None),
    ],
)
def test_the_cuda_version_that_an_image_is_named_by(name: str, expected: CudaVersion | None) -> None:
    assert cuda_of_image(name) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("1073741824", 2**30),
        ("7b", 7),
        ("64k", 64 * 2**10),
        ("64M", 64 * 2**20),
        ("16gb", 16 * 2**30),
        ("8GiB", 8 * 2**30),
        ("2t", 2 * 2**40),
        (" 1.5g ", 2**30),
        ("", None),
        ("half", None),
    ],
)
def test_sizes(size: str, expected: int | None) -> None:
    assert bytes_of(size) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a/b:1", True), ("host:5000/a/b@sha256:0123456789", True), ("a b", False), ("<image>", False), ("", False)],
)
def test_names_of_images(name: str, expected: bool) -> None:
    assert is_image(name) is expected


@pytest.mark.parametrize(
    ("command", "image"),
    [
        ("docker run 'a/b:1' x", "a/b:1"),
        ("docker run -v '/a b:/c' a/b:1 x", "a/b:1"),
        ("docker run <image> x", None),
        ("singularity exec --nv -B /data a/b:1", None),
        ("docker run --gpus", None),
    ],
)
def test_the_image(command: str, image: str | None) -> None:
    found: Any = container(f"{command}\n").image
    assert found == image


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("docker restart fixes it for some hours", None),
        ("a docker restart helps, docker exec works, and docker stop the container", None),
        ("It is lost after hours, docker restart helps.", None),
        ("docker restart always fixes it for some hours", None),
        ("I tried `docker restart web`, and it is lost again", "web"),
        ("docker logs web-1 2>&1 | tail", "web-1"),
        ("docker restart worker", "worker"),
        ("docker exec -it fixes-1 nvidia-smi", "fixes-1"),
    ],
)
def test_words_after_a_command_in_a_sentence_are_no_name(said: str, name: str | None) -> None:
    names = [found["container"].name for found in read_starts(clean_text(said, "report.txt")) if "container" in found]
    assert names == ([] if name is None else [name])


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("docker run -it app:1 bash", ("-it", "app:1", "bash")),
        ("gpuuser@ws7:~$ docker run -it app:1 bash", ("-it", "app:1", "bash")),
        ("(base) me@pc:~/a$ docker run app:1", ("app:1",)),
        ('$ docker run -v "$PWD:/work" app:1', ("-v", "$PWD:/work", "app:1")),
        ('$ docker run -v "$(pwd)":/work app:1', ("-v", "$PWD:/work", "app:1")),
        ("# docker run -v ${PWD}/a:/work app:1", ("-v", "$PWD/a:/work", "app:1")),
        ("docker run -v $PWDX:/work app:1", None),
        ("docker run -v '$PWD:/work' app:1", None),
        ("docker run -v $(id):/work app:1", None),
        ("docker run app:1; rm -rf x", None),
        ("I typed docker run app:1", None),
    ],
)
def test_the_arguments_of_a_command_that_somebody_typed(line: str, arguments: tuple[str, ...] | None) -> None:
    assert container(f"{line}\n").arguments == arguments
