"""The PyTorch to install: a build that driver and devices can run, by a command that changes the installation."""

from dataclasses import replace

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Device,
    Driver,
    DriverVersion,
    Package,
    PackageVersion,
    Python,
    Remedy,
    System,
    Torch,
)
from gpudoctor.remedies.torch_install import install_torch, reinstall_torch

LINUX = System(os="linux", machine="x86_64", distribution="ubuntu", glibc="2.39")
AARCH64 = System(os="linux", machine="aarch64", glibc="2.39")
WINDOWS = System(os="windows", machine="AMD64")
VENV = Python(
    version=PackageVersion("3.12.3"),
    executable="/opt/venv/bin/python",
    environment="venv",
    installer="pip",
    packages=(),
)
RTX_4090 = "8.9"
DRIVER_13 = "580.65.06"
DRIVER_12 = "550.54.15"
CPU_ONLY = "2.13.0+cpu"


def packages(**versions: str) -> tuple[Package, ...]:
    return tuple(Package(name=name, version=PackageVersion(version)) for name, version in versions.items())


def devices(*capabilities: str) -> tuple[Device, ...]:
    return tuple(
        Device(nvml_index=index, compute_capability=ComputeCapability.parse(capability))
        for index, capability in enumerate(capabilities)
    )


def advise(
    *,
    torch: str | None = CPU_ONLY,
    driver: str | None = DRIVER_13,
    capabilities: tuple[str, ...] = (RTX_4090,),
    python: Python = VENV,
    system: System = LINUX,
    cuda: CudaVersion | None = None,
) -> Remedy:
    return install_torch(
        python=python,
        system=system,
        driver=Driver(version=DriverVersion.parse(driver) if driver else None),
        devices=devices(*capabilities),
        pytorch=None if torch is None else Torch(version=PackageVersion(torch)),
        cuda=cuda,
    )


def test_the_command_names_interpreter_index_and_local_version_and_the_next_one_verifies() -> None:
    assert advise().commands == (
        "/opt/venv/bin/python -m pip install --index-url https://download.pytorch.org/whl/cu130 torch==2.13.0+cu130",
        '/opt/venv/bin/python -c "import torch; print(torch.__version__, torch.cuda.is_available())"',
    )


def test_the_summary_says_what_fits_and_why() -> None:
    assert advise().summary == (
        "Install PyTorch 2.13.0 built with CUDA 13.0, which fits driver 580.65.06 and compute capability 8.9"
    )


@pytest.mark.parametrize(
    ("torch", "driver", "capabilities", "build"),
    [
        pytest.param(CPU_ONLY, DRIVER_13, ("8.9",), "2.13.0+cu130", id="the user's release, newest CUDA of the driver"),
        pytest.param(CPU_ONLY, DRIVER_12, ("8.9",), "2.13.0+cu126", id="a driver of 12 gets a build for 12"),
        pytest.param("2.9.1+cpu", "535.129.03", ("8.9",), "2.9.1+cu128", id="minor-version compatibility counts"),
        pytest.param("2.9.1+cpu", "560.35.05", ("8.9",), "2.9.1+cu126", id="what the driver offers goes before it"),
        pytest.param("2.7.0+cu118", "580.65.06", ("12.0",), "2.7.0+cu128", id="the patch version is kept too"),
        pytest.param("2.15.0+cu132", DRIVER_13, ("7.0",), "2.14.1+cu126", id="V100: last release with sm_70"),
        pytest.param("2.15.0+cpu", DRIVER_13, ("6.1",), "2.14.1+cu126", id="GTX 1080: last release with sm_60"),
        pytest.param("2.15.0+cpu", "470.256.02", ("3.7",), "2.7.1+cu118", id="K80: last release with sm_37"),
        pytest.param("2.5.1+cu121", DRIVER_13, ("12.0",), "2.14.1+cu130", id="RTX 5090: no 2.5 runs on it"),
        pytest.param("2.13.0+cpu", DRIVER_13, ("7.0", "8.9"), "2.13.0+cu126", id="every device counts"),
        pytest.param("2.13.0+cpu", "595.71.05", ("9.0",), "2.13.0+cu130", id="an experimental build is left alone"),
        pytest.param("2.15.0+cpu", "595.71.05", ("9.0",), "2.15.0+cu132", id="the same CUDA where it is not"),
        pytest.param("2.15.0+cpu", "615.71.09", ("9.0",), "2.15.0+cu132", id="a build that was not seen is left alone"),
        pytest.param("2.13.0+cpu", "620.10", ("9.0",), "2.13.0+cu130", id="a driver newer than the table"),
        pytest.param("1.12.0+cpu", DRIVER_13, ("8.6",), "2.14.1+cu130", id="1.12 has no wheel for Python 3.12"),
        pytest.param(
            None, DRIVER_13, ("8.9",), "2.14.1+cu130", id="not installed: the newest for which there is a torchvision"
        ),
        pytest.param("2.99.0", DRIVER_13, ("8.9",), "2.14.1+cu130", id="newer than the table"),
    ],
)
def test_the_build_advised(torch: str | None, driver: str, capabilities: tuple[str, ...], build: str) -> None:
    remedy = advise(torch=torch, driver=driver, capabilities=capabilities)
    assert f" torch=={build}" in remedy.commands[-2]


