"""The environment variables that are kept."""

from __future__ import annotations

from gpudoctor.probes.environment import LONGEST_VALUE, parse_environment


def test_only_known_variables_are_kept() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "", "AWS_SECRET_ACCESS_KEY": "x", "HOME": "/home/ann", "VIRTUAL_ENV": "/venv"}
    environment = parse_environment(environ)
    assert environment.variables == {"CUDA_VISIBLE_DEVICES": ""}
    assert environment.get("CUDA_DEVICE_ORDER") is None


def test_long_values_are_cut() -> None:
    environment = parse_environment({"LD_LIBRARY_PATH": "/x:" * (LONGEST_VALUE + 1)})
    assert environment.get("LD_LIBRARY_PATH") == "/x:" * (LONGEST_VALUE // 3) + "/"
