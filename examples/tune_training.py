"""A small training script, and the few lines that let gpudoctor find its batch size and precision.

Measure it:     gpudoctor tune --workload examples/tune_training.py:Workload
Then train:     python examples/tune_training.py --batch-size 256

The script learns to distinguish four machine faults by the vibrations that three sensors measure. Everything up to
`main` is an ordinary training script. Only `Workload` at the end was added.
"""

import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

SENSORS, READINGS, FAULTS = 3, 1024, 4


class FaultClassifier(nn.Module):
    """Convolutions over time, then the average over time, then one score for each fault."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(SENSORS, 64, kernel_size=15, stride=2, padding=7),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Conv1d(64, 128, kernel_size=15, stride=2, padding=7),
            nn.BatchNorm1d(128),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.scores = nn.Linear(128, FAULTS)

    def forward(self, readings):
        """Return scores, shape (size, faults), of readings, shape (size, sensors, readings)."""
        return self.scores(self.features(readings))


def make_optimizer(model):
    """Return the optimiser that the script trains with."""
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def make_dataset(size=2000):
    """Return labelled recordings: each fault hums at a frequency of its own, below the noise."""
    faults = torch.randint(FAULTS, (size,))
    frequencies = 0.02 * (faults + 1)
    hum = torch.sin(2 * torch.pi * frequencies[:, None] * torch.arange(READINGS))
    return TensorDataset(0.5 * hum[:, None, :] + torch.randn(size, SENSORS, READINGS), faults)


def main():
    """Train for one epoch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    batch_size = parser.parse_args().batch_size

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = FaultClassifier().to(device)
    optimizer = make_optimizer(model)
    for step, (readings, faults) in enumerate(DataLoader(make_dataset(), batch_size, shuffle=True)):
        loss = cross_entropy(model(readings.to(device)), faults.to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.3f}")


class Workload:
    """What gpudoctor measures: the same model, loss and optimiser, on random readings."""

    unit = "recordings"

    def __init__(self, device, precision):
        self.device, self.precision = device, precision
        self.model = FaultClassifier().to(device)
        self.optimizer = make_optimizer(self.model)
        self.dataset = (
            make_dataset()
        )  # optional: gpudoctor then also tunes DataLoader workers, and says if it fits on the GPU

    def make_batch(self, size):
        readings = torch.randn(size, SENSORS, READINGS, device=self.device)
        return readings, torch.randint(FAULTS, (size,), device=self.device)

    def step(self, batch):
        readings, faults = batch
        with self.precision.autocast():
            loss = cross_entropy(self.model(readings), faults)
        self.precision.backward(loss, self.optimizer)
        return loss


if __name__ == "__main__":
    main()
