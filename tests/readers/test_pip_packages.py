"""The reader of pip's, uv's and Poetry's lists, and of what pip says while it installs."""

import pytest

from gpudoctor.model import Package, PackageVersion
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.pip_packages import read
from gpudoctor.readers.text import clean_text

WHOLE = """\
Package            Version        Editable project location
------------------ -------------- -------------------------
absl-py            2.1.0
attrs              23.1.0
certifi            2023.7.22
filelock           3.12.2
idna               3.4
Jinja2             3.1.2
myproj             0.1            /srv/myproj
numpy              1.26.0
nvidia-cudnn-cu12  8.9.2.26
torch              2.1.1+cu118
torchvision        0.16.1+cu118
urllib3            2.0.4
wheel              0.41.1
"""


def facts(text: str) -> Facts:
    return read(clean_text(text, "report.txt"))


def versions(text: str) -> dict[str, str]:
    found = facts(text)
    return {item.name: item.version.text for item in found["python"].packages or ()} if "python" in found else {}


def test_a_whole_list_keeps_what_bears_on_gpus_and_shows_that_cupy_is_not_there() -> None:
    found = facts(WHOLE)
    assert set(versions(WHOLE)) == {"numpy", "nvidia-cudnn-cu12", "torch", "torchvision"}
    assert (found["torch"].installed, found["torch"].version) == (True, PackageVersion("2.1.1+cu118"))
    assert (found["cupy"].distributions, found["cupy"].numpy_version) == ((), PackageVersion("1.26.0"))


@pytest.mark.parametrize("rule", ["------- -------\n", ""])
def test_the_first_package_counts_with_and_without_a_rule(rule: str) -> None:
    table = f"Package Version\n{rule}torch   2.9.0\nnumpy   2.0.0\nxformers 0.0.33\n"
    assert versions(table) == {"torch": "2.9.0", "numpy": "2.0.0", "xformers": "0.0.33"}
    names = [
        *("attrs", "filelock", "fsspec", "idna", "jinja2", "markupsafe", "mpmath", "networkx", "numpy"),
        *("pillow", "sympy", "urllib3"),
    ]
    rows = "".join(f"{name} 1.0\n" for name in names)
    assert facts(f"Package Version\n{rule}{rows}")["torch"].installed is False  # attrs stands before cupy
    assert "torch" not in facts(f"Package Version\n{rule}{rows.partition(chr(10))[2]}")


def test_a_whole_list_without_torch() -> None:
    assert facts(WHOLE.replace("torch", "tox"))["torch"].installed is False


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\n".join(WHOLE.splitlines()[:-4]), id="cut off before it"),
        pytest.param("\n".join(WHOLE.replace("torch", "tox").splitlines()[2:]), id="without the header"),
        pytest.param("\n".join(WHOLE.splitlines()[:4]), id="short"),
    ],
)
def test_a_part_of_a_list_shows_nothing_of_what_it_leaves_out(text: str) -> None:
    found = facts(text)
    assert "cupy" not in found
    assert "torch" not in found or found["torch"].installed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("torch==2.1.1+cu118\ntorchaudio==2.1.1+cu118\n", "2.1.1+cu118", id="freeze"),
        pytest.param(
            "torch @ file:///w/torch-2.4.0%2Bcu121-cp311-cp311-linux_x86_64.whl#sha256=0", "2.4.0+cu121", id="@"
        ),
        pytest.param('[{"name": "six", "version": "1"}, {"name": "torch", "version": "2.2.0"}]', "2.2.0", id="JSON"),
        pytest.param("Name: torch\nVersion: 2.0.1+cu117\nSummary: T\nLocation: /usr/lib/x\n", "2.0.1+cu117", id="show"),
        pytest.param("Successfully installed filelock-3.1 torch-2.3.1 torchvision-0.18.1", "2.3.1", id="installed"),
        pytest.param(
            "Requirement already satisfied: torch>=2 in ./v/site-packages (from -r r.txt (line 3)) (2.0.1)",
            "2.0.1",
            id="satisfied",
        ),
        pytest.param(" - torch==2.3.1\n + torch==2.6.0+cu124\n", "2.6.0+cu124", id="uv's changes"),
        pytest.param(
            "Successfully uninstalled torch-2.0.1\nSuccessfully installed torch-2.3.1", "2.3.1", id="replaced"
        ),
        pytest.param("- torch                     2.1.2\n- cuda 11.7\n", "2.1.2", id="bullets"),
        pytest.param("torch 2.1.2+cpu", "2.1.2+cpu", id="one blank"),
        pytest.param("torch   2.1.2   Tensors and Dynamic neural networks\n", "2.1.2", id="Poetry"),
    ],
)
def test_torch_in_every_form(text: str, expected: str) -> None:
    assert versions(text)["torch"] == expected
    assert facts(text)["torch"].version == PackageVersion(expected)


