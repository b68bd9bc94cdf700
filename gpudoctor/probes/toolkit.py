"""CUDA toolkits, the host compiler, and the CUDA libraries that the loader finds outside of wheels."""

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from gpudoctor.model import SharedLibrary, Toolkit, ToolkitInstall
from gpudoctor.model.versions import CudaVersion
from gpudoctor.parsers import attempt
from gpudoctor.parsers.libraries import is_cuda_soname, parse_ldconfig
from gpudoctor.parsers.toolkit import (
    Compiler,
    parse_compiler_version,
    parse_folder_name,
    parse_newest_gcc,
    parse_nvcc_version,
    parse_version_json,
    parse_version_txt,
)
from gpudoctor.probes.reading import Facts, all_listed, file_name, file_texts, found, is_linux, listed, output

T = TypeVar("T")

ROOTS = ("/usr/local/cuda*", "/opt/cuda*")
# A bracket makes a glob of a name, so that a folder without it is skipped and not reported as an error.
VERSION_FILES = ("version.jso[n]", "version.tx[t]")
HOST_CONFIGS = ("include/crt/host_config.[h]", "targets/*/include/crt/host_config.h")
CONTENTS = ("bin/nvcc", "bin/nvcc.exe", "include/cuda.h", "targets/*/include/cuda.h", "lib64/libcudart.so.*")
_CONTENT = r"bin/nvcc(?:\.exe)?|(?:targets/[^/]+/)?include/cuda\.h|lib64/libcudart\.so\.[^/]*"
LIBRARY_FILES = ("libcu*.so*", "libnccl.so*", "libnvrtc*.so*", "libnvJitLink.so*")
# PyTorch hands CC to nvcc, NVCC_CCBIN is nvcc's own variable, and gcc on PATH is what it takes without them
COMPILER_VARIABLES = ("CC", "NVCC_CCBIN")
# macOS answers these names with an offer to install a compiler
COMPILERS = {"darwin": (), "win32": ("cl",)}.get(sys.platform, ("gcc", "cc"))
MOST_FOLDERS = 64  # of a search path