def test_another_release_is_said() -> None:
    assert "; 2.15.0+cu132 has no build that fits" in advise(torch="2.15.0+cu132", capabilities=("7.0",)).summary
    assert "; 2.99.0 is not in gpudoctor's table" in advise(torch="2.99.0").summary


def test_the_cuda_version_can_be_given() -> None:
    assert "torch==2.13.0+cu126" in advise(cuda=CudaVersion(12, 6)).commands[0]


def test_a_release_without_the_cuda_version_given_is_left() -> None:
    assert "torch==2.11.0+cu128" in advise(cuda=CudaVersion(12, 8)).commands[0]


class TestUnknown:
    def test_driver_unknown_is_safe_for_old_drivers_and_said(self) -> None:
        remedy = advise(driver=None)
        assert "torch==2.13.0+cu126" in remedy.commands[0]
        assert "It needs driver 525.60.13 or newer: nvidia-smi shows yours" in remedy.summary

    def test_driver_unknown_still_runs_on_the_device(self) -> None:
        assert "torch==2.13.0+cu130" in advise(driver=None, capabilities=("12.0",)).commands[0]

    def test_devices_unknown_takes_the_driver_and_says_what_the_build_runs_on(self) -> None:
        remedy = advise(capabilities=())
        assert "torch==2.13.0+cu130" in remedy.commands[0]
        assert "sm_75, sm_80, sm_86, sm_90, sm_100, sm_120" in remedy.summary

    def test_nothing_known_takes_the_build_of_pypi(self) -> None:
        remedy = install_torch(python=Python(), system=System(), driver=Driver(), devices=None)
        assert "torch==2.14.1+cu130" in remedy.commands[0]
        assert remedy.commands[0].startswith("python -m pip install ")
        assert "nvidia-smi" in remedy.summary

    def test_the_cuda_version_of_the_driver_alone_is_enough(self) -> None:
        driver = Driver(cuda_version=CudaVersion(12, 4))
        torch = Torch(version=PackageVersion(CPU_ONLY))
        remedy = install_torch(python=VENV, system=LINUX, driver=driver, devices=devices("8.9"), pytorch=torch)
        assert "torch==2.13.0+cu126" in remedy.commands[0]
        assert "a driver for CUDA 12.4" in remedy.summary

    def test_a_device_is_known_by_its_name(self) -> None:
        v100 = (Device(nvml_index=0, name="Tesla V100-SXM2-16GB"),)
        driver = Driver(version=DriverVersion.parse(DRIVER_13))
        remedy = install_torch(python=VENV, system=LINUX, driver=driver, devices=v100)
        assert "torch==2.14.1+cu126" in remedy.commands[0]


class TestCompanions:
    def test_only_those_installed_are_pinned_to_the_same_build(self) -> None:
        python = Python(version=VENV.version, packages=packages(torchvision="0.28.0+cpu", torchaudio="2.11.0+cpu"))
        assert (
            advise(python=python)
            .commands[0]
            .endswith("torch==2.13.0+cu130 torchvision==0.28.0+cu130 torchaudio==2.11.0+cu130")
        )
        assert "torchvision" not in advise().commands[0]

    def test_one_that_was_not_verified_comes_unpinned_from_the_same_index_after_its_removal(self) -> None:
        python = Python(version=VENV.version, packages=packages(torchvision="0.29.2+cpu"))
        remove, install, _ = advise(torch="2.15.0+cpu", driver="595.71.05", python=python).commands
        assert remove == "python -m pip uninstall -y torchvision"
        assert install.endswith("--index-url https://download.pytorch.org/whl/cu132 torch==2.15.0+cu132 torchvision")

    def test_torchaudio_that_the_index_does_not_hold_comes_from_pypi_on_its_own(self) -> None:
        python = Python(version=VENV.version, packages=packages(torchaudio="2.9.1+cpu"))
        install, audio, _ = advise(torch="2.15.0+cpu", driver="595.71.05", python=python).commands
        assert "torchaudio" not in install
        assert audio == "python -m pip install --no-deps torchaudio==2.11.0"

    def test_torchaudio_that_fits_already_is_left(self) -> None:
        python = Python(version=VENV.version, packages=packages(torchaudio="2.11.0+cpu"))
        remedy = advise(torch="2.15.0+cpu", driver="595.71.05", python=python)
        assert not any("torchaudio" in command for command in remedy.commands)


