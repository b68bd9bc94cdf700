"""The reader of typed commands and what they answered."""

from typing import Any

import pytest

from gpudoctor.model import Container, CudaVersion, PackageVersion, PciGpu, SharedLibrary, System
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.shell import read
from gpudoctor.readers.text import clean_text


def facts(text: str) -> Facts:
    return read(clean_text(text, "report.txt"))


def variables(text: str) -> dict[str, str]:
    found = facts(text).get("environment")
    return dict(found.variables) if found else {}


def of(text: str, section: str, *names: str) -> list[Any]:
    return [getattr(facts(text)[section], name) for name in names]


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("$ export CUDA_VISIBLE_DEVICES=1\n", "CUDA_VISIBLE_DEVICES", "1"),
        ("(py35) ~/mnist$ CUDA_VISIBLE_DEVICES=2 python main.py\n", "CUDA_VISIBLE_DEVICES", "2"),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '3'\n", "CUDA_VISIBLE_DEVICES", "3"),
        ('os.environ.setdefault("CUDA_VISIBLE_DEVICES", "4")\n', "CUDA_VISIBLE_DEVICES", "4"),
        ("os.putenv( 'CUDA_VISIBLE_DEVICES', '5')\n", "CUDA_VISIBLE_DEVICES", "5"),
        ("setx CUDA_VISIBLE_DEVICES 6\n", "CUDA_VISIBLE_DEVICES", "6"),
        ('cd x && setx CUDA_PATH "C:\\cuda"\n', "CUDA_PATH", "C:\\cuda"),
        ("cd x && set CUDA_VISIBLE_DEVICES=7\n", "CUDA_VISIBLE_DEVICES", "7"),
        ("cd x; export CUDA_VISIBLE_DEVICES='8'\n", "CUDA_VISIBLE_DEVICES", "8"),
        ("ARG CUDA_VISIBLE_DEVICES=9\n", "CUDA_VISIBLE_DEVICES", "9"),
        ("$ env | grep CUDA\ndeclare -x CUDA_HOME=/usr/local/cuda\n", "CUDA_HOME", "/usr/local/cuda"),
        ("$ printenv LD_LIBRARY_PATH\n/usr/local/cuda/lib64\n", "LD_LIBRARY_PATH", "/usr/local/cuda/lib64"),
        ("set CUDA_PATH=C:\\Program Files\\NVIDIA\\v11.8\n", "CUDA_PATH", "C:\\Program Files\\NVIDIA\\v11.8"),
        ('$env:CUDA_VISIBLE_DEVICES="0"\n', "CUDA_VISIBLE_DEVICES", "0"),
        ("ENV NVIDIA_DRIVER_CAPABILITIES video\n", "NVIDIA_DRIVER_CAPABILITIES", "video"),
        ("$ env | grep CUDA\nCUDA_HOME=/usr/local/cuda\n", "CUDA_HOME", "/usr/local/cuda"),
        ("$ echo $LD_LIBRARY_PATH\n/usr/local/cuda-12.1/lib64:\n", "LD_LIBRARY_PATH", "/usr/local/cuda-12.1/lib64:"),
        ("$ echo $LD_LIBRARY_PATH\n~/cuda/lib64\n", "LD_LIBRARY_PATH", "~/cuda/lib64"),
        ("$ echo $LD_LIBRARY_PATH\n:/usr/lib\n", "LD_LIBRARY_PATH", ":/usr/lib"),
        ("$ echo $CUDA_HOME\nC:\\cuda\n", "CUDA_HOME", "C:\\cuda"),
        ("$ echo $CUDA_HOME\nD:/cuda\n", "CUDA_HOME", "D:/cuda"),
        (
            "export LD_LIBRARY_PATH=/a/lib64\nexport LD_LIBRARY_PATH=/b:$LD_LIBRARY_PATH\n",
            "LD_LIBRARY_PATH",
            "/b:/a/lib64",
        ),
        ("docker run -e NVIDIA_VISIBLE_DEVICES=none a/b\n", "NVIDIA_VISIBLE_DEVICES", "none"),
    ],
)
def test_a_variable(text: str, name: str, value: str) -> None:
    assert variables(text) == {name: value}


