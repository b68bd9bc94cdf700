"""A small training with a fault of its first argument's name, or none ("healthy"); run under `gpudoctor run` by tests.

The other arguments: steps; "cpu" for a machine without a GPU; "-v" prints the weights' hash at the end.
"""

import hashlib
import sys
import time
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

FAULT, STEPS = sys.argv[1], int(sys.argv[2])
DEVICE = "cpu" if "cpu" in sys.argv else "cuda"
BATCH = 32
WIDE = 1024 if FAULT in ("amp-not-used", "tf32-not-used") else 64


class Examples(Dataset[Any]):  # type: ignore[misc]
    """Examples that take a while to load if the fault is the input."""

    def __init__(self, size: int) -> None:
        self.inputs = torch.randn(size, WIDE)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> torch.Tensor:
        if FAULT == "input-bound":
            time.sleep(0.001)
        return self.inputs[index]

    def __getitems__(self, indexes: list[int]) -> list[torch.Tensor]:
        return [self[index] for index in indexes]


class Deep(torch.nn.Module):  # type: ignore[misc]
    """Two layers, with many small operations in between if the fault is their number."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(WIDE, WIDE), torch.nn.Linear(WIDE, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:  # COMPILED
        hidden = torch.relu(self.first(inputs))
        for _ in range(300 if FAULT == "launch-bound" else 0):
            hidden = hidden * 0.999
        return self.second(hidden)


def batches(data: Examples, steps: int) -> Any:
    """Yield a batch for each step."""
    if FAULT == "transfer-bound":
        for step in range(steps):
            begin = step * BATCH % len(data)
            yield torch.stack([data.inputs[index].to("cuda") for index in range(begin, begin + BATCH)])  # TRANSFER
        return
    for batch in DataLoader(data, batch_size=BATCH, pin_memory=FAULT != "input-bound"):  # INPUT
        yield batch.to(DEVICE, non_blocking=True)


def main() -> None:
    """Train."""
    torch.manual_seed(0)
    if FAULT == "tf32-healthy":
        torch.set_float32_matmul_precision("high")
    data = Examples(BATCH * (STEPS if FAULT != "transfer-bound" else 4))
    model: Any = Deep() if FAULT == "gpu-never-used" else Deep().to(DEVICE)
    function = model
    if FAULT in ("recompiles-each-step", "compiled"):
        torch._dynamo.config.automatic_dynamic_shapes = False
        function = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with_autocast = torch.autocast(DEVICE, torch.bfloat16, enabled=FAULT not in ("amp-not-used", "tf32-not-used"))
    total: Any = 0.0
    source = [data.inputs[:BATCH]] * STEPS if FAULT == "gpu-never-used" else batches(data, STEPS)
    kept: list[torch.Tensor] = []
    if FAULT == "memory-nearly-full":
        kept = [torch.empty(27 * 2**20, dtype=torch.uint8, device=DEVICE) for _ in range(16)]
    if FAULT == "memory-fragmented":
        kept = [torch.empty(3 * 2**19, dtype=torch.uint8, device=DEVICE) for _ in range(200)][::2]
    for step, inputs in enumerate(source):
        rows = 1 + step % 12 if FAULT == "recompiles-each-step" else BATCH
        with with_autocast:
            loss = function(inputs[:rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if FAULT == "tensors-cloned-each-step":
            kept = [value.detach().clone() for value in model.parameters()]  # CLONE
        total += loss.detach()
        if FAULT == "synchronises-each-step" or step % 50 == 49:
            assert loss.item() >= 0  # SYNCHRONISE
    if "-v" in sys.argv:
        weights = b"".join(value.detach().cpu().numpy().tobytes() for value in model.parameters())
        print(hashlib.sha256(weights).hexdigest(), float(total), torch.rand(1).item(), len(kept))


if __name__ == "__main__":
    main()