class TestTools:
    def test_uv(self) -> None:
        python = Python(version=VENV.version, executable="/opt/venv/bin/python", environment="venv", installer="uv")
        assert advise(python=python).commands[0] == (
            "uv pip install --python /opt/venv/bin/python "
            "--index-url https://download.pytorch.org/whl/cu130 torch==2.13.0+cu130"
        )

    def test_windows(self) -> None:
        python = Python(version=VENV.version, executable=r"C:\ml\Scripts\python.exe", installer="pip")
        install, verify = advise(python=python, system=WINDOWS, driver="581.15").commands
        assert install.startswith(r"C:\ml\Scripts\python.exe -m pip install --index-url ")
        assert verify == (
            r'C:\ml\Scripts\python.exe -c "import torch; print(torch.__version__, torch.cuda.is_available())"'
        )

    def test_old_releases_are_found_by_the_options_of_their_time(self) -> None:
        python = Python(version=PackageVersion("3.9.18"))
        recent = advise(torch="1.13.1+cpu", python=python, capabilities=("8.6",)).commands[0]
        assert recent.endswith("--extra-index-url https://download.pytorch.org/whl/cu117 torch==1.13.1+cu117")
        old = advise(torch="1.10.1+cpu", python=python, capabilities=("8.6",)).commands[0]
        assert old.endswith("--find-links https://download.pytorch.org/whl/torch_stable.html torch==1.10.1+cu111")

    def test_the_distribution_forbids_pip_in_its_python(self) -> None:
        python = Python(
            version=VENV.version, executable="/usr/bin/python3", environment="system", externally_managed=True
        )
        remedy = advise(python=python)
        assert remedy.commands[0] == "/usr/bin/python3 -m venv .venv"
        assert remedy.commands[1].startswith(".venv/bin/python -m pip install ")
        assert remedy.commands[2].startswith(".venv/bin/python -c ")
        assert "virtual environment" in remedy.summary


class TestConda:
    PYTHON = Python(
        version=VENV.version,
        executable="/opt/conda/envs/ml/bin/python",
        prefix="/opt/conda/envs/ml",
        environment="conda",
        installer="conda",
        packages=(Package(name="torchvision", version=PackageVersion("0.20.1"), installer="conda"),),
    )

    def advise(self, torch: Torch, python: Python = PYTHON) -> Remedy:
        driver = Driver(version=DriverVersion.parse(DRIVER_12))
        return install_torch(python=python, system=LINUX, driver=driver, devices=devices("8.9"), pytorch=torch)

    def test_a_torch_of_conda_is_replaced_by_conda_forges(self) -> None:
        torch = Torch(version=PackageVersion("2.5.1"), build="cpu", conda_build="py3.12_cpu_0", conda_cpuonly=True)
        remove, install, verify = self.advise(torch).commands
        assert remove == "conda remove --yes --prefix /opt/conda/envs/ml cpuonly"
        assert install == (
            "conda install --yes --prefix /opt/conda/envs/ml "
            "--channel conda-forge pytorch-gpu cuda-version=12 torchvision"
        )
        assert verify.startswith("/opt/conda/envs/ml/bin/python -c ")

    def test_without_cpuonly_nothing_is_removed(self) -> None:
        torch = Torch(version=PackageVersion("2.5.1"), build="cpu", conda_build="cpu_mkl_py312", conda_cpuonly=False)
        assert self.advise(torch).commands[0].startswith("conda install ")

    def test_a_project_of_pixi_must_say_that_there_is_cuda(self) -> None:
        torch = Torch(version=PackageVersion("2.5.1"), build="cpu", conda_build="cpu_mkl_py312", conda_cpuonly=False)
        assert "[system-requirements]" not in self.advise(torch).summary
        assert (
            'cuda = "12" to [system-requirements]' in self.advise(torch, replace(self.PYTHON, project="pixi")).summary
        )

    def test_a_torch_of_pip_in_a_conda_environment_stays_one_of_pip(self) -> None:
        torch = Torch(version=PackageVersion(CPU_ONLY), build="cpu", conda_build="", conda_cpuonly=False)
        assert self.advise(torch).commands[0].startswith("/opt/conda/envs/ml/bin/python -m pip install ")