SERVICE = "services:\n  app:\n    environment:\n      - DEBUG=true\n{}    deploy:\n"
POD = "kind: Pod\n    env:\n    - name: CUDA_VISIBLE_DEVICES\n      value: {}\n    image: x\n"


@pytest.mark.parametrize(
    ("text", "compose"),
    [
        (SERVICE.format("      - CUDA_VISIBLE_DEVICES=1\n"), True),
        (SERVICE.format('      - "CUDA_VISIBLE_DEVICES=1"\n'), True),
        ("environment:\n  CUDA_VISIBLE_DEVICES: '1'\n", True),
        (POD.format('"1"'), None),
    ],
)
def test_variables_of_a_service_and_of_a_pod(text: str, compose: bool | None) -> None:
    assert variables(text) == {"CUDA_VISIBLE_DEVICES": "1"}
    container = facts(text).get("container")
    assert (container.compose if container else None) == compose


@pytest.mark.parametrize(
    "text",
    [
        SERVICE.format("") + "      - CUDA_VISIBLE_DEVICES=1\n",
        POD.format("0").replace("    env:\n", ""),
        "I tried:\n- CUDA_VISIBLE_DEVICES=1\n- a reboot\n",
    ],
)
def test_a_list_that_no_service_reads(text: str) -> None:
    assert variables(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n",
        "memory is large try setting\nPYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\nto avoid fragmentation\n",
        "You can export CUDA_HOME=/usr/local/cuda\n",
        "https://example.org/?CUDA_HOME=/x\n",
        "set CUDA_VISIBLE_DEVICES to 0\n",
        "$ echo $LD_LIBRARY_PATH\n\n",
        "$ echo $LD_LIBRARY_PATH\nthen I tried it again\n",
        "$ echo $CUDA_HOME\nnothing: as I thought\n",
        "export MY_TOKEN=1\n",
    ],
)
def test_what_sets_no_variable(text: str) -> None:
    assert variables(text) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "sudo docker run --gpus all --rm -it --shm-size=8g nvidia/cuda:11.4.2-base-ubuntu18.04 bash\n",
            Container(
                docker_installed=True,
                engine="docker",
                image="nvidia/cuda:11.4.2-base-ubuntu18.04",
                image_cuda_version=CudaVersion(11, 4),
                gpus_requested=True,
                shm_size_bytes=8 * 2**30,
                arguments=(
                    *("--gpus", "all", "--rm", "-it", "--shm-size=8g", "nvidia/cuda:11.4.2-base-ubuntu18.04", "bash"),
                ),
            ),
        ),
        (
            "docker run -it \\\n  -v $PWD:/w --ipc host \\\n  my/app:1 python x.py\n",
            Container(
                docker_installed=True,
                engine="docker",
                image="my/app:1",
                gpus_requested=False,
                arguments=("-it", "-v", "$PWD:/w", "--ipc", "host", "my/app:1", "python", "x.py"),
            ),
        ),
        (
            "docker run --runtime=nvidia\n",
            Container(docker_installed=True, engine="docker", gpus_requested=True, arguments=("--runtime=nvidia",)),
        ),
        ("docker run --rm -it\n", Container(docker_installed=True, engine="docker", arguments=("--rm", "-it"))),
        (
            "docker run --rm -e KEY=x a/b\n",
            Container(docker_installed=True, engine="docker", image="a/b", gpus_requested=False),
        ),
        ("docker run <image_name>\n", Container(docker_installed=True, engine="docker", gpus_requested=False)),
        (
            "podman run --device nvidia.com/gpu=all a/b\n",
            Container(
                podman_installed=True,
                engine="podman",
                image="a/b",
                gpus_requested=True,
                arguments=("--device", "nvidia.com/gpu=all", "a/b"),
            ),
        ),
        ("singularity exec x.sif python t.py\n", Container(engine="singularity", image="x.sif", gpus_requested=False)),
        ("docker compose -f a.yml up --build\n", Container(engine="docker", compose=True, docker_installed=True)),
    ],
)
def test_how_a_container_was_started(text: str, expected: Container) -> None:
    assert facts(text)["container"] == expected


