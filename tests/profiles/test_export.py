"""Each format as a reader of its own takes it."""

import json
import shlex
import sys
from dataclasses import replace

import pytest

from gpudoctor.errors import UsageError
from gpudoctor.model.profile import Profile
from gpudoctor.parsers.profile_variables import all_variables
from gpudoctor.profiles.env_file import parse
from gpudoctor.profiles.export import FORMATS, export
from tests.profiles.samples import LEAST, PROFILE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BOTH = pytest.mark.parametrize("profile", [PROFILE, LEAST], ids=["whole", "least"])


def settings(text: str) -> dict[str, str]:
    """Return the lines "name: value" of a flat YAML file, quotes removed."""
    pairs = (line.split(": ", 1) for line in text.splitlines() if ": " in line and not line.startswith("#"))
    return {name.strip(): value.strip("'\"") for name, value in pairs}


def test_all_formats_are_there() -> None:
    assert FORMATS == ("env", "json", "toml", "dockerfile", "compose", "accelerate", "deepspeed")


@BOTH
def test_env_is_the_file_itself(profile: Profile) -> None:
    assert parse(export(profile, "env"), "x") == profile


@BOTH
def test_json_and_toml_say_the_same(profile: Profile) -> None:
    document = json.loads(export(profile, "json"))
    assert document["schema"] == "gpudoctor/profile/1"
    assert (document["batch_size"], document["max_batch_size"]) == (profile.batch_size, profile.max_batch_size)
    assert document["environment"] == all_variables(profile)
    known = {name: value for name, value in document.items() if value is not None}
    assert tomllib.loads(export(profile, "toml")) == known


@BOTH
def test_the_dockerfile_sets_every_variable(profile: Profile) -> None:
    words = [shlex.split(line) for line in export(profile, "dockerfile").splitlines()]
    assert {instruction for instruction, _ in words} == {"ENV"}
    assert dict(assignment.split("=", 1) for _, assignment in words) == all_variables(profile)


@BOTH
def test_compose_sets_every_variable_as_a_text(profile: Profile) -> None:
    first, *lines = export(profile, "compose").splitlines()
    assert first == "environment:"
    assert all(line.startswith("  ") and line.endswith('"') for line in lines)  # quoted: no YAML reader sees a number
    assert settings("\n".join(lines)) == all_variables(profile)


@pytest.mark.parametrize(("precision", "mixed"), [("bf16", "bf16"), ("fp16", "fp16"), ("fp32", "no"), ("tf32", "no")])
def test_accelerate(precision: str, mixed: str) -> None:
    text = export(replace(PROFILE, precision=precision, device="cuda:1"), "accelerate")
    assert settings(text) == {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "NO",
        "mixed_precision": mixed,
        "num_machines": "1",
        "num_processes": "1",
        "machine_rank": "0",
        "main_training_function": "main",
        "use_cpu": "false",
        "gpu_ids": "1",
    }
    assert "distributed_type: 'NO'\n" in text  # without quotes YAML reads false
    assert "# batch size: 256\n" in text


@pytest.mark.parametrize("physical", ["3", "GPU-5f1c2d3e-0000-0000-0000-000000000000"])
def test_accelerate_gets_the_physical_device(physical: str) -> None:
    """With CUDA_VISIBLE_DEVICES=3 it is cuda:0 for torch; accelerate sets that variable to what the file says."""
    assert settings(export(replace(PROFILE, physical_device=physical), "accelerate"))["gpu_ids"] == physical


def test_accelerate_compiles_and_knows_the_cpu() -> None:
    found = settings(export(replace(LEAST, compile=True), "accelerate"))
    assert (found["use_cpu"], found["dynamo_backend"]) == ("true", "INDUCTOR")
    assert "gpu_ids" not in found


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp32", "tf32"])
def test_deepspeed(precision: str) -> None:
    configuration = json.loads(export(replace(PROFILE, precision=precision), "deepspeed"))
    assert configuration == {
        "train_micro_batch_size_per_gpu": 256,
        "gradient_accumulation_steps": 1,
        "bf16": {"enabled": precision == "bf16"},
        "fp16": {"enabled": precision == "fp16"},
    }


@pytest.mark.parametrize(("format_name", "tool"), [("accelerate", "accelerate"), ("deepspeed", "DeepSpeed")])
def test_what_trains_networks_has_no_complex_precision(format_name: str, tool: str) -> None:
    with pytest.raises(UsageError, match=f"^{tool} has no precision complex64"):
        export(replace(PROFILE, precision="complex64"), format_name)


def test_deepspeed_accumulates() -> None:
    configuration = json.loads(export(replace(PROFILE, accumulation_steps=4), "deepspeed"))
    assert configuration["gradient_accumulation_steps"] == 4


def test_what_people_read_is_indented() -> None:
    assert export(PROFILE, "json").startswith('{\n  "schema": "gpudoctor/profile/1",\n  "device": "cuda:0",\n')
    assert '\n  "environment": {\n    "GPUDOCTOR_SCHEMA"' in export(PROFILE, "json")
    assert export(PROFILE, "deepspeed").endswith('"fp16": {\n    "enabled": false\n  }\n}\n')


@pytest.mark.parametrize("precision", ["bf16", "tf32"])
def test_tf32_is_a_hint_next_to_the_format(precision: str) -> None:
    text = export(replace(PROFILE, precision=precision), "accelerate")
    assert ("# precision: tf32" in text) is (precision == "tf32")
