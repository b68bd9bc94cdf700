"""What compilers print."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.compiler_version import parse_compiler_version

FSF = "\nCopyright (C) 2023 Free Software Foundation, Inc.\nThis is free software.\n"


@pytest.mark.parametrize(
    ("text", "kind", "version"),
    [
        pytest.param(f"gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0{FSF}", "gcc", (11, 4, 0), id="Ubuntu"),
        pytest.param(f"cc (Debian 12.2.0-14+deb12u1) 12.2.0{FSF}", "gcc", (12, 2, 0), id="Debian, cc"),
        pytest.param(f"gcc (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3){FSF}", "gcc", (14, 2, 1), id="Fedora"),
        pytest.param(
            f"x86_64-conda-linux-gnu-cc (conda-forge gcc 12.3.0-2) 12.3.0{FSF}", "gcc", (12, 3, 0), id="conda"
        ),
        pytest.param("Ubuntu clang version 14.0.0-1ubuntu1.1\nTarget: x86_64", "clang", (14, 0, 0), id="clang"),
        pytest.param("Apple clang version 15.0.0 (clang-1500.3.9.4)\n", "clang", (15, 0, 0), id="Apple"),
        pytest.param(
            "Microsoft (R) C/C++ Optimizing Compiler Version 19.38.33133 for x64\n", "cl", (19, 38, 33133), id="cl"
        ),
    ],
)
def test_compiler(text: str, kind: str, version: tuple[int, ...]) -> None:
    compiler = parse_compiler_version(text)
    assert (compiler.kind, compiler.version) == (kind, version)


@pytest.mark.parametrize("text", ["", "nvc 24.5-1 64-bit target on x86-64 Linux\n", f"gcc{FSF}"])
def test_another_text(text: str) -> None:
    with pytest.raises(ValueError, match="version of"):
        parse_compiler_version(text)