@pytest.mark.parametrize(
    "options",
    [
        "-e LOGIN=hunter2",
        "--env=LOGIN=hunter2",
        "-eLOGIN=hunter2",
        "-ite LOGIN=hunter2",
        "-u alice",
        "--hostname corp",
        "-v /home/alice:/x",
        "-w /alice",
    ],
)
def test_what_is_personal_in_a_command_keeps_all_of_it_out(options: str) -> None:
    assert facts(f"docker run --rm {options} a/b\n")["container"].arguments is None


def test_the_prompt_of_a_container() -> None:
    assert of("root@098b49afe624:/# nvidia-smi\n", "system", "container", "os") == ["docker", "linux"]
    assert "system" not in facts("root@lab:/# nvidia-smi\n")


def test_a_base_image() -> None:
    text = "FROM golang:1.22 AS build\nFROM pytorch/pytorch:2.1.0-cuda11.8-cudnn8-devel\n"
    assert of(text, "container", "image_cuda_version") == [CudaVersion(11, 8)]


LSPCI = "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)\n"


def test_lspci() -> None:
    gpu = PciGpu(address="0000:01:00.0", vendor="nvidia", device_id="", name="NVIDIA GeForce RTX 3090")
    assert facts("$ lspci | grep -i nvidia\n" + LSPCI)["system"].pci_gpus == (gpu,)


def test_lspci_with_numbers_and_drivers() -> None:
    text = "01:00.0 3D controller [0302]: NVIDIA Corporation GP108M [GeForce MX150] [10de:1d10] (rev a1)\n"
    (gpu,) = facts(text + "\tKernel driver in use: nouveau\n")["system"].pci_gpus
    assert (gpu.device_id, gpu.name, gpu.bound_driver) == ("1D10", "NVIDIA GeForce MX150", "nouveau")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("$ lspci | grep -i nvidia\n$ python x.py\n", (), id="no answer"),
        pytest.param("$ lspci | grep -i nvidia\n", None, id="cut off"),
        pytest.param("00:02.0 VGA compatible controller: Intel Corporation UHD 620 (rev 07)\n", None, id="only a part"),
    ],
)
def test_no_nvidia_gpu_in_a_list(text: str, expected: tuple[PciGpu, ...] | None) -> None:
    assert facts(text).get("system", System()).pci_gpus == expected


def test_kernel_modules() -> None:
    text = (
        "$ lsmod | grep nvidia\n$ lsmod | grep nouveau\nnouveau  1949696  0\n$ mokutil --sb-state\nSecureBoot enabled\n"
    )
    assert of(text, "driver", "module_loaded", "nouveau_loaded") == [False, True]
    assert of(text, "system", "secure_boot") == [True]
    assert "driver" not in facts("$ lsmod | grep nvidia\n")


def test_dkms_of_another_kernel() -> None:
    text = (
        "Linux host 5.15.0-91-generic #101-Ubuntu SMP Tue x86_64 x86_64 x86_64 GNU/Linux\n"
        "nvidia, 535.54.03, 5.15.0-84-generic, x86_64: installed\n"
    )
    assert of(text, "driver", "dkms", "module_built_for_kernel") == [True, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Linux h 5.15.90.1-microsoft-standard-WSL2 #1 SMP Fri x86_64 x86_64 GNU/Linux\n", ("linux", 2)),
        ("Linux h 6.5.0-35-generic #35~22.04.1 SMP x86_64 GNU/Linux\n", ("linux", 0)),
        ("WSL version: 2.0.14.0\nKernel version: 5.15.133.1\n", ("linux", 2)),
        ("Microsoft Windows [Version 10.0.19045.2965]\n", ("windows", None)),
        ("(base) C:\\work\\x>python run.py\n", ("windows", None)),
    ],
)
def test_system(text: str, expected: tuple[str, int | None]) -> None:
    assert tuple(of(text, "system", "os", "wsl")) == expected


