"""The environment diagnosed: its kind, its installer, its packages, and files that hide modules."""

import io
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpudoctor.model import Package, PackageVersion, Python
from gpudoctor.probes.host import ProbeContext, interpreter_meant, is_own_environment
from gpudoctor.probes.local_host import LocalHost
from gpudoctor.probes.python_environment import parse_python
from gpudoctor.probes.workers import python_environment
from tests import site_packages
from tests.environments import python_of
from tests.probes.asked import asked
from tests.site_packages import SitePackages


@pytest.fixture
def site(tmp_path: Path) -> SitePackages:
    return SitePackages(tmp_path / "environment")


def names(python: Python) -> list[str]:
    return [package.name for package in python.packages or ()]


def with_interpreter(facts: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return {**facts, "interpreter": {**facts["interpreter"], **changes}}


def test_packages_that_bear_on_gpus(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "nvidia-cudnn-cu13", "cupy-cuda12x", "flash-attn", "requests", "zope.interface", "mytorch"):
        site.distribution(name, "1.0")
    assert names(parse_python(site.collect(monkeypatch))) == [
        "cupy-cuda12x",
        "flash-attn",
        "nvidia-cudnn-cu13",
        "torch",
    ]


def test_a_package_with_all_its_facts(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("flash_attn", "2.6.3+cu123torch2.3cxx11abifalse", installer="uv")
    assert parse_python(site.collect(monkeypatch)).packages == (
        Package(
            name="flash-attn",
            version=PackageVersion("2.6.3+cu123torch2.3cxx11abifalse"),
            installer="uv",
            location=str(site.folder),
        ),
    )


def test_older_forms_of_metadata(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("torch", "2.6.0a0", form="egg-info", installer="")
    site.write("numpy-1.26.4.egg-info", "Metadata-Version: 1.1\nName: numpy\nVersion: 1.26.4\n")
    packages = parse_python(site.collect(monkeypatch)).packages or ()
    assert [(p.name, str(p.version), p.installer) for p in packages] == [
        ("numpy", "1.26.4", ""),
        ("torch", "2.6.0a0", ""),
    ]


def test_each_folder_counts_once(site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("torch", "2.9.0")
    link = tmp_path / "lib64"
    link.symlink_to(site.folder)
    assert names(parse_python(site.collect(monkeypatch, before=[link, tmp_path / "missing", site.folder]))) == ["torch"]


def test_hostile_metadata(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    huge = site.distribution("torch", "2.9.0") / "METADATA"
    os.truncate(huge, 100 * 2**20)
    site.write("triton-3.0.dist-info", "a file where a folder belongs")
    (site.folder / "cupy-14.0.dist-info").symlink_to(site.folder / "cupy-14.0.dist-info")
    site.write("numpy-2.0.dist-info/RECORD")
    site.write("jax-0.5.dist-info/METADATA", "Name: jax\x1b[2J\nVersion: 0.5\n\n")
    site.write("numba-\x1b[31m.dist-info/METADATA", b"\xff\xfe\x00Name\n\n\xff")
    (site.folder / "xformers-1.0.dist-info").mkdir()
    (site.folder / "xformers-1.0.dist-info" / "METADATA").symlink_to("METADATA")
    (site.folder / "nvidia").mkdir()
    (site.folder / "nvidia" / "loop").symlink_to(site.folder / "nvidia")
    begun = time.monotonic()
    assert names(parse_python(site.collect(monkeypatch))) == ["torch"]
    assert time.monotonic() - begun < 1.0


@pytest.mark.parametrize(
    ("changes", "kind", "installer"),
    [
        pytest.param({}, "system", "pip", id="system"),
        pytest.param({"pyvenv_cfg": "home = /usr/bin\nversion = 3.12.4\n"}, "venv", "pip", id="venv"),
        pytest.param({"prefix": "/venv"}, "venv", "pip", id="old virtualenv without pyvenv.cfg"),
        pytest.param({"pyvenv_cfg": "home = /usr/bin\nuv = 0.9.2\n"}, "venv", "uv", id="venv made by uv"),
        pytest.param({"pyvenv_cfg": "home = /opt/uv = x\n"}, "venv", "pip", id="uv in another value"),
    ],
)
def test_kind_and_installer(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], kind: str, installer: str
) -> None:
    python = parse_python(with_interpreter(site.collect(monkeypatch), pip=True, **changes))
    assert (python.environment, python.installer) == (kind, installer)


@pytest.mark.parametrize(("pip", "installer"), [(False, "uv"), (True, "pip")])
def test_uv_installed_torch(site: SitePackages, monkeypatch: pytest.MonkeyPatch, pip: bool, installer: str) -> None:
    site.distribution("torch", "2.9.0", installer="uv")
    assert parse_python(with_interpreter(site.collect(monkeypatch), pip=pip)).installer == installer


@pytest.mark.parametrize(
    ("torch_installer", "records", "installer"),
    [
        pytest.param("conda", ["pytorch-2.5.1-cuda126_0"], "conda", id="torch from conda"),
        pytest.param("", ["pytorch-2.5.1-cuda126_0"], "conda", id="torch from conda, no INSTALLER"),
        pytest.param("pip", ["python-3.12.4-h1_0_cpython"], "pip", id="torch from pip inside conda"),
        pytest.param("pip", ["pytorch-2.5.1-cuda126_0"], "pip", id="torch from pip over conda's"),
        pytest.param("", ["python-3.12.4-h1_0_cpython"], "pip", id="torch of nobody inside conda"),
    ],
)
def test_conda(
    site: SitePackages, monkeypatch: pytest.MonkeyPatch, torch_installer: str, records: list[str], installer: str
) -> None:
    site.write("pip/__main__.py")
    site.distribution("torch", "2.5.1", installer=torch_installer)
    site.conda("cuda-version-12.6-h7480c83_3", "openssl-3.4.0-h1", *records)
    python = parse_python(site.collect(monkeypatch))
    assert (python.environment, python.installer) == ("conda", installer)
    assert names(python) == ["torch", "cuda-version"]


def test_conda_without_pip(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.conda("python-3.12.4-h1_0_cpython")
    assert parse_python(site.collect(monkeypatch)).installer == "conda"


@pytest.mark.parametrize(
    ("environ", "active"),
    [
        ({}, ""),
        ({"CONDA_PREFIX": "/opt/conda"}, "/opt/conda"),
        ({"CONDA_PREFIX": "/opt/conda", "VIRTUAL_ENV": "/work/.venv"}, "/work/.venv"),
    ],
)
def test_active_environment(environ: dict[str, str], active: str, tmp_path: Path) -> None:
    assert asked("python", ProbeContext(environ=environ, directory=tmp_path)).arguments["active"] == active


def test_the_active_environment_is_a_fact(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = with_interpreter(site.collect(monkeypatch), active="/work/.venv")
    assert parse_python(facts).active_environment == "/work/.venv"


def test_naming_an_interpreter_is_a_choice_that_the_shell_does_not_contradict(tmp_path: Path) -> None:
    setting = ProbeContext(
        environ={"VIRTUAL_ENV": "/work/.venv"}, directory=tmp_path, interpreter="/opt/venv/bin/python"
    )
    assert asked("python", setting).arguments["active"] == ""


def environment(folder: Path) -> str:
    """Return the interpreter of an environment that is laid out there."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    return str(folder / "bin" / "python")


@pytest.mark.parametrize(
    ("folder", "receipt"),
    [
        pytest.param("pipx/venvs/gpudoctor", "pipx_metadata.json", id="pipx install"),
        pytest.param("pipx/.cache/a4fdd9ed9ed9931", "pipx_metadata.json", id="pipx run"),
        pytest.param("uv/tools/gpudoctor", "uv-receipt.toml", id="uv tool install"),
        pytest.param("uv/archive-v0/fPFBaBndR7PV3vBU", "pyvenv.cfg", id="uvx"),
    ],
)
@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_from_an_environment_of_its_own_the_activated_one_is_meant(
    folder: str, receipt: str, variable: str, tmp_path: Path
) -> None:
    own = tmp_path / folder
    environment(own)
    (own / receipt).touch()
    activated = environment(tmp_path / "activated")
    environ = {variable: str(tmp_path / "activated")}
    assert is_own_environment(str(own))
    assert interpreter_meant(environ, str(own)) == activated
    assert interpreter_meant({}, str(own)) is None
    assert interpreter_meant({variable: str(tmp_path / "removed")}, str(own)) is None
    for interpreter, active in (
        (activated, str(tmp_path / "activated")),
        (None, str(tmp_path / "activated")),
        ("/x", ""),
    ):
        setting = ProbeContext(environ=environ, directory=tmp_path, interpreter=interpreter)
        assert asked("python", setting).arguments["active"] == active


def test_an_environment_that_the_user_made_is_meant_itself(tmp_path: Path) -> None:
    environment(tmp_path / "own")
    (tmp_path / "own" / "pyvenv.cfg").touch()
    environment(tmp_path / "activated")
    assert not is_own_environment(str(tmp_path / "own"))
    assert interpreter_meant({"VIRTUAL_ENV": str(tmp_path / "activated")}, str(tmp_path / "own")) is None


@pytest.mark.parametrize(("prefix", "managed"), [("/base", True), ("/venv", False)])
def test_externally_managed(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, managed: bool
) -> None:
    """The marker lies beside the standard library and holds for a base interpreter, not for its venvs."""
    library = tmp_path / "python3.12"
    library.mkdir()
    (library / "EXTERNALLY-MANAGED").write_text("[externally-managed]\n")
    monkeypatch.setattr(os, "__file__", str(library / "os.py"))
    monkeypatch.setattr(sys, "base_prefix", "/base")
    monkeypatch.setattr(sys, "prefix", prefix)
    facts = {**site.collect(monkeypatch), "interpreter": python_environment._interpreter([])}
    assert parse_python(facts).externally_managed is managed


@pytest.mark.parametrize(
    ("version", "flags", "free"),
    [
        ("3.13.5 (main, Jun 2025)", "", False),
        ("3.13.5 experimental free-threading build (main)", "", True),
        ("3.13.5 (main, Jun 2025)", "t", True),
    ],
)
@pytest.mark.parametrize(
    ("locks", "project"), [([], ""), (["poetry"], "poetry"), (["uv"], "uv"), (["poetry", "uv"], "uv")]
)
def test_what_the_interpreter_says_of_itself(
    version: str,
    flags: str,
    free: bool,
    locks: list[str],
    project: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prefix = tmp_path / ".venv"
    (prefix / "lib" / "pip").mkdir(parents=True)
    (prefix / "lib" / "pip" / "__main__.py").touch()
    (prefix / "pyvenv.cfg").write_text("home = /usr/bin")
    for lock in locks:
        (tmp_path / f"{lock}.lock").touch()
    monkeypatch.setattr(sys, "version", version)
    monkeypatch.setattr(sys, "abiflags", flags, raising=False)
    for name, path in (("prefix", str(prefix)), ("base_prefix", "/usr"), ("executable", "/v/bin/python")):
        monkeypatch.setattr(sys, name, path)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="riscv64"), raising=False)
    monkeypatch.setattr("sysconfig.get_platform", lambda: "linux-riscv64")
    assert python_environment._interpreter([str(tmp_path), str(prefix / "lib")]) == {
        "version": "3.13.5",
        "implementation": sys.implementation.name,
        "executable": "/v/bin/python",
        "prefix": str(prefix),
        "base_prefix": "/usr",
        "os": sys.platform,
        "machine": "riscv64",
        "platform": "linux-riscv64",
        "free_threaded": free,
        "externally_managed": False,
        "pyvenv_cfg": "home = /usr/bin",
        "project": project,
        "pip": True,
    }
    assert python_environment._interpreter([str(tmp_path)])["pip"] is False
    monkeypatch.delattr(os, "uname")
    assert python_environment._interpreter([])["machine"] == ""


@pytest.mark.parametrize(
    ("prefix", "project"),
    [(".pixi/envs/default", "pixi"), (".pixi/envs/cuda", "pixi"), (".pixi/default", ""), (".venv", "")],
)
def test_the_project_of_pixi(prefix: str, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / prefix).mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / prefix))
    assert python_environment._project() == ""
    (tmp_path / "pixi.lock").touch()
    assert python_environment._project() == project


METADATA = """Metadata-Version: 2.1\r
Name: Torch_Vision.X\r
Version: 1.0 \r
Requires-Dist: Torch>=2\r
Requires-Dist: requests\r
Requires-Dist: nvidia_cudnn_cu12 ; extra == "gpu"\r
\r
Version: 9\r
\r
Requires-Dist: numpy
"""


@pytest.mark.parametrize(
    ("entry", "file", "text", "expected"),
    [
        (
            "torch_vision-0.9.dist-info",
            "METADATA",
            METADATA,
            ("torch-vision-x", "1.0", ["Torch>=2", 'nvidia_cudnn_cu12 ; extra == "gpu"']),
        ),
        ("torch-0.9+cu1.dist-info", "METADATA", "Metadata-Version: 2.1", ("torch", "0.9+cu1", [])),
        ("torch-0.9-py3.8.egg-info", "PKG-INFO", "Version: 1", ("torch", "1", [])),
        ("torch-0.9.egg-info", "", "Name: torch\nVersion: 2", ("torch", "2", [])),
        ("torch-0.9.dist-info", "PKG-INFO", "Version: 1", None),
        ("torch-0.9.dist-info", "", "Version: 1", None),
        ("torch.txt", "", "Version: 1", None),
        ("requests-1.dist-info", "METADATA", "Name: torch", None),
    ],
)
def test_metadata(site: SitePackages, entry: str, file: str, text: str, expected: Any) -> None:
    site.write(f"{entry}/{file}".rstrip("/"), text)
    found = [
        (item["name"], item["version"], item["requires"])
        for item in python_environment._distributions(str(site.folder))
    ]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("nvidia/cudnn/lib/libcudnn.so.9", True),
        ("nvidia/cudnn/bin/cudnn64_9.dll", True),
        ("nvidia/cu13/bin/x86_64/cudart64_13.dll", True),
        ("nvidia/cudnn/include/libcudnn.so.9", False),
        ("nvidia/cudnn/lib/readme.txt", False),
        ("amd/cudnn/lib/libcudnn.so.9", False),
    ],
)
def test_libraries_of_nvidia_s_wheels(site: SitePackages, path: str, found: bool) -> None:
    site.write(path)
    site.write("nvidia/cudnn/lib/notes.md")
    folder, _, name = str(site.folder / path).rpartition("/")
    assert dict(python_environment._nvidia_libraries([str(site.folder)])) == ({folder: [name]} if found else {})


def test_cupy_on_disk(site: SitePackages) -> None:
    folders = [str(site.folder)]
    assert python_environment._cupy(folders, []) == {"package": "", "version_file": None, "wheel_file": None}
    for name in ("__init__.py", "_version.py", ".data/_wheel.json"):
        site.write(f"cupy/{name}", name)
    package = str(site.folder / "cupy")
    expected = {"package": package, "version_file": "_version.py", "wheel_file": ".data/_wheel.json"}
    assert python_environment._cupy(folders, []) == expected


def test_an_older_checkout_in_the_working_directory_is_a_folder_of_packages(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", ["", str(site.folder), "/none"])
    for name, is_one in (("notes", False), ("a.egg-info", True), ("b.dist-info", True)):
        work = tmp_path / name
        (work / name).mkdir(parents=True)
        monkeypatch.setattr(sys, "path", [str(work), str(site.folder), ""])
        expected = [*([str(work)] if is_one else []), str(site.folder)]
        assert list(python_environment._folders(str(work))) == expected


@pytest.mark.parametrize(
    ("platform", "tag"),
    [("linux-x86_64", "linux_x86_64"), ("win-amd64", "win_amd64"), ("macosx-14.0-arm64", "macosx_14_0_arm64")],
)
def test_platform_tag(site: SitePackages, monkeypatch: pytest.MonkeyPatch, platform: str, tag: str) -> None:
    assert parse_python(with_interpreter(site.collect(monkeypatch), platform=platform)).platform_tag == tag


@pytest.mark.parametrize(
    ("path", "hides"),
    [
        pytest.param("torch.py", True, id="module"),
        pytest.param("torch/__init__.py", True, id="package, as in a checkout of PyTorch"),
        pytest.param("torch/weights.pt", False, id="folder that is no package"),
        pytest.param("torch_utils.py", False, id="another name"),
        pytest.param("cupy.py", False, id="module that is not installed"),
    ],
)
def test_shadowing_in_the_working_directory(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, hides: bool
) -> None:
    site.distribution("torch", "2.9.0")
    site.torch("2.9.0")
    work = tmp_path / "project"
    (work / path).parent.mkdir(parents=True)
    (work / path).write_text("")
    python = parse_python(site.collect(monkeypatch, directory=work))
    assert python.shadowed_modules == ((str(work / path),) if hides else ())


def test_shadowing_earlier_on_the_path(site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("nvidia-ml-py", "13.580.82")
    site.write("pynvml.py")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "pynvml.py").write_text("")
    python = parse_python(site.collect(monkeypatch, before=[tmp_path / "scripts"]))
    assert python.shadowed_modules == (str(tmp_path / "scripts" / "pynvml.py"),)


def test_a_package_in_its_own_folder_hides_nothing(site: SitePackages, monkeypatch: pytest.MonkeyPatch) -> None:
    site.distribution("nvidia-ml-py", "13.580.82")
    site.write("pynvml.py")
    assert parse_python(site.collect(monkeypatch, directory=site.folder)).shadowed_modules == ()
    assert names(parse_python(site.collect(monkeypatch, directory=site.folder))) == ["nvidia-ml-py"]


def test_question_goes_to_the_interpreter_given(tmp_path: Path) -> None:
    own = ProbeContext(environ={}, directory=tmp_path)
    other = ProbeContext(environ={}, directory=tmp_path, interpreter="/venv/bin/python")
    assert (asked("python", own).in_environment, asked("python", other).in_environment) == (False, True)
    assert asked("python", own).arguments == {"directory": str(tmp_path), "active": ""}


def ask(interpreter: Path, directory: Path) -> dict[str, Any]:
    """Return the worker's facts under a real interpreter."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    setting = ProbeContext(environ=environ, directory=directory, interpreter=str(interpreter))
    answer = LocalHost(setting).ask([asked("python", setting)])()["python"]
    assert answer.state == "ok", answer.detail
    return dict(answer.facts)


@pytest.mark.environments
def test_real_environment(tmp_path: Path) -> None:
    interpreter = python_of("no-torch")
    python = parse_python(ask(interpreter, tmp_path))
    command = [str(interpreter), "-c", "import json, sys; print(json.dumps([sys.version.split()[0], sys.prefix]))"]
    said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert [str(python.version), python.prefix] == said
    assert (python.executable, python.environment, python.installer) == (str(interpreter), "venv", "pip")
    assert python.packages == ()


@pytest.mark.environments
def test_real_twins_of_pynvml(tmp_path: Path) -> None:
    python = parse_python(ask(python_of("pynvml-twice"), tmp_path))
    packages = [(package.name, str(package.version)) for package in python.packages or ()]
    assert packages == [("nvidia-ml-py", "13.580.82"), ("pynvml", "11.5.3")]


@pytest.mark.environments
def test_real_shadowing(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit('never imported')")
    python = parse_python(ask(python_of("torch-cpu"), tmp_path))
    assert python.shadowed_modules == (str(tmp_path / "torch.py"),)


def elf(
    strings: bytes, *entries: tuple[int, int], header_size: int = 56, load: tuple[int, int, int] = (0, 0, 4096)
) -> bytes:
    """Return an ELF file: header, program headers of `header_size` bytes, the dynamic section, the strings.

    entries: tags and values; the tables of strings starts at the file's byte 512. load: offset, address and size of
    the loaded segment, so that the string table's address is 512 - offset + address.
    """
    offset, address, size = load
    segments = [(1, 5, offset, address, 0, size), (4, 0, 0, 0, 0, 0), (2, 6, 320, 0, 0, 16 * (len(entries) + 2))]
    head = b"\x7fELF\x02\x01".ljust(32, b"\0") + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", header_size, 3)
    table = b"".join(struct.pack("<IIQQQQ", *segment).ljust(header_size, b"\0") for segment in segments)
    known = [*entries, (5, 512 - offset + address), (10, len(strings))]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in known)
    return (head.ljust(64, b"\0") + table).ljust(320, b"\0") + dynamic.ljust(192, b"\0") + strings


STRINGS = b"\0libc10.so\0libcudart.so.12\0$ORIGIN/../lib:${ORIGIN}:/opt\0"


@pytest.mark.parametrize("header_size", [56, 64])
@pytest.mark.parametrize("load", [(0, 0, 4096), (0, 0x1000, 513), (256, 0x4000, 257), (512, 0x5000, 1)])
@pytest.mark.parametrize("search", [15, 29], ids=["DT_RPATH", "DT_RUNPATH"])
def test_what_a_shared_library_needs(header_size: int, load: tuple[int, int, int], search: int) -> None:
    content = elf(STRINGS, (1, 1), (1, 11), (search, 27), (3, 1), header_size=header_size, load=load)
    found = python_environment._elf(io.BytesIO(content), "/x/lib")
    assert found is not None
    assert (found.needed, found.search) == (["libc10.so", "libcudart.so.12"], ["/x/lib/../lib", "/x/lib", "/opt"])
    assert found.strings == (512, len(STRINGS))


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02\x01", b"MZ".ljust(512), b"\x7fELF\x01\x01".ljust(512, b"\0")])
def test_what_is_no_shared_library(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.so").write_bytes(content)
    assert python_environment._open_elf(str(tmp_path / "x.so")) is None


def test_a_program_without_a_dynamic_section() -> None:
    head = b"\x7fELF\x02\x01".ljust(32, b"\0") + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, 1)
    content = head.ljust(64, b"\0") + struct.pack("<IIQQQQ", 1, 5, 0, 0, 0, 4096).ljust(56, b"\0")
    assert python_environment._elf(io.BytesIO(content), "/x/lib") is None


# Distributions and packages of conda that bear on GPUs, as their projects name them.
KEPT = """
    torch torchvision pytorch-lightning triton functorch pyg-lib fairscale apex deepspeed vllm sglang jax
    jaxlib flash-attn flashinfer-python xformers bitsandbytes mmcv detectron2 causal-conv1d mamba-ssm
    nvidia-cudnn-cu12 cuda-python pynvml cupy-cuda12x amd-cupy numpy scipy numba cuml-cu12 cudf-cu12 rmm-cu12
    dask-cuda tensorflow tf-nightly onnxruntime-gpu ort-nightly auto-gptq autoawq exllamav2 transformer-engine
"""
KEPT_OF_CONDA = """
    pytorch torchvision libtorch _pytorch_select cpuonly cuda-toolkit cudnn nccl cupy numpy tensorflow jaxlib
    numba triton libcublas libcufft libcusolver libcusparse libcurand python-3.11.4
"""


@pytest.mark.parametrize("name", KEPT.split())
def test_a_distribution_that_bears_on_gpus(name: str) -> None:
    assert name.startswith(python_environment.DISTRIBUTIONS)
    others = tuple(start for start in python_environment.DISTRIBUTIONS if not name.startswith(start))
    assert len(others) == len(python_environment.DISTRIBUTIONS) - 1, "one beginning names it"


@pytest.mark.parametrize("name", KEPT_OF_CONDA.split())
def test_a_package_of_conda_that_bears_on_gpus(name: str) -> None:
    assert name.startswith((*python_environment.CONDA_PACKAGES, "python-"))


@pytest.mark.parametrize("name", ["requests", "pandas", "scikit-learn", "tor", "nvidia"])
def test_a_distribution_that_does_not(name: str) -> None:
    assert not name.startswith(python_environment.DISTRIBUTIONS)


@pytest.mark.parametrize(
    ("before", "found"), [(b"", True), (b"\0", True), (b"\x1f", True), (b" ", False), (b"~", False), (b"\x7f", True)]
)
@pytest.mark.parametrize("flags", [b"sm_80", b"compute_90", b"gfx90a"])
def test_architectures_are_a_string_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes, found: bool, flags: bytes
) -> None:
    (tmp_path / "x.so").touch()
    monkeypatch.setattr(python_environment, "_constants", lambda file: before + flags + b"\0")
    read = python_environment._architectures(str(tmp_path / "x.so"))
    assert read == (flags.decode() if found else None)


@pytest.mark.parametrize("prefix", ["prefix", "base_prefix"])
@pytest.mark.parametrize("part", ["lib", "lib64"])
def test_the_loader_finds_libraries_of_the_interpreter(
    site: SitePackages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, part: str
) -> None:
    site.torch("2.9.0", cuda="12.8")
    (tmp_path / "root" / part).mkdir(parents=True)
    monkeypatch.setattr(sys, prefix, str(tmp_path / "root"))
    monkeypatch.setattr(python_environment, "_unresolved", lambda starts, places: set(places))
    found = python_environment._torch([str(site.folder)], [], [])
    assert str(tmp_path / "root" / part) in found["unresolved"]


@pytest.mark.parametrize(
    ("cache", "missing"),
    [
        ("\0libcudart.so.99\0libcudnn.so.99\0", set()),
        ("\0libcudart.so.99\0", {"libcudnn.so.99"}),
        ("xlibcudart.so.99\0libcudnn.so.99x", {"libcudart.so.99", "libcudnn.so.99"}),
        (None, {"libcudart.so.99", "libcudnn.so.99"}),
    ],
)
def test_a_library_that_the_loader_s_cache_names_is_not_missing(
    cache: str | None, missing: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = site_packages.elf(needed=["libcudart.so.99", "libcudnn.so.99"])
    (tmp_path / "libtorch_cuda.so").write_bytes(content)
    monkeypatch.setattr(python_environment, "_read", lambda path, most: cache)
    assert python_environment._unresolved([str(tmp_path / "libtorch_cuda.so")], [str(tmp_path)]) == missing
