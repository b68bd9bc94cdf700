"""What commands say of the system: whole answers, each command's for itself."""

import pytest

from gpudoctor.model import Driver, DriverVersion, PackageVersion, Python, System, Toolkit
from gpudoctor.readers.facts import Facts
from gpudoctor.readers.report import read_texts
from gpudoctor.readers.system_commands import read_system
from gpudoctor.readers.text import clean_text

UNAME = "Linux box 6.8.0-45-generic #45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 x86_64 GNU/Linux\n"
LINUX = {"system": System(os="linux")}


def read(text: str) -> list[Facts]:
    return list(read_system(clean_text(text, "report.txt")))


@pytest.mark.parametrize(
    ("text", "system"),
    [
        (UNAME, System(os="linux", kernel="6.8.0-45-generic", machine="x86_64", wsl=0)),
        ("Linux version 5.15.0-84-generic (buildd@x)\n", System(os="linux", kernel="5.15.0-84-generic", wsl=0)),
        ("5.4.0-1103-azure\n", System(os="linux", kernel="5.4.0-1103-azure", wsl=0)),
        ("Darwin m 23.1.0 Darwin Kernel Version 23.1.0: Mon Oct 9 arm64\n", System(os="darwin", machine="arm64")),
        ('ID=ubuntu\nVERSION_ID="22.04"\n', System(os="linux", distribution="ubuntu", distribution_version="22.04")),
        (
            "Distributor ID: RedHatEnterprise\nDescription: Red Hat 9\nRelease: 9.4\n",
            System(os="linux", distribution="rhel", distribution_version="9.4", distribution_name="Red Hat 9"),
        ),
        ("WSL version: 2.0.9.0\n", System(os="linux", wsl=2)),
        ("Default Version: 1\n", System(os="linux", wsl=1)),
        ("* Ubuntu-20.04  Running  1\n", System(os="linux", wsl=1)),
        ("Microsoft Windows [Version 10.0.19045.3570]\n", System(os="windows")),
        ("SecureBoot enabled\n", System(secure_boot=True)),
        ("Secure Boot: disabled\n", System(secure_boot=False)),
    ],
)
def test_the_system(text: str, system: System) -> None:
    assert read(text) == [{"system": system}]


@pytest.mark.parametrize("text", ["ID=ubuntu\n", "Release: 9.4\n", "NVRM version: unknown\n", "Windows 11 in WSL\n"])
def test_what_says_nothing(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("nvidia 56623104 0\nnvidia_uvm 1536000 0\n", Driver(module_loaded=True, uvm_loaded=True)),
        ("nouveau 2306048 4\n", Driver(nouveau_loaded=True)),
        ("$ lsmod | grep nvidia\n$ uname\n", Driver(module_loaded=False)),
        ("$ lsmod | grep nvidia\nnouveau 2306048 4\n", Driver(module_loaded=False, nouveau_loaded=True)),
        ("$ lsmod | grep nvidia\nnvidia 56623104 0\n", Driver(module_loaded=True, uvm_loaded=False)),
        ("$ lsmod | grep nvidia\nnvidia_drm 118784 0\n", None),
        ("$ lsmod | grep nouveau\n$ uname\n", Driver(nouveau_loaded=False)),
        ("$ lsmod | grep nvidia\n", None),
    ],
)
def test_the_kernel_modules(text: str, driver: Driver | None) -> None:
    assert read(text) == ([] if driver is None else [{"driver": driver, **LINUX}])


@pytest.mark.parametrize(
    ("text", "built"),
    [
        ("nvidia/535.129.03, 6.8.0-45-generic, x86_64: installed\n", True),
        ("nvidia/535.129.03, 6.8.0-45-generic, x86_64: built\n", False),
        ("nvidia/535.129.03, 5.15.0-84-generic, x86_64: installed\n", False),
        ("nvidia/535.129.03: added\n", False),
    ],
)
def test_the_modules_of_dkms(text: str, built: bool) -> None:
    assert read(text) == [{"driver": Driver(installed=True, dkms=True)}]
    assert read(UNAME + text)[1:] == [{"driver": Driver(installed=True, dkms=True, module_built_for_kernel=built)}]


