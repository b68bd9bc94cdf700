"""The real Lightning `Tuner` and `accelerate.find_executable_batch_size`, each asked for a batch size on the CPU."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from gpudoctor.tuning.workers.precision import make_precision
from tests.benchmarks.real_workloads import Training

STEPS = 3
"""Of one trial: Lightning's default."""

ACCELERATE_START = 128
"""Where accelerate begins if nobody says more: it never grows."""


def _lightning(mode: str) -> Callable[[type[Training], str], int]:
    """Return Lightning's search in this mode: "power" or "binsearch"."""

    def find(workload: type[Training], precision: str) -> int:
        import lightning
        from lightning.pytorch.tuner import Tuner

        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

        class Module(lightning.LightningModule):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.network, self.batch_size = workload.network(), 2

            def training_step(self, batch: Any, _: int) -> Any:
                samples, labels = batch
                return cross_entropy(self.network(samples), labels)

            def configure_optimizers(self) -> Any:
                return torch.optim.AdamW(self.parameters(), lr=1e-3)

            def train_dataloader(self) -> Any:
                samples = workload("cpu", make_precision("fp32", "cpu")).make_batch(STEPS * workload.largest)
                return DataLoader(TensorDataset(*samples), batch_size=self.batch_size, shuffle=True)

        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer = lightning.Trainer(
                accelerator="cpu",
                precision="bf16-mixed" if precision == "bf16" else "32-true",
                max_epochs=1,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                default_root_dir=folder,
            )
            found = Tuner(trainer).scale_batch_size(
                Module(), mode=mode, steps_per_trial=STEPS, init_val=2, max_val=workload.largest
            )
        return int(found or 0)

    return find


def _accelerate(workload: type[Training], precision: str) -> int:
    """Return what accelerate finds from its own start: the first size that runs."""
    from accelerate import find_executable_batch_size

    @find_executable_batch_size(starting_batch_size=min(ACCELERATE_START, workload.largest))  # type: ignore[misc,untyped-decorator,unused-ignore]
    def train(batch_size: int) -> int:
        training = workload("cpu", make_precision(precision, "cpu"))
        for _ in range(STEPS):
            training.step(training.make_batch(batch_size))
        return batch_size

    return int(train())


TUNERS: dict[str, Callable[[type[Training], str], int]] = {
    "Lightning power": _lightning("power"),
    "Lightning binsearch": _lightning("binsearch"),
    "accelerate from 128": _accelerate,
}