class TestNoBuild:
    @pytest.mark.parametrize(
        ("remedy", "words"),
        [
            pytest.param(
                advise(capabilities=("3.0",), driver="470.256.02"),
                "no pytorch wheel since 1.2 has machine code for compute capability 3.0: use a newer gpu, compute on "
                'the cpu (device="cpu"), or try to build pytorch from source with cuda 10.2 at most, which pytorch '
                "does not support for this gpu",
                id="a card too old for every wheel",
            ),
            pytest.param(
                advise(capabilities=("3.5",), driver="470.256.02"),
                "no pytorch build since 1.2 fits the driver, devices and python of this machine: pytorch 1.2.0 built "
                "with cuda 10.0 would work with python 3.7",
                id="a card whose last wheels are for older Pythons",
            ),
            pytest.param(
                advise(capabilities=("13.0",)), "capability 13.0: use another gpu, or a newer release", id="too new"
            ),
            pytest.param(
                advise(capabilities=("12.0",), driver="535.129.03", cuda=CudaVersion(13, 0)),
                "pytorch 2.13.0 built with cuda 13.0 would work with driver 580 or newer, or pytorch 2.11.0 built with "
                "cuda 12.8 would work",
                id="a driver too old for the CUDA version given",
            ),
            pytest.param(
                advise(capabilities=("9.0",), driver="418.39"),
                "pytorch 2.13.0 built with cuda 12.6 would work with driver 525.60.13 or newer",
                id="a driver too old for every build",
            ),
            pytest.param(
                advise(capabilities=("7.0",), python=Python(version=PackageVersion("3.15.0"))),
                "pytorch 2.13.0 built with cuda 12.6 would work with python 3.14",
                id="a Python too new",
            ),
            pytest.param(
                advise(capabilities=("3.7", "12.0")),
                "one environment for each of the devices (compute capability 3.7 and 12.0)",
                id="devices that no build covers together",
            ),
            pytest.param(
                advise(system=System(os="linux", machine="x86_64", glibc="")), "would work with glibc 2.28", id="musl"
            ),
            pytest.param(
                advise(system=System(os="darwin", machine="arm64")), "no cuda build for macos", id="macOS"
            ),
            pytest.param(
                advise(system=System(os="linux", machine="ppc64le")), "no cuda wheels for this platform", id="POWER"
            ),
        ],
    )  # fmt: skip
    def test_there_is_no_command_and_the_summary_says_what_would_help(self, remedy: Remedy, words: str) -> None:
        assert remedy.commands == ()
        assert words in remedy.summary.casefold()
        assert remedy.reference


class TestOldBuilds:
    """Builds whose version names no variant are the default ones: "==" would accept any variant, "===" does not."""

    OLD = Python(
        version=PackageVersion("3.7.9"), packages=(Package(name="torchvision", version=PackageVersion("0.14.1")),)
    )

    def test_the_default_build_of_an_old_release(self) -> None:
        remedy = advise(capabilities=("3.5",), driver="440.33.01", python=self.OLD)
        assert remedy.commands[0].endswith("pip install torch===1.2.0 torchvision===0.4.0")
        assert "built with CUDA 10.0" in remedy.summary

    def test_another_build_names_its_variant(self) -> None:
        remedy = advise(torch="1.5.0", capabilities=("6.0",), driver="410.104", python=self.OLD)
        assert "torch_stable.html torch==1.5.0+cu92 torchvision==0.6.0+cu92" in remedy.commands[0]

    def test_from_1_8_1_on_the_default_build_names_its_variant(self) -> None:
        remedy = advise(torch="1.8.1", capabilities=("6.1",), driver="440.33.01", python=self.OLD)
        assert "torch==1.8.1+cu102" in remedy.commands[0]

    def test_windows_takes_it_from_the_page_of_old_builds(self) -> None:
        remedy = advise(torch="1.7.1", capabilities=("6.1",), driver="441.22", python=self.OLD, system=WINDOWS)
        assert "torch_stable.html torch===1.7.1 torchvision===0.8.2" in remedy.commands[0]

    def test_the_newest_python_is_named_if_the_python_is_unknown(self) -> None:
        unknown = Python(executable="/opt/venv/bin/python")
        old = advise(capabilities=("3.5",), driver="440.33.01", python=unknown)
        assert "It needs Python 3.7 or older" in old.summary
        assert "It needs Python" not in advise(capabilities=("8.6",), driver="535.129.03", python=unknown).summary


