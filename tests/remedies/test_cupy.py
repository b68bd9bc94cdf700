"""The CuPy to install: one distribution, for the CUDA major that driver and devices can run."""

import pytest

from gpudoctor.model import (
    ComputeCapability,
    CudaVersion,
    Cupy,
    Device,
    Driver,
    DriverVersion,
    Fix,
    Package,
    PackageVersion,
    Python,
    Remedy,
    System,
)
from gpudoctor.remedies.cupy_install import install_cupy
from tests.remedies.made import made_one

LINUX = System(os="linux", machine="x86_64")
PYTHON = Python(version=PackageVersion("3.12.3"), executable="/v/bin/python", environment="venv", installer="pip")


def installed(*names: str, installer: str = "pip", numpy: str | None = None) -> Cupy:
    version = PackageVersion("13.6.0")
    return Cupy(
        distributions=tuple(Package(name=name, version=version, installer=installer) for name in names),
        numpy_version=None if numpy is None else PackageVersion(numpy),
    )


def advise(
    *,
    driver: str | None = "580.65.06",
    capability: str = "8.9",
    cupy: Cupy | None = None,
    python: Python = PYTHON,
    system: System = LINUX,
    cuda_major: int | None = None,
) -> Remedy:
    return install_cupy(
        python=python,
        system=system,
        driver=Driver(version=DriverVersion.parse(driver) if driver else None),
        devices=(Device(nvml_index=0, compute_capability=ComputeCapability.parse(capability)),),
        cupy=cupy or Cupy(),
        cuda_major=cuda_major,
    )


def requirement(remedy: Remedy) -> str:
    return remedy.commands[-2].split(" install ")[1].removeprefix("--upgrade ").strip("'\"")


@pytest.mark.parametrize(
    ("driver", "capability", "expected"),
    [
        pytest.param("580.65.06", "8.9", "cupy-cuda13x[ctk]", id="driver of 13"),
        pytest.param("550.54.15", "8.9", "cupy-cuda12x[ctk]", id="driver of 12"),
        pytest.param("470.256.02", "7.5", "cupy-cuda11x==13.6.0", id="driver of 11, before [ctk]"),
        pytest.param("580.65.06", "7.0", "cupy-cuda12x[ctk]", id="NVRTC of CUDA 13 dropped Volta"),
        pytest.param("470.256.02", "3.7", "cupy-cuda11x==13.6.0", id="Kepler"),
        pytest.param("620.10", "9.0", "cupy-cuda13x[ctk]", id="a driver newer than the table"),
        pytest.param(None, "8.9", "cupy-cuda12x[ctk]", id="driver unknown"),
    ],
)
def test_the_package_by_driver_and_device(driver: str | None, capability: str, expected: str) -> None:
    assert requirement(advise(driver=driver, capability=capability)) == expected


def test_an_unknown_driver_is_said() -> None:
    assert "nvidia-smi must show CUDA 12 or newer" in advise(driver=None).summary


def test_the_last_command_runs_a_kernel() -> None:
    assert advise().commands[-1] == (
        '/v/bin/python -c "import cupy; print(cupy.__version__, int(cupy.arange(3).sum()))"'
    )


@pytest.mark.parametrize(
    ("python", "numpy", "expected"),
    [
        pytest.param("3.12.3", "2.1.0", "cupy-cuda13x[ctk]", id="NumPy 2"),
        pytest.param("3.12.3", "1.26.4", "cupy-cuda13x<14", id="NumPy 1 needs CuPy 13"),
        pytest.param("3.9.18", None, "cupy-cuda13x<14", id="Python 3.9 needs CuPy 13"),
        pytest.param("3.14.0", "1.26.4", "cupy-cuda13x[ctk]", id="CuPy 13 has no wheel for Python 3.14"),
    ],
)
def test_python_and_numpy_are_respected(python: str, numpy: str | None, expected: str) -> None:
    remedy = advise(python=Python(version=PackageVersion(python)), cupy=installed(numpy=numpy))
    assert requirement(remedy) == expected


def test_numpy_is_found_among_the_packages_too() -> None:
    numpy = Package(name="numpy", version=PackageVersion("1.26.4"))
    python = Python(version=PackageVersion("3.11.9"), packages=(numpy,))
    assert requirement(advise(python=python)) == "cupy-cuda13x<14"


def test_what_an_older_cupy_lacks_is_said() -> None:
    assert "needs the CUDA 13 toolkit on this machine" in advise(cupy=installed(numpy="1.26.4")).summary
    assert "toolkit" not in advise().summary


def test_every_installed_cupy_goes_before_one_comes() -> None:
    remove, install, _ = advise(cupy=installed("cupy-cuda11x", "cupy-cuda12x")).commands
    assert remove == "/v/bin/python -m pip uninstall -y cupy-cuda11x cupy-cuda12x"
    assert install == "/v/bin/python -m pip install 'cupy-cuda13x[ctk]'"