def test_os_release_and_compiler() -> None:
    text = 'ID=ubuntu\nVERSION_ID="22.04"\ngcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0\nPython 3.10.12\n'
    assert of(text, "system", "distribution", "distribution_version") == ["ubuntu", "22.04"]
    assert of(text, "toolkit", "host_compiler", "host_compiler_version") == ["gcc", (11, 4, 0)]
    assert of(text, "python", "version") == [PackageVersion("3.10.12")]


AFTER_ONE_ANOTHER = "import torch\nprint(torch.cuda.is_available())\nprint(torch.version.cuda)\nFalse\n11.8\n"
IN_ONE_LINE = 'python -c "import torch; print(torch.__version__, torch.cuda.is_available())"\n2.3.0+cu121 False\n'
ON_AMD = (
    'python -c "import torch; print(torch.__version__, torch.version.hip, torch.cuda.is_available(), '
    'torch.cuda.get_device_name(0)); x = 1"\n2.7.0+rocm6.3 6.3.42131-fa1d09cbd True AMD Instinct MI210\n'
)
WITH_MORE = "print(torch.version.cuda, torch.cuda.is_available(), x.device)\n12.4 True cuda:0\n"
WITH_A_WARNING = (
    ">>> torch.cuda.is_available()\n/x/torch/cuda/__init__.py:52: UserWarning: CUDA\n  return torch._C\nFalse\n"
)


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        (">>> torch.__version__\n'2.1.0+cpu'\n", ("version",), [PackageVersion("2.1.0+cpu")]),
        (AFTER_ONE_ANOTHER, ("available", "cuda_version"), [False, CudaVersion(11, 8)]),
        (IN_ONE_LINE, ("version", "available"), [PackageVersion("2.3.0+cu121"), False]),
        (ON_AMD, ("hip_version", "device_names"), ["6.3.42131-fa1d09cbd", ("AMD Instinct MI210",)]),
        (WITH_MORE, ("cuda_version", "available"), [CudaVersion(12, 4), True]),
        (">>> torch.cuda.get_arch_list()\n['sm_50', 'sm_86']\n", ("architectures",), [("sm_50", "sm_86")]),
        ("'torch.cuda.is_available()' always returns 'false' in wsl.\n", ("available",), [False]),
        (WITH_A_WARNING, ("available",), [False]),
        ("`torch.cuda.is_available() `\nfalse\n", ("available",), [False]),
        ('print(f"CUDA: {torch.cuda.is_available()}")  # Returns False\n', ("available",), [False]),
        (">>> torch.cuda.device_count()\n0\n", ("device_count",), [0]),
    ],
)
def test_a_session(text: str, names: tuple[str, ...], expected: list[Any]) -> None:
    assert of(text, "torch_runtime", *names) == expected


def test_no_cuda_is_a_build_for_the_cpu_unless_it_may_be_another_vendors() -> None:
    text = ">>> print(torch.version.cuda)\nNone\n"
    assert of(text, "torch", "build") == ["cpu"]
    assert of("ROCm 6.0\n" + text, "torch", "build") == [None]


@pytest.mark.parametrize(
    "text",
    [
        "if torch.cuda.is_available() returns False then install it\n",
        'device = "cuda" if torch.cuda.is_available() else "cpu"\nFalse\n',
        "assert torch.cuda.is_available() == True\n",
        "torch.cuda.is_available()\nTraceback (most recent call last):\n",
    ],
)
def test_what_answers_nothing(text: str) -> None:
    assert "torch_runtime" not in facts(text)