class TestOldestDriver:
    def test_it_is_one_that_knows_the_gpu(self) -> None:
        assert "With driver 570.26 or newer, torch==2.11.0+cu128" in advise(driver=None, capabilities=("12.0",)).summary
        assert "It needs driver 525.60.13 or newer" in advise(driver=None, capabilities=("8.6",)).summary

    def test_windows_has_its_own_numbers(self) -> None:
        python = Python(version=PackageVersion("3.10.4"))
        old = advise(torch="2.0.0+cpu", driver=None, capabilities=("7.5",), python=python, system=WINDOWS).summary
        assert "It needs driver 452.39 or newer" in old


class TestPlatforms:
    def test_an_old_glibc_takes_the_last_release_with_older_wheels(self) -> None:
        old = System(os="linux", machine="x86_64", glibc="2.17")
        assert "torch==2.6.0+cu124" in advise(system=old, driver=DRIVER_12).commands[0]

    def test_aarch64_has_other_builds(self) -> None:
        assert "torch==2.13.0+cu130" in advise(system=AARCH64, capabilities=("9.0",)).commands[0]
        assert "torch==2.10.0+cu128" in advise(system=AARCH64, capabilities=("9.0",), driver=DRIVER_12).commands[0]

    def test_windows_lacks_sm_70_in_a_build_that_has_it_on_linux(self) -> None:
        assert "torch==2.9.1+cu128" in advise(torch="2.9.1", driver="572.61", capabilities=("7.0",)).commands[0]
        windows = advise(torch="2.9.1", driver="572.61", capabilities=("7.0",), system=WINDOWS)
        assert "torch==2.9.1+cu126" in windows.commands[0]

    def test_a_free_threaded_python_needs_its_own_wheels(self) -> None:
        python = Python(version=PackageVersion("3.13.1"), free_threaded=True)
        assert "torch==2.12.0+cu130" in advise(python=python).commands[0]


class TestReinstall:
    def test_the_same_build_again(self) -> None:
        remedy = reinstall_torch(python=VENV, system=LINUX, pytorch=Torch(version=PackageVersion("2.13.0+cu130")))
        assert remedy.commands[0] == (
            "/opt/venv/bin/python -m pip install --force-reinstall "
            "--index-url https://download.pytorch.org/whl/cu130 torch==2.13.0+cu130"
        )
        assert "torch.cuda.is_available()" in remedy.commands[1]

    def test_a_version_without_a_local_part_comes_from_the_default_index(self) -> None:
        remedy = reinstall_torch(python=VENV, system=LINUX, pytorch=Torch(version=PackageVersion("2.13.0")))
        assert remedy.commands[0] == "/opt/venv/bin/python -m pip install --force-reinstall torch==2.13.0"

    def test_with_uv(self) -> None:
        python = Python(executable="/v/bin/python", installer="uv")
        remedy = reinstall_torch(python=python, system=LINUX, pytorch=Torch(version=PackageVersion("2.13.0+rocm7.1")))
        assert remedy.commands[0] == (
            "uv pip install --python /v/bin/python --reinstall "
            "--index-url https://download.pytorch.org/whl/rocm7.1 torch==2.13.0+rocm7.1"
        )

    def test_with_conda(self) -> None:
        torch = Torch(version=PackageVersion("2.5.1"), conda_build="py3.12_cuda12.4_cudnn9.1.0_0")
        remedy = reinstall_torch(python=TestConda.PYTHON, system=LINUX, pytorch=torch)
        assert remedy.commands[0] == ("conda install --yes --prefix /opt/conda/envs/ml --force-reinstall pytorch=2.5.1")

    def test_an_unknown_version_gives_no_command(self) -> None:
        assert reinstall_torch(python=VENV, system=LINUX, pytorch=None).commands == ()


def test_a_jetson_takes_the_wheels_of_its_jetpack() -> None:
    remedy = advise(system=AARCH64, capabilities=("8.7",), driver="540.4.0")
    assert any("--index-url https://pypi.jetson-ai-lab.io/jp6/" in command for command in remedy.commands)
