"""PyTorch, merged from its files and from its import."""

from __future__ import annotations

from gpudoctor.conclusions.installed import torch_fact, whole_torch
from gpudoctor.model import Torch, TorchRuntime
from gpudoctor.model.conclusions import Pytorch

FIELDS = ("installed", "version", "build", "cuda_version", "hip_version", "architectures")


def pytorch(torch: Torch | None, torch_runtime: TorchRuntime | None) -> Pytorch:
    """Return PyTorch as its files show it, with what its import shows in addition."""
    merged = whole_torch(torch, torch_runtime)
    known = {name: getattr(merged, name) for name in (*FIELDS, "conda_build", "conda_cpuonly")}
    facts = {name: torch_fact(name, torch, torch_runtime) for name in FIELDS if known[name] is not None}
    return Pytorch(**known, facts=facts)