def test_a_library_from_ld_library_path() -> None:
    shown = "$ ldd x.so\n  libnvJitLink.so.12 => /opt/cuda/lib64/libnvJitLink.so.12 (0x7f)\n"
    text = "$ echo $LD_LIBRARY_PATH\n/opt/cuda/lib64\n" + shown
    library = SharedLibrary(soname="libnvJitLink.so.12", path="/opt/cuda/lib64/libnvJitLink.so.12")
    assert of(text, "toolkit", "library_path_libraries") == [(library,)]
    assert "toolkit" not in facts(text.replace("LD_LIBRARY_PATH", "HOME"))


def test_device_nodes_and_shared_memory() -> None:
    text = (
        "crw-rw---- 1 root video 195,   0 Nov  1 10:00 /dev/nvidia0\nshm              64M     0   64M   0% /dev/shm\n"
    )
    (node,) = of(text, "driver", "device_files")[0]
    assert (node.path, node.mode) == ("/dev/nvidia0", "660")
    assert of(text, "system", "shm_total_bytes") == [64 * 2**20]


@pytest.mark.parametrize(
    ("line", "secure_boot"),
    [
        ("SecureBoot enabled", True),
        ("SecureBoot disabled", False),
        ("Secure Boot: enabled (user)", True),
        ("Secure Boot: disabled (setup)", False),
    ],
)
def test_secure_boot(line: str, secure_boot: bool) -> None:
    assert of(f"$ mokutil --sb-state\n{line}\n", "system", "secure_boot") == [secure_boot]


UNAME = "Linux box 6.8.0-45-generic #45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024 x86_64 GNU/Linux\n"


@pytest.mark.parametrize(
    ("line", "uname", "built"),
    [
        ("nvidia/550.120, 6.8.0-45-generic, x86_64: installed", UNAME, True),
        ("nvidia/550.120, 6.8.0-44-generic, x86_64: installed", UNAME, False),
        ("nvidia/550.120, 6.8.0-45-generic, x86_64: built", UNAME, False),
        ("nvidia/550.120: added", UNAME, False),
        ("nvidia/550.120, 6.8.0-45-generic, x86_64: installed", "", None),
    ],
)
def test_dkms_status(line: str, uname: str, built: bool | None) -> None:
    text = f"{uname}$ dkms status\n{line}\n"
    assert of(text, "driver", "installed", "dkms", "module_built_for_kernel") == [True, True, built]


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("nvidia  1949696  2 nvidia_uvm\n", [True, None, None]),
        ("$ lsmod | grep nvidia\nnvidia_uvm  1949696 0\nnvidia  1949696  2 nvidia_uvm\n", [True, True, None]),
        ("$ lsmod | grep nvidia\nnvidia  1949696  0\n$ ls\n", [True, False, None]),
        ("$ lsmod | grep nvidia\n$ lsmod | grep nouveau\nnouveau  1949696  0\n$ ls\n", [False, None, True]),
        ("$ lsmod | grep nvidia\n$ lsmod | grep nouveau\n$ ls\n", [False, None, False]),
    ],
)
def test_which_modules_are_loaded(listed: str, expected: list[bool | None]) -> None:
    assert of(listed, "driver", "module_loaded", "uvm_loaded", "nouveau_loaded") == expected


@pytest.mark.parametrize("refused", ["unset CUDA_VISIBLE_DEVICES", "export CUDA_VISIBLE_DEVICES=0"])
def test_a_command_that_the_shell_refuses_changes_no_variable(refused: str) -> None:
    text = f"$ echo $CUDA_VISIBLE_DEVICES\n-1\n$ {refused}\n-bash: CUDA_VISIBLE_DEVICES: readonly variable\n"
    assert variables(text) == {"CUDA_VISIBLE_DEVICES": "-1"}
