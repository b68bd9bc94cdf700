"""The header that refuses host compilers."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.host_config import parse_newest_gcc

CUDA_12_4 = """#if defined(__GNUC__)

#if __GNUC__ > 13

#error -- unsupported GNU version! gcc versions later than 13 are not supported!

#endif /* __GNUC__ > 13 */

#if defined(__clang__) && !defined(__ibmxl_vrm__) && !defined(__ICC)
#if (__clang_major__ >= 18) || (__clang_major__ < 3)
"""


def test_newest_gcc() -> None:
    assert parse_newest_gcc(CUDA_12_4) == 13
    assert parse_newest_gcc("# if (__GNUC__ > 9)\n") == 9


@pytest.mark.parametrize("text", ["", "#include <crt/host_config.h>\n", "#endif /* __GNUC__ > 13 */\n"])
def test_another_header(text: str) -> None:
    with pytest.raises(ValueError, match="no limit of __GNUC__"):
        parse_newest_gcc(text)
