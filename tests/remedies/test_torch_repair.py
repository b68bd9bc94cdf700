"""PyTorch that is missing, of the wrong build, or that cannot be imported: what each fix is made into."""

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Device,
    Driver,
    DriverVersion,
    Environment,
    Fix,
    Gpu,
    KnownGpu,
    Package,
    PackageVersion,
    PciGpu,
    Place,
    Python,
    Pytorch,
    Remedy,
    System,
    TorchKernels,
    TorchRequest,
)
from tests.remedies.made import made, made_one, pasted_one

LINUX = System(os="linux", machine="x86_64", glibc="2.39")
MAC, WINDOWS = System(os="darwin", machine="arm64"), System(os="windows", machine="AMD64")
DRIVER = Driver(version=DriverVersion.parse("580.65.06"))
PYTHON = Python(version=PackageVersion("3.12.3"), executable="/v/bin/python", environment="venv", installer="pip")
CONDA = Python(version=PackageVersion("3.12.3"), executable="/c/bin/python", environment="conda", prefix="/c")
PIP = "/v/bin/python -m pip"
INDEX = "https://download.pytorch.org/whl"


def torch(version: str, **facts: object) -> Pytorch:
    return Pytorch(installed=True, version=PackageVersion(version), **facts)  # type: ignore[arg-type]


FOR_CUDA_13 = torch("2.9.0+cu130", build="cuda", cuda_version=CudaVersion(13, 0))


def first_commands(remedies: tuple[Remedy, ...]) -> list[str]:
    return [next(iter(remedy.commands), "") for remedy in remedies]


@pytest.mark.parametrize(
    ("gpu", "system", "command"),
    [
        pytest.param("NVIDIA L4", LINUX, f"{PIP} install --index-url {INDEX}/cu130 ", id="an NVIDIA GPU"),
        pytest.param("", LINUX, f"{PIP} install --index-url {INDEX}/cpu torch", id="no GPU"),
        pytest.param("", MAC, f"{PIP} install torch", id="a Mac"),
        pytest.param(
            "",
            System(os="linux", pci_gpus=(PciGpu(address="1", device_id="73bf", vendor="amd", name="Navi"),)),
            "",
            id="an AMD GPU",
        ),
    ],
)
def test_the_first_pytorch(gpu: str, system: System, command: str) -> None:
    remedy = made_one(Fix("install-torch-first"), gpu=Gpu(name=gpu), python=PYTHON, system=system, driver=DRIVER)
    assert "".join(remedy.commands[:1]).startswith(command)
    assert bool(remedy.commands) is bool(command)


@pytest.mark.parametrize(
    ("place", "command"),
    [(Place(), "sudo apt-get update"), (Place(in_container=True), "docker run --rm --gpus all ubuntu nvidia-smi")],
)
def test_libcuda_is_the_drivers(place: Place, command: str) -> None:
    system = System(os="linux", distribution="ubuntu")
    assert made_one(Fix("reach-driver-library"), place=place, system=system).commands[0] == command


@pytest.mark.parametrize(("path", "unset"), [("/usr/local/cuda/lib64", True), ("", False)])
def test_a_library_path_is_removed_only_if_it_is_set(path: str, unset: bool) -> None:
    environment = Environment(variables={"LD_LIBRARY_PATH": path})
    remedies = made(Fix("load-own-libraries"), python=PYTHON, environment=environment, pytorch=torch("2.9.0"))
    assert first_commands(remedies) == [
        *(["unset LD_LIBRARY_PATH"] if unset else []),
        f"{PIP} install --force-reinstall torch==2.9.0",
    ]


@pytest.mark.parametrize(
    ("python", "version", "command"),
    [
        (CONDA, "GLIBCXX_3.4.30", "conda install --yes --prefix /c --channel conda-forge libstdcxx-ng"),
        (CONDA, "GLIBC_2.34", ""),
        (PYTHON, "GLIBCXX_3.4.30", ""),
    ],
)
def test_only_conda_has_a_newer_libstdcxx(python: Python, version: str, command: str) -> None:
    remedy = made_one(Fix("get-newer-c-library", version=version), python=python)
    assert first_commands((remedy,)) == [command]