@pytest.mark.parametrize(
    "text",
    [
        "it works with torch 1.2 but not in numpy 2.",
        "RuntimeError: torch 2.1 was built for CUDA 12.1",
        "see https://download.pytorch.org/whl/cu121/torch-2.3.1 for torch==2.3.1",
        "pip install torch==2.3.1+cu121",
        "torch (!)   2.1.2   Tensors",
        "Successfully uninstalled torch-2.0.1",
        "ERROR: No matching distribution found for torch==1.11.0+cu113",
        "GPU  3090\nepoch   1.5\n",
    ],
)
def test_what_is_no_installed_package(text: str) -> None:
    assert "torch" not in facts(text)


@pytest.mark.parametrize(
    "text", ["requirements.txt:\ntorch==2.1.1\n", "torch==2.1.1\nnumpy>=1.2\n", "-r base.txt\ntorch==2.1.1\n"]
)
def test_a_requirements_file_is_a_wish(text: str) -> None:
    found = facts(text)
    assert "torch" not in found
    assert found["project"].requires("torch").specifier == "==2.1.1"


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("requirements.txt:\ntorch==2.1.1\n", True),
        ("Here they are\nrequirements.txt:\ntorch==2.1.1\n", True),
        ("Here they are\nas asked for\nrequirements.txt:\ntorch==2.1.1\n", False),
        ("torch==2.1.1\nrequirements==1.0\n", False),
    ],
)
def test_the_title_is_one_of_the_first_two_lines(text: str, wish: bool) -> None:
    assert ("project" in facts(text), "torch" in facts(text)) == (wish, not wish)


def test_a_wheel_shows_python_system_and_version() -> None:
    found = facts("Collecting torch==2.3.1\n  Using cached torch-2.3.1-cp310-cp310-win_amd64.whl (159.8 MB)\n")
    assert (found["system"].os, found["python"].version) == ("windows", PackageVersion("3.10"))
    assert found["torch"].version == PackageVersion("2.3.1")


def test_a_wheel_of_an_installation_that_failed_is_not_installed() -> None:
    found = facts(
        "Downloading torch-2.3.1-cp310-cp310-manylinux1_x86_64.whl (7 MB)\nERROR: Could not install packages\n"
    )
    assert "torch" not in found
    assert found["system"].os == "linux"


def test_cupy_of_a_list() -> None:
    found = facts("cupy-cuda11x==12.2.0\nnumpy==1.26.4\n")["cupy"]
    assert (found.platform, found.cuda_major, found.numpy_version) == ("cuda", 11, PackageVersion("1.26.4"))
    assert found.distributions == (Package(name="cupy-cuda11x", version=PackageVersion("12.2.0")),)


def test_two_cupy_packages_are_both_there() -> None:
    found = facts("cupy-cuda11x    12.2.0\ncupy-cuda12x    13.1.0\n")["cupy"]
    assert [item.name for item in found.distributions] == ["cupy-cuda11x", "cupy-cuda12x"]
    assert (found.version, found.cuda_major) == (None, None)