@pytest.mark.parametrize(("release", "built"), [("6.8.0-49-generic", True), ("6.8.0-50-generic", False)])
def test_dkms_with_the_release_that_uname_prints(release: str, built: bool) -> None:
    text = f"$ uname -r\n{release}\n$ dkms status\nnvidia/550.120, 6.8.0-49-generic, x86_64: installed\n"
    driver = Driver(installed=True, dkms=True, module_built_for_kernel=built)
    assert read(text)[1:] == [{"driver": driver}]


def test_the_module_that_is_loaded() -> None:
    version = DriverVersion((535, 129, 3))
    driver = Driver(installed=True, module_loaded=True, module_version=version, module_flavor="proprietary")
    assert read("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\n") == [{"driver": driver}]


@pytest.mark.parametrize(
    ("text", "compiler", "version"),
    [
        ("gcc (Ubuntu 11.4.0-1ubuntu1) 11.4.0\n", "gcc", (11, 4, 0)),
        ("gcc version 9.4.0 (Ubuntu 9.4.0)\n", "gcc", (9, 4, 0)),
        ("g++-12 (Debian) 12.2\ngcc (Debian) 10.2.1\n", "gcc", (12, 2)),
        ("Microsoft (R) C/C++ Optimizing Compiler Version 19.38.33134 for x64\n", "cl", (19, 38, 33134)),
    ],
)
def test_the_host_compiler(text: str, compiler: str, version: tuple[int, ...]) -> None:
    assert read(text) == [{"toolkit": Toolkit(host_compiler=compiler, host_compiler_version=version)}]


@pytest.mark.parametrize("around", ["GCC version: {}", "built with {}", "compiled by {}"])
def test_the_compiler_of_something_else(around: str) -> None:
    assert read(around.format("gcc (Ubuntu 11.4.0-1ubuntu1) 11.4.0\n")) == []


@pytest.mark.parametrize(
    ("text", "version", "os"),
    [
        ("Python 3.10.12\n", "3.10.12", None),
        ("Python 3.11.5 (main, Sep 11 2023, 13:54:46) [GCC 11.2.0] on linux\n", "3.11.5", "linux"),
        ("Python 3.8.10 (default, Nov 22 2023)\n[GCC 9.4.0 20240101] on linux\n", "3.8.10", "linux"),
        ("Python 3.9.1 (default, Nov 22 2023)\n[MSC v.1916 64 bit (AMD64)] on win32\n", "3.9.1", "windows"),
    ],
)
def test_python(text: str, version: str, os: str | None) -> None:
    python = {"python": Python(version=PackageVersion(version))}
    assert read(text) == [python, *([] if os is None else [{"system": System(os=os)}])]


def test_a_32_bit_python() -> None:
    text = "Python 3.10.6 (tags/v3.10.6:9c7b4bd, Aug  1 2022, 21:38:17) [MSC v.1932 32 bit (Intel)]\n"
    assert read(text) == [{"python": Python(version=PackageVersion("3.10.6"), platform_tag="win32")}]


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ("WSL is disabled by my company.\nC:\\Users\\P>python -V\nPython 3.11.7\n", "windows"),
        ("I'm not allowed to install WSL on this laptop.\nC:\\app>python -V\nPython 3.11.7\n", "windows"),
        ("In WSL:\n$ uname -r\n5.15.167.4-microsoft-standard-WSL2\n", "linux"),
    ],
)
def test_wsl_that_cannot_be_used_is_no_wsl(text: str, system: str) -> None:
    found = read_texts([("report.txt", text.encode())]).system
    assert found is not None
    assert (found.os, bool(found.wsl)) == (system, system == "linux")