@pytest.mark.parametrize(
    ("capabilities", "runs", "commands"),
    [
        pytest.param(("8.9", "9.0"), (True, False), ["pip", "CUDA_DEVICE_ORDER="], id="one build for both"),
        pytest.param(("6.1", "12.0"), (True, False), ["CUDA_DEVICE_ORDER="], id="no build for both"),
        pytest.param(("3.5",), (False,), [""], id="no build, and none runs"),
    ],
)
def test_a_build_for_all_gpus_or_only_those_that_it_runs_on(
    capabilities: tuple[str, ...], runs: tuple[bool, ...], commands: list[str]
) -> None:
    parsed = tuple(map(ComputeCapability.parse, capabilities))
    gpus = tuple(KnownGpu(name="GPU", capability=one, fact=f"devices[{n}].name") for n, one in enumerate(parsed))
    devices = tuple(Device(nvml_index=n, compute_capability=one) for n, one in enumerate(parsed))
    kernels = TorchKernels(gpus=gpus, runs=runs)
    fix = Fix("install-torch-or-choose-gpus")
    machine = {"python": PYTHON, "system": LINUX, "driver": DRIVER, "pytorch": torch("2.9.0+cu130")}
    for known in ({"devices": devices}, {}):
        found = first_commands(made(fix, torch_kernels=kernels, **machine, **known))
        assert len(found) == len(commands)
        assert all(word in command for word, command in zip(commands, found, strict=True))


@pytest.mark.parametrize(
    ("version", "command"),
    [
        ("2.1.0", f"/c/bin/python -m pip install --index-url {INDEX}/cu121 torch==2.1.0+cu121"),
        ("2.6.0", None),
        ("9.9.0", None),
    ],
)
def test_a_release_that_condas_channel_had_is_kept(version: str, command: str | None) -> None:
    remedies = made(Fix("keep-torch-release"), python=CONDA, pytorch=torch(version))
    assert first_commands(remedies) == ([command] if command else [])


def test_conda_installs_the_cuda_build() -> None:
    remedy = made_one(
        Fix("install-torch-with-conda"), python=CONDA, system=LINUX, driver=DRIVER, pytorch=torch("2.9.0")
    )
    command = "conda install --yes --prefix /c --channel conda-forge pytorch-gpu cuda-version=13"
    assert remedy.commands[0] == command


class TestCompanions:
    @pytest.mark.parametrize(
        ("pytorch", "python", "system", "command"),
        [
            (FOR_CUDA_13, PYTHON, LINUX, f"{PIP} install --index-url {INDEX}/cu130 torchvision==0.24.0+cu130"),
            (torch("2.9.0"), PYTHON, MAC, f"{PIP} install torchvision==0.24.0"),
            (
                torch("2.9.0", conda_build="cuda"),
                CONDA,
                LINUX,
                "conda install --yes --prefix /c pytorch=2.9.0 torchvision=0.24.0",
            ),
        ],
        ids=["pip", "a Mac", "conda"],
    )
    def test_the_one_that_belongs_to_pytorch(
        self, pytorch: Pytorch, python: Python, system: System, command: str
    ) -> None:
        fix = Fix("install-companions", versions={"torchvision": "0.24.0"})
        assert made_one(fix, python=python, system=system, pytorch=pytorch).commands[0] == command

    def test_an_unknown_version_comes_with_pytorch(self) -> None:
        fix = Fix("install-companions", versions={"torchvision": ""})
        cpu = torch("2.9.0", build="cpu")
        assert made_one(fix, python=PYTHON, system=LINUX, pytorch=cpu).commands == ()
        remedy = made_one(fix, python=PYTHON, system=LINUX, driver=DRIVER, pytorch=torch("2.9.0"))
        assert remedy.commands[0].endswith("torch==2.9.0+cu130")

    @pytest.mark.parametrize(
        ("pytorch", "requirements"),
        [(FOR_CUDA_13, "torch==2.9.0+cu130 torchvision==0.24.0+cu130"), (torch("9.9.0"), "torch torchvision")],
    )
    def test_both_from_one_index(self, pytorch: Pytorch, requirements: str) -> None:
        fix = Fix("install-torch-with-companion", companion="torchvision")
        remedy = made_one(fix, python=PYTHON, system=LINUX, driver=DRIVER, pytorch=pytorch)
        assert remedy.commands[:2] == (
            f"{PIP} uninstall -y torch torchvision",
            f"{PIP} install --index-url {INDEX}/cu130 {requirements}",
        )


