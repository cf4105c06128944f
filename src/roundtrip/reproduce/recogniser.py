"""A small convolutional classifier, trained on real digits, that judges generated ones."""

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

BATCH = 128
HIGHEST_RATE = 3e-3
"""Highest learning rate."""


class Recogniser:
    """Classifier of 28 x 28 images.

    Parameters
    ----------
    epochs : int
        Passes over the images.
    seed : int
        Seed of the weights and of the order of images.
    """

    def __init__(self, *, epochs: int, seed: int) -> None:
        self.epochs = epochs
        self.seed = seed

    def fit(self, images: np.ndarray, labels: np.ndarray, *, quiet: bool) -> "Recogniser":
        """Fit to `(rows, height, width, 1)` bytes and their classes 0 to 9."""
        rng = torch.Generator().manual_seed(self.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.network_ = _network(images.shape[1])
        x, y = _tensor(images), torch.from_numpy(np.asarray(labels, dtype=np.int64))
        optimiser = torch.optim.Adam(self.network_.parameters())
        steps = self.epochs * (len(x) // BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, HIGHEST_RATE, steps)
        for _ in track(
            range(self.epochs),
            "training a recogniser",
            console=Console(stderr=True),
            disable=quiet,
        ):
            order = torch.randperm(len(x), generator=rng)
            for batch in order.split(BATCH)[: len(x) // BATCH]:
                optimiser.zero_grad()
                nn.functional.cross_entropy(self.network_(x[batch]), y[batch]).backward()
                optimiser.step()
                schedule.step()
        self.network_.eval()
        return self

    @torch.no_grad()
    def predict(self, images: np.ndarray) -> np.ndarray:
        """Class of each image."""
        parts = [self.network_(block).argmax(dim=1) for block in _tensor(images).split(1000)]
        return torch.cat(parts).numpy()

    def accuracy(self, images: np.ndarray, labels: np.ndarray) -> float:
        """Share of images that are classified correctly."""
        return float((self.predict(images) == labels).mean())


def _network(side: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * (side // 4) ** 2, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def _tensor(images: np.ndarray) -> Tensor:
    return torch.from_numpy(np.moveaxis(images, 3, 1).astype(np.float32) / 255.0)