def reading_list(environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what to read for the section, which depends on the variables that name toolkits and compilers."""
    home = _home(environ.get)
    roots = [*ROOTS, *(_escape(root) for root in _named_roots(environ, home))]
    libraries = [
        f"{_escape(folder)}/{file}" for folder in _folders(environ.get("LD_LIBRARY_PATH", "")) for file in LIBRARY_FILES
    ]
    return {
        "files": [f"{root}/{name}" for root in roots for name in (*VERSION_FILES, *HOST_CONFIGS)],
        "listings": [*(f"{root}/{name}" for root in roots for name in CONTENTS), *roots, *libraries],
        "links": roots,
        "commands": {**_compilers(environ), **_nvccs(home)},
        "lines": {"*/host_config.h": ("__GNUC__",)},
        "instead": {"cc": "gcc"} if "cc" in COMPILERS else {},
        "values": ["platform", *(f"variable:{name}" for name in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"))],
        "which": ["nvcc"],
    }


def _home(variable: Callable[[str], str | None]) -> str:
    """Return CUDA_HOME, else CUDA_PATH: PyTorch's order, which takes an empty one for an unset one."""
    return (variable("CUDA_HOME") or variable("CUDA_PATH") or "").rstrip("/\\")


def _named_roots(environ: Mapping[str, str], home: str) -> list[str]:
    """Return the folders that the environment offers as a toolkit: its own, and those whose bin/ is on PATH."""
    folders = [folder.rstrip("/\\") for folder in environ.get("PATH", "").split(os.pathsep)[:MOST_FOLDERS]]
    parents = [folder[: -len("/bin")] for folder in folders if folder.endswith(("/bin", "\\bin"))]
    return list(dict.fromkeys(root for root in (home, *parents) if root))


def _folders(search_path: str) -> list[str]:
    """Return the folders of LD_LIBRARY_PATH, in which an empty one is the working directory."""
    folders = re.split("[:;]", search_path)[:MOST_FOLDERS] if search_path else []
    return list(dict.fromkeys(folder.rstrip("/") or ("/" if folder else ".") for folder in folders))


def _escape(path: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", path)


def _compilers(environ: Mapping[str, str]) -> dict[str, list[str]]:
    commands: dict[str, list[str]] = {}
    for variable in COMPILER_VARIABLES:
        with contextlib.suppress(ValueError):  # an open quote
            words = shlex.split(environ.get(variable, ""))
            if words:
                commands[variable] = [*words, "--version"]
    return {**commands, **{name: [name] if name == "cl" else [name, "--version"] for name in COMPILERS}}


def _nvccs(home: str) -> dict[str, list[str]]:
    commands = {"nvcc": ["nvcc", "--version"]}
    return {**commands, "cuda-home-nvcc": [f"{home}/bin/nvcc", "--version"]} if home else commands


def parse_toolkit(facts: Facts) -> Toolkit:
    """Return the section, without what the loader's cache gives."""
    home = _home(lambda name: _variable(facts, name))
    nvcc_path, nvcc_version = _nvcc(facts, home)
    toolkits = _toolkits(facts, nvcc_path, nvcc_version)
    compiler = _compiler(facts)
    return Toolkit(
        nvcc_path=nvcc_path,
        nvcc_version=nvcc_version,
        toolkits=tuple(toolkit for toolkit, _ in toolkits),
        library_path_libraries=_library_path_libraries(facts) if is_linux(facts) else None,
        host_compiler=compiler.kind if compiler else _no_compiler(facts),
        host_compiler_version=compiler.version if compiler else None,
        host_compiler_max=_newest_gcc(facts, nvcc_path, nvcc_version, toolkits),
    )


def parse_loader_cache(facts: Facts) -> Toolkit:
    """Return the part of the section that the loader's cache gives, which was asked with the driver's files."""
    cache = attempt(parse_ldconfig, output(facts, "ldconfig"))
    libraries = None if cache is None else tuple(library for library in cache if is_cuda_soname(library.soname))
    return Toolkit(system_libraries=libraries)


def _variable(facts: Facts, name: str) -> str | None:
    """Return the variable's value, "" if it is unset; None if that was not asked."""
    answer = facts.get("values", {}).get(f"variable:{name}", {})
    return (answer["value"] or "") if "value" in answer else None


def _nvcc(facts: Facts, home: str) -> tuple[str | None, CudaVersion | None]:
    on_path = found(facts, "nvcc")
    if on_path or on_path is None:
        return on_path, attempt(parse_nvcc_version, output(facts, "nvcc"))
    of_home = next((path for path in _nvcc_files(home) if path in all_listed(facts)), "") if home else ""
    return of_home, attempt(parse_nvcc_version, output(facts, "cuda-home-nvcc"))


def _nvcc_files(root: str) -> tuple[str, str]:
    return f"{root}/bin/nvcc", f"{root}/bin/nvcc.exe"


def _toolkits(
    facts: Facts, nvcc_path: str | None, nvcc_version: CudaVersion | None
) -> list[tuple[ToolkitInstall, tuple[str, ...]]]:
    """Return the toolkits, each with all paths that lead to it."""
    aliases: dict[str, list[str]] = {}
    for path, link in facts.get("links", {}).items():
        if "target" in link:
            aliases.setdefault(link["target"], []).append(path)
    toolkits = []
    for target, paths in sorted(aliases.items()):
        install = _toolkit(facts, target, paths, nvcc_version if _belongs(nvcc_path, [target, *paths]) else None)
        if install:
            toolkits.append((install, (target, *paths)))
    return toolkits


def _toolkit(facts: Facts, target: str, paths: list[str], nvcc_version: CudaVersion | None) -> ToolkitInstall | None:
    """Return the toolkit in the folder `target`, which `paths` lead to; None if there is none."""
    rests = {file[len(path) + 1 :] for path in paths for file in all_listed(facts) if file.startswith(f"{path}/")}
    files = {rest for rest in rests if re.fullmatch(_CONTENT, rest)}  # of this folder, not of a toolkit below it
    has_nvcc = not files.isdisjoint(("bin/nvcc", "bin/nvcc.exe"))
    has_headers = any(file.endswith("include/cuda.h") for file in files)
    version = next((version for path in paths if (version := _version_of(facts, path))), None)
    # a folder on PATH that has only a script named nvcc is not a toolkit
    named = "cuda" in file_name(target) and bool(files)
    if not (version or named or (has_nvcc and has_headers)):
        return None
    return ToolkitInstall(
        path=target, version=version or attempt(parse_folder_name, target) or nvcc_version, has_nvcc=has_nvcc
    )


def _version_of(facts: Facts, root: str) -> CudaVersion | None:
    files = facts.get("files", {})
    by_json = attempt(parse_version_json, files.get(f"{root}/version.json", {}).get("text"))
    return by_json or attempt(parse_version_txt, files.get(f"{root}/version.txt", {}).get("text"))


def _belongs(nvcc_path: str | None, roots: list[str] | tuple[str, ...]) -> bool:
    return bool(nvcc_path) and any(nvcc_path in _nvcc_files(root) for root in roots)


def _newest_gcc(
    facts: Facts,
    nvcc_path: str | None,
    nvcc_version: CudaVersion | None,
    toolkits: list[tuple[ToolkitInstall, tuple[str, ...]]],
) -> int | None:
    """Return the limit in the header of the toolkit that nvcc belongs to: by its path, else by its version."""
    which = facts.get("which", {}).get("nvcc") or {}
    by_path = [paths for _, paths in toolkits if _belongs(nvcc_path, paths) or _belongs(which.get("target"), paths)]
    by_version = [paths for toolkit, paths in toolkits if nvcc_version and toolkit.version == nvcc_version]
    for path in (path for paths in (*by_path, *by_version) for path in paths):
        for text in _host_configs(facts, path):
            limit = attempt(parse_newest_gcc, text)
            if limit is not None:
                return limit
    return None


def _host_configs(facts: Facts, root: str) -> Iterator[str]:
    for name in ("include/crt/host_config.h", "targets/*/include/crt/host_config.h"):
        yield from file_texts(facts, f"{_escape(root)}/{name}").values()


def _library_path_libraries(facts: Facts) -> tuple[SharedLibrary, ...] | None:
    search_path = _variable(facts, "LD_LIBRARY_PATH")
    if search_path is None:
        return None
    libraries: dict[str, SharedLibrary] = {}
    for folder in _folders(search_path):
        for file in LIBRARY_FILES:
            for path in listed(facts, f"{_escape(folder)}/{file}") or ():
                name = file_name(path)
                if is_cuda_soname(name):
                    libraries.setdefault(name, SharedLibrary(soname=name, path=path))
    return tuple(libraries.values())


def _compiler(facts: Facts) -> Compiler | None:
    """Return the first compiler that said its version; cl says it on standard error."""
    commands = facts.get("commands", {})
    for name in (*COMPILER_VARIABLES, "gcc", "cc", "cl"):
        answer: dict[str, Any] = commands.get(name, {})
        compiler = attempt(parse_compiler_version, answer.get("stdout") or answer.get("stderr"))
        if compiler:
            return compiler
    return None


def _no_compiler(facts: Facts) -> str | None:
    """Return "" if no compiler is there, None if one may be."""
    names = [name for name in ("gcc", "cc", "cl") if name in facts.get("commands", {})]
    missing = all(facts["commands"][name].get("error", "").startswith("ENOENT") for name in names)
    return "" if names and missing else None
