"""A profile in the formats of other tools. Each takes over what its format has a place for."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from gpudoctor.errors import UsageError
from gpudoctor.model.codec import to_json
from gpudoctor.model.profile import SCHEMA, Profile
from gpudoctor.model.tuning import PRECISIONS
from gpudoctor.parsers.profile_variables import FIELDS, all_variables
from gpudoctor.profiles import env_file


def export(profile: Profile, format_name: str) -> str:
    """Return the profile as the text of a file in one of FORMATS.

    Raises:
        UsageError: the format has no place for the profile's precision.
    """
    return _FORMATS[format_name](profile)


def document(profile: Profile) -> dict[str, Any]:
    """Return the profile as a JSON value: its fields, and under "environment" all of its variables."""
    fields = {name: to_json(getattr(profile, name)) for name in FIELDS}
    return {"schema": SCHEMA, **fields, "environment": all_variables(profile)}


def _toml(profile: Profile) -> str:
    """Return it in TOML, which has no null: what is unknown, or has no limit, is left out."""
    fields = document(profile)
    environment = fields.pop("environment")
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items() if value is not None]
    return "\n".join([*lines, "", "[environment]", *(f"{n} = {json.dumps(v)}" for n, v in environment.items())]) + "\n"


def _dockerfile(profile: Profile) -> str:
    """Return ENV instructions. The quotes are Docker's; the characters of a value need no escape.

    Source: https://docs.docker.com/reference/dockerfile/#env
    """
    return "".join(f'ENV {name}="{value}"\n' for name, value in all_variables(profile).items())


def _compose(profile: Profile) -> str:
    """Return the `environment` of a service. Quoted, 1 stays a text and no YAML reader takes it for a number.

    Source: https://docs.docker.com/reference/compose-file/services/#environment
    """
    return "environment:\n" + "".join(f'  {name}: "{value}"\n' for name, value in all_variables(profile).items())


def _accelerate(profile: Profile) -> str:
    """Return a file for `accelerate launch --config_file`, for one process on the device.

    `gpu_ids` becomes CUDA_VISIBLE_DEVICES, so that they are the numbers of the machine, not of a process.

    Source: ClusterConfig in src/accelerate/commands/config/config_args.py; it refuses a key that it does not know.
    """
    kind, _, index = profile.device.partition(":")
    lines = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "'NO'",  # without quotes, YAML reads false
        "mixed_precision": f"'{_autocast(profile, 'accelerate') or 'no'}'",
        "num_machines": "1",
        "num_processes": "1",
        "machine_rank": "0",
        "main_training_function": "main",
        "use_cpu": "true" if kind == "cpu" else "false",
        **({"gpu_ids": f"'{profile.physical_device or index}'"} if kind == "cuda" else {}),
    }
    compiled = "dynamo_config:\n  dynamo_backend: INDUCTOR\n" if profile.compile else ""
    hints = f"# batch size: {profile.batch_size}\n"  # what the format has no place for
    if profile.precision == "tf32":
        hints += "# precision: tf32, by torch.set_float32_matmul_precision('high') in the program\n"
    return hints + "".join(f"{name}: {value}\n" for name, value in lines.items()) + compiled


def _deepspeed(profile: Profile) -> str:
    """Return a DeepSpeed configuration: batch size and precision; the program gives the rest.

    Source: https://www.deepspeed.ai/docs/config-json/
    """
    autocast = _autocast(profile, "DeepSpeed")
    configuration = {
        "train_micro_batch_size_per_gpu": profile.batch_size,
        "gradient_accumulation_steps": profile.accumulation_steps or 1,
        "bf16": {"enabled": autocast == "bf16"},
        "fp16": {"enabled": autocast == "fp16"},
    }
    return json.dumps(configuration, indent=2) + "\n"


def _autocast(profile: Profile, tool: str) -> str:
    """Return "bf16" or "fp16"; empty if float32 stays as it is.

    Raises:
        UsageError: the precision is none of a network's.
    """
    if profile.precision not in PRECISIONS:
        raise UsageError(
            f"{tool} has no precision {profile.precision}: the profile belongs to a different kind of workload"
        )
    return profile.precision if profile.precision in ("bf16", "fp16") else ""


_FORMATS: Mapping[str, Callable[[Profile], str]] = {
    "env": env_file.render,
    "json": lambda profile: json.dumps(document(profile), indent=2, allow_nan=False) + "\n",
    "toml": _toml,
    "dockerfile": _dockerfile,
    "compose": _compose,
    "accelerate": _accelerate,
    "deepspeed": _deepspeed,
}
FORMATS = tuple(_FORMATS)
