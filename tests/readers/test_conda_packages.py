"""The reader of conda's lists, of what its solver chose, and of environment files."""

import pytest

from gpudoctor.model import CudaVersion, PackageVersion
from gpudoctor.readers.conda import read
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.text import clean_text


def facts(text: str) -> Facts:
    return read(clean_text(text, "report.txt"))


CPU_ONLY = """\
cpuonly                   2.0                           0    pytorch
pytorch                   1.12.1             py3.9_cpu_0    pytorch
pytorch-mutex             1.0                         cpu    pytorch
"""


@pytest.mark.parametrize(
    ("text", "build", "cuda"),
    [
        pytest.param(CPU_ONLY, "py3.9_cpu_0", None, id="filtered list"),
        pytest.param("pytorch=1.12.1=py3.9_cpu_0\n", "py3.9_cpu_0", None, id="--export"),
        pytest.param(
            "The following NEW packages will be INSTALLED:\n\n"
            "  pytorch            pytorch/linux-64::pytorch-1.12.1-py3.9_cpu_0\n",
            "py3.9_cpu_0",
            None,
            id="solver",
        ),
        pytest.param(
            "    pytorch-1.12.1     |      py3.9_cpu_0         1.2 GB  pytorch\n", "py3.9_cpu_0", None, id="download"
        ),
        pytest.param(
            '[{"build_number": 0, "build_string": "py3.9_cpu_0", "name": "pytorch", "version": "1.12.1"}]',
            "py3.9_cpu_0",
            None,
            id="JSON",
        ),
        pytest.param(
            "  + pytorch   1.12.1  cuda112py39h4e14dd4_201   conda-forge/linux-64   28MB\n",
            "cuda112py39h4e14dd4_201",
            CudaVersion(11, 2),
            id="mamba",
        ),
        pytest.param(
            "  pytorch  1.0.0-py3.7_cuda9.0.176_cudnn7.4.1_1 --> 1.12.1-py3.9_cuda11.6_cudnn8.3.2_0\n",
            "py3.9_cuda11.6_cudnn8.3.2_0",
            CudaVersion(11, 6),
            id="updated",
        ),
    ],
)
def test_the_build_of_pytorch(text: str, build: str, cuda: CudaVersion | None) -> None:
    found = facts(text)
    assert (found["torch"].conda_build, found["torch"].version) == (build, PackageVersion("1.12.1"))
    assert (found["torch"].build, found["torch"].cuda_version) == ("cuda" if cuda else "cpu", cuda)
    assert found["python"].installer == "conda"
    assert [item.name for item in found["python"].packages if item.installer == "conda"].count("torch") == 1


def test_cpuonly_and_its_mutex() -> None:
    assert facts(CPU_ONLY)["torch"].conda_cpuonly is True


def test_a_whole_list_with_prefix_and_python() -> None:
    found = facts(
        "# packages in environment at /opt/conda/envs/work:\n#\n# Name   Version   Build  Channel\n"
        "python                    3.10.14              h955ad1f_1\n"
        "torch                     2.0.1                    pypi_0    pypi\n"
    )
    assert (found["python"].prefix, found["python"].version) == ("/opt/conda/envs/work", PackageVersion("3.10.14"))
    assert [(item.name, item.installer) for item in found["python"].packages] == [("torch", "pip")]
    assert found["torch"].conda_build is None


def test_pytorch_of_conda_and_of_pip_leave_open_which_is_imported() -> None:
    found = facts(CPU_ONLY + "torch                     2.0.1                    pypi_0    pypi\n")["torch"]
    assert (found.installed, found.version, found.build) == (True, None, None)


def test_an_environment_file_asks_and_installs_nothing() -> None:
    found = facts("name: x\nchannels:\n  - pytorch\ndependencies:\n  - python=3.9\n  - pytorch\n  - cudatoolkit=11.3\n")
    assert found["project"].requires("cudatoolkit").specifier == "==11.3.*"
    assert found["project"].requires("torch").source == "report.txt line 6"
    assert "torch" not in found
    assert "python" not in found


def test_a_typed_command_asks() -> None:
    found = facts("conda install pytorch torchvision pytorch-cuda=11.8 -c pytorch -c nvidia\n")
    assert found["project"].requires("pytorch-cuda").specifier == "==11.8.*"


def test_cupy_of_conda() -> None:
    found = facts("cupy   12.2.0  py310h5764c6d_1  conda-forge\ncuda-version   11.8  h70ddcb2_2  conda-forge\n")["cupy"]
    assert (found.platform, found.cuda_major) == ("cuda", 11)


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.1.2 3\n",
        "gcc 9.4.0 ubuntu_1\n",
        "see https://x/pytorch-1.11.0-py3.8\n",
        "RTX 3060 12 0\n",
        "- torch   2.1.2\n",
    ],
)
def test_what_is_no_list_of_conda(text: str) -> None:
    assert facts(text) == {}


HEADER = "# packages in environment at /opt/conda:\n#\n"


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        pytest.param("numpy 1.26.4 0\n", False, id="a number that may be anything"),
        pytest.param("numpy 1.26.4 0 conda-forge\n", True, id="with its channel"),
        pytest.param("numpy 1.26.4 py311_0\n", True, id="with a build"),
        pytest.param(f"{HEADER}numpy 1.26.4 0\n", True, id="below the header of a list"),
        pytest.param(f"{HEADER}- numpy 1.26.4 0\n", False, id="item of a list of something else"),
    ],
)
def test_a_row_of_a_list(text: str, listed: bool) -> None:
    python = facts(text).get("python")
    packages = (python.packages if python is not None else None) or ()
    assert [package.name for package in packages] == (["numpy"] if listed else [])
