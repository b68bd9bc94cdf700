"""The work that is tuned: the small protocol that the built-in workloads follow, and that a user's own follows too.

A workload is named on the command line as MODULE:ATTRIBUTE or FILE.py:ATTRIBUTE. The attribute is called with the
device ("cuda:0", "cpu", "mps") and a Precision, and returns an object with two methods:

    class Training:
        def __init__(self, device, precision):
            self.device, self.precision = device, precision
            self.model = Net().to(device)
            self.optimizer = torch.optim.AdamW(self.model.parameters())

        def make_batch(self, size):
            return torch.randn(size, 3, 224, 224, device=self.device), torch.randint(1000, (size,), device=self.device)

        def step(self, batch):
            images, labels = batch
            with self.precision.autocast():
                loss = cross_entropy(self.model(images), labels)
            self.precision.backward(loss, self.optimizer)
            return loss

Nothing else is needed. If the object also has these, they are used:

    model                     for channels_last and torch.compile, and for the errors of outputs and gradients
    unit                      what a sample is called: "images"
    samples_per_batch(size)   if a batch of `size` contains another number of samples
    predict(batch)            for --mode inference; without it, the model is called with the batch's first part
    dataset                   a torch Dataset: shows whether it fits on the device; its DataLoader's workers are tuned
"""

from collections.abc import Callable
from typing import Any, Protocol

from gpudoctor.tuning.workers.precision import Precision


class Workload(Protocol):
    """One piece of work, built for a device and a precision."""

    def make_batch(self, size: int) -> Any:
        """Return a batch of `size` samples on the device: random with zero mean, never constant."""

    def step(self, batch: Any) -> Any:
        """Do the work once. Return the loss of a training step, or the outputs."""


WorkloadFactory = Callable[[str, Precision], Workload]
