"""The reader of `conda info`."""

import pytest

from gpudoctor.model import CudaVersion
from gpudoctor.readers.conda import read_info as read
from gpudoctor.readers.text import clean_text

INFO = """\
     active environment : work
    active env location : /opt/conda/envs/work
          conda version : 23.1.0
         python version : 3.9.16.final.0
       virtual packages : __archspec=1=x86_64
                          __cuda=12.2=0
                          __glibc=2.31=0
               platform : linux-64
             user-agent : conda/23.1.0 requests/2.28 CPython/3.9.16 Linux/5.15.0-84-generic ubuntu/20.04.6 glibc/2.31
"""


def test_what_conda_sees() -> None:
    found = read(clean_text(INFO, "r"))
    assert found["driver"].cuda_version == CudaVersion(12, 2)
    assert (found["system"].os, found["system"].machine, found["system"].glibc) == ("linux", "x86_64", "2.31")
    assert (found["system"].distribution, found["system"].kernel) == ("ubuntu", "5.15.0-84-generic")
    assert found["python"].active_environment == "/opt/conda/envs/work"
    assert found["python"].version is None  # that of conda itself


def test_no_virtual_package_of_cuda_leaves_the_driver_unknown() -> None:
    assert "driver" not in read(clean_text(INFO.replace("__cuda=12.2=0", "__unix=0=0"), "r"))


def test_windows() -> None:
    found = read(clean_text(INFO.replace("linux-64", "win-64").replace("__glibc=2.31=0", "__win=0=0"), "r"))
    assert (found["system"].os, found["system"].machine, found["system"].glibc) == ("windows", "AMD64", None)


def test_json() -> None:
    text = '{\n "conda_version": "23.1.0",\n "platform": "osx-arm64",\n "virtual_pkgs": [["__osx", "13.2", "0"]]\n}'
    assert read(clean_text(text, "r"))["system"].os == "darwin"


def test_a_line_like_it_is_none() -> None:
    assert read(clean_text("platform : linux-64\n", "r")) == {}


@pytest.mark.parametrize(
    ("packages", "cuda"),
    [
        ('[["__cuda", "12.8", "0"]]', CudaVersion(12, 8)),
        ('[["__cuda", "12.8"]]', CudaVersion(12, 8)),
        ('[["__cuda"], "__cuda=12.8", {"a": 1}]', None),
        ('"__cuda=12.8"', None),
        ("null", None),
    ],
)
def test_virtual_packages_in_json(packages: str, cuda: CudaVersion | None) -> None:
    text = f'{{"conda_version": "23.1.0", "platform": "linux-64", "virtual_pkgs": {packages}}}'
    driver = read(clean_text(text, "r")).get("driver")
    assert (driver.cuda_version if driver is not None else None) == cuda


@pytest.mark.parametrize(
    ("text", "os"),
    [
        ("conda version : 23.1.0\nplatform : linux-64\n", "linux"),
        ("active environment : base\nplatform : win-64\n", "windows"),
        ("virtual packages : __unix=0=0\nplatform : osx-arm64\n", "darwin"),
        ("conda version : 23.1.0\nactive environment : base\nplatform : beos-64\n", None),
    ],
)
def test_one_more_field_shows_whose_platform_it_is(text: str, os: str | None) -> None:
    system = read(clean_text(text, "r")).get("system")
    assert (None if system is None else system.os) == os


@pytest.mark.parametrize(
    ("virtual", "cuda"),
    [("12.2=0", CudaVersion(12, 2)), ("12.2", CudaVersion(12, 2)), ("12.2.1=0", CudaVersion(12, 2)), ("12=0", None)],
)
def test_the_cuda_version_of_the_driver(virtual: str, cuda: CudaVersion | None) -> None:
    driver = read(clean_text(INFO.replace("12.2=0", virtual), "r")).get("driver")
    assert (None if driver is None else driver.cuda_version) == cuda