class TestRequests:
    @pytest.mark.parametrize(
        ("request_", "system", "commands"),
        [
            pytest.param(
                TorchRequest(tool="pip", version=PackageVersion("2.9.0+cu118")),
                LINUX,
                [f"{PIP} install --index-url {INDEX}/cu130 torch==2.9.0+cu130"],
                id="a variant that was not built",
            ),
            pytest.param(
                TorchRequest(tool="pip", version=PackageVersion("2.9.0+cu128")),
                LINUX,
                [f"{PIP} install --index-url {INDEX}/cu128 torch==2.9.0+cu128"],
                id="a variant that was built",
            ),
            pytest.param(
                TorchRequest(tool="pip", version=PackageVersion("2.9.0+cu128")),
                MAC,
                [f"{PIP} install torch==2.9.0"],
                id="a Mac",
            ),
            pytest.param(TorchRequest(tool="pip"), MAC, [f"{PIP} install torch"], id="a Mac, any version"),
            pytest.param(
                TorchRequest(tool="conda", version=PackageVersion("2.9.0")),
                LINUX,
                [
                    "conda install --channel conda-forge pytorch-gpu",
                    f"{PIP} install --index-url {INDEX}/cu130 torch==2.9.0+cu130",
                ],
                id="conda",
            ),
            pytest.param(
                TorchRequest(tool="uv", version=PackageVersion("2.9.0+cu128")),
                LINUX,
                [f"{PIP} install --index-url {INDEX}/cu128 torch==2.9.0+cu128", ""],
                id="uv",
            ),
        ],
    )
    def test_what_an_index_does_not_have(self, request_: TorchRequest, system: System, commands: list[str]) -> None:
        fix = Fix("install-torch-from-other-index")
        remedies = made(fix, torch_request=request_, python=PYTHON, system=system, driver=DRIVER)
        assert first_commands(remedies) == commands

    @pytest.mark.parametrize(
        ("platform", "create", "tool"),
        [
            ("linux_x86_64", "python3.11 -m venv .venv", ".venv/bin/python -m pip install"),
            ("windows_amd64", "py -3.11 -m venv .venv", ".venv\\Scripts\\python.exe -m pip install"),
        ],
    )
    def test_a_python_that_has_a_wheel(self, platform: str, create: str, tool: str) -> None:
        fix = Fix("make-environment-for-torch", platform=platform, specifier=">=2.9")
        python = Python(version=PackageVersion("3.9.0"), installer="pip")
        made_, install, *_ = made_one(fix, python=python).commands
        assert made_ == create
        assert install.startswith(f"{tool} ")
        assert "torch>=2.9" in install

    def test_without_a_requirement_the_build_is_that_of_the_gpu(self) -> None:
        fix = Fix("make-environment-for-torch", platform="linux_x86_64")
        create, install, _ = made_one(fix, python=PYTHON, system=LINUX, driver=DRIVER).commands
        assert create == "python3.12 -m venv .venv"
        assert install.startswith(f".venv/bin/python -m pip install --index-url {INDEX}/cu130 torch==")

    def test_a_platform_without_wheels(self) -> None:
        assert made_one(Fix("make-environment-for-torch", platform="")).commands == ()

    @pytest.mark.parametrize(
        ("version", "platform", "create"),
        [
            ("3.11", "linux_x86_64", "python3.11 -m venv .venv"),
            ("3.11", "win_amd64", "py -3.11 -m venv .venv"),
            ("3.x; rm -rf ~", "linux_x86_64", "python3 -m venv .venv"),
        ],
    )
    def test_the_python_of_a_wheel(self, version: str, platform: str, create: str) -> None:
        _, other = made(Fix("use-python-of-wheel", version=version, platform=platform))
        assert other.commands[0] == create


@pytest.mark.parametrize(
    ("installed", "name", "system", "path"),
    [
        ("/opt/conda", "numpy", LINUX, "/opt/conda/bin/python"),
        ("C:\\conda", "torch", WINDOWS, "C:\\conda\\python.exe"),
        ("C:\\my env", "torch", WINDOWS, '"C:\\my env\\Scripts\\python.exe"'),
    ],
)
def test_the_python_of_the_activated_environment(installed: str, name: str, system: System, path: str) -> None:
    python = Python(active_environment=installed, packages=(Package(name=name, version=PackageVersion("1")),))
    remedy = made_one(Fix("use-activated-python", missing=name, module=name), python=python, system=system)
    assert remedy.commands[1] == f"gpudoctor check --python {path}"


@pytest.mark.parametrize(
    ("system", "source", "renamed", "command"),
    [
        (LINUX, "torch.py", "torch_renamed.py", "mv torch.py torch_renamed.py"),
        (LINUX, "my torch", "my torch_renamed", "mv 'my torch' 'my torch_renamed'"),
        (WINDOWS, "torch.py", "torch_renamed.py", "Move-Item torch.py torch_renamed.py"),
    ],
)
def test_a_file_that_hides_a_module(system: System, source: str, renamed: str, command: str) -> None:
    remedy = pasted_one(
        Fix("rename-shadowing-file", source=source, renamed=renamed, module="torch"), python=PYTHON, system=system
    )
    assert remedy.commands[0] == command


def test_a_build_that_is_unknown_is_explained() -> None:
    unknown, known = (
        made_one(Fix("ask-driver-and-pytorch"), python=PYTHON, pytorch=Pytorch(build=build)) for build in (None, "cuda")
    )
    assert unknown.commands == known.commands
    assert len(unknown.summary) > len(known.summary)