def test_the_right_one_alone_is_only_upgraded() -> None:
    install, _ = advise(cupy=installed("cupy-cuda13x")).commands
    assert install == "/v/bin/python -m pip install --upgrade 'cupy-cuda13x[ctk]'"


def test_the_right_one_next_to_another_goes_too_because_the_other_broke_it() -> None:
    remove, install, _ = advise(cupy=installed("cupy-cuda12x", "cupy-cuda13x")).commands
    assert remove.endswith("uninstall -y cupy-cuda12x cupy-cuda13x")
    assert "--upgrade" not in install


def test_the_cuda_major_can_be_given() -> None:
    assert requirement(advise(cuda_major=12)) == "cupy-cuda12x[ctk]"


def test_uv() -> None:
    python = Python(version=PackageVersion("3.12.3"), executable="/v/bin/python", installer="uv")
    remove, install, _ = advise(python=python, cupy=installed("cupy-cuda12x")).commands
    assert remove == "uv pip uninstall --python /v/bin/python cupy-cuda12x"
    assert install == "uv pip install --python /v/bin/python 'cupy-cuda13x[ctk]'"


def test_a_cupy_of_conda_stays_one_of_conda() -> None:
    conda = Python(
        version=PackageVersion("3.12.3"),
        executable="/c/bin/python",
        prefix="/c",
        environment="conda",
        installer="conda",
        packages=(Package(name="cupy", version=PackageVersion("13.6.0"), installer="conda"),),
    )
    install, verify = advise(python=conda, cupy=installed("cupy", installer="conda"), driver="550.54.15").commands
    assert install == "conda install --yes --prefix /c --channel conda-forge cupy cuda-version=12"
    assert verify.startswith("/c/bin/python -c ")


def test_windows_quotes_the_extra() -> None:
    windows = System(os="windows", machine="AMD64")
    remedy = advise(system=windows, driver="581.15", python=Python(version=PackageVersion("3.12.3")))
    assert remedy.commands[0] == 'python -m pip install "cupy-cuda13x[ctk]"'


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        pytest.param(advise(driver="440.33"), "update it first, to 525.60.13 or newer", id="driver of 10"),
        pytest.param(advise(capability="3.0"), "compute capability 3.0", id="a device before CUDA 11"),
        pytest.param(advise(python=Python(version=PackageVersion("3.15.0"))), "no wheel for Python 3.15", id="Python"),
        pytest.param(advise(system=System(os="darwin", machine="arm64")), "no CUDA wheels", id="macOS"),
    ],
)
def test_no_command_if_none_helps(remedy: Remedy, words: str) -> None:
    assert remedy.commands == ()
    assert words in remedy.summary
    assert remedy.reference


def test_nothing_known() -> None:
    remedy = install_cupy(python=Python(), system=System(), driver=Driver(), devices=None)
    assert remedy.commands[0] == "python -m pip install 'cupy-cuda12x[ctk]'"


def test_the_cuda_version_of_the_driver_alone_is_enough() -> None:
    remedy = install_cupy(python=PYTHON, system=LINUX, driver=Driver(cuda_version=CudaVersion(13, 0)), devices=None)
    assert requirement(remedy) == "cupy-cuda13x[ctk]"


def test_the_distribution_for_rocm_replaces_what_is_installed() -> None:
    commands = made_one(Fix("install-cupy-for-rocm"), python=PYTHON).commands
    assert commands[1].startswith("/v/bin/python -m pip uninstall -y cupy cupy-rocm-5-0 ")
    assert commands[2] == "/v/bin/python -m pip install cupy-rocm-7-0"


def test_one_cuda_for_all_packages() -> None:
    remedy = made_one(Fix("one-cuda-for-all", major=12), python=PYTHON)
    assert "cu12x" in remedy.summary
    assert remedy.commands[0] == "/v/bin/python -m pip list | grep -i nvidia"


@pytest.mark.parametrize(
    ("driver", "updates"), [("390.157", True), ("470.256.02", False), ("550.54.15", False), (None, False)]
)
def test_an_update_is_named_if_the_driver_is_what_is_too_old(driver: str | None, updates: bool) -> None:
    """No CUDA compiles for Fermi and Blackwell together."""
    remedy = install_cupy(
        python=PYTHON,
        system=LINUX,
        driver=Driver(version=DriverVersion.parse(driver) if driver else None),
        devices=[
            Device(nvml_index=n, compute_capability=ComputeCapability(*number))
            for n, number in enumerate(((3, 0), (12, 0)))
        ],
    )
    assert remedy.commands == ()
    assert ("update it first" in remedy.summary) is updates
    assert ("compute capability 3.0, 12.0" in remedy.summary) is not updates


def test_a_gpu_that_no_toolkit_of_today_compiles_for() -> None:
    remedy = install_cupy(
        python=PYTHON,
        system=LINUX,
        driver=Driver(version=DriverVersion.parse("390.157")),
        devices=[Device(nvml_index=0, compute_capability=ComputeCapability(3, 0))],
    )
    assert remedy.commands == ()
    assert "CUDA 10.2 is the last toolkit" in remedy.summary
