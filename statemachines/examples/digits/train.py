"""Trains a small neural network on the handwritten digits, as any training script would: files in, files out.

Needs NumPy only. headrace names the folders in the environment: HEADRACE_DATA (one image per file, in a folder named
for its digit), HEADRACE_RESULTS (what is written here is kept) and HEADRACE_PROGRESS (one JSON object per line).
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

DIGITS = 10
HIDDEN_UNITS = 64
TEST_SHARE = 0.2
BATCH_SAMPLES = 32
LEARNING_RATE = 0.15


def read_image(path: Path) -> Floats:
    """Return the grey values, 0 to 1, of a binary PGM file: lines `P5`, `width height`, `maximum`, then the pixels."""
    magic, size, grey_max, pixels = path.read_bytes().split(b"\n", maxsplit=3)
    width, height = size.split()
    if magic != b"P5" or len(pixels) != int(width) * int(height):
        raise ValueError(f"{path} is not a whole PGM image")
    return np.frombuffer(pixels, dtype=np.uint8).astype(np.float64) / int(grey_max)


def read_data(folder: Path) -> tuple[Floats, Labels]:
    """Return every image below the folder, one row each, and its label: the name of the folder it is in."""
    paths = sorted(folder.rglob("*.pgm"))
    if not paths:
        raise SystemExit(f"no .pgm file below {folder}: is HEADRACE_DATA the digits data set?")
    return np.stack([read_image(path) for path in paths]), np.array([int(path.parent.name) for path in paths])


class Network:
    """One hidden layer of rectified units, then a softmax over the ten digits."""

    def __init__(self, inputs: int, random: np.random.Generator) -> None:
        self.weights = [
            random.normal(0, np.sqrt(2 / inputs), (inputs, HIDDEN_UNITS)),
            np.zeros(HIDDEN_UNITS),
            random.normal(0, np.sqrt(2 / HIDDEN_UNITS), (HIDDEN_UNITS, DIGITS)),
            np.zeros(DIGITS),
        ]

    def forward(self, images: Floats) -> tuple[Floats, Floats]:
        """Return the hidden activations and the probability of each digit, one row per image."""
        hidden = np.maximum(images @ self.weights[0] + self.weights[1], 0)
        scores = hidden @ self.weights[2] + self.weights[3]
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, odds / odds.sum(axis=1, keepdims=True)

    def learn(self, images: Floats, labels: Labels) -> float:
        """Take one step down the gradient of the cross-entropy; return that loss."""
        hidden, chances = self.forward(images)
        rows = np.arange(len(labels))
        loss = -np.log(chances[rows, labels] + 1e-12).mean()
        chances[rows, labels] -= 1
        at_scores = chances / len(labels)
        at_hidden = (at_scores @ self.weights[2].T) * (hidden > 0)
        slopes = [images.T @ at_hidden, at_hidden.sum(axis=0), hidden.T @ at_scores, at_scores.sum(axis=0)]
        self.weights = [weight - LEARNING_RATE * slope for weight, slope in zip(self.weights, slopes, strict=True)]
        return float(loss)

    def accuracy(self, images: Floats, labels: Labels) -> float:
        """Return the share of images whose most probable digit is the right one."""
        return float((self.forward(images)[1].argmax(axis=1) == labels).mean())


def report(progress: Path | None, **facts: float) -> None:
    """Add one line to the progress file, which headrace shows while the job runs."""
    print(json.dumps(facts), flush=True)
    if progress is not None:
        with progress.open("a") as lines:
            lines.write(json.dumps(facts) + "\n")


def train(data: Path, results: Path, progress: Path | None, epochs: int, seed: int) -> float:
    """Train, write `model.npz` and `metrics.json`, and return the accuracy on images never trained on."""
    random = np.random.default_rng(seed)
    images, labels = read_data(data)
    order = random.permutation(len(labels))
    test, training = np.split(order, [int(len(order) * TEST_SHARE)])
    network = Network(images.shape[1], random)
    loss = accuracy = 0.0
    for epoch in range(1, epochs + 1):
        batches = np.array_split(random.permutation(training), max(1, len(training) // BATCH_SAMPLES))
        loss = float(np.mean([network.learn(images[batch], labels[batch]) for batch in batches]))
        accuracy = network.accuracy(images[test], labels[test])
        report(progress, step=epoch, total_steps=epochs, loss=round(loss, 4), accuracy=round(accuracy, 4))
    np.savez(results / "model.npz", *network.weights)
    metrics = {"images": len(labels), "tested": len(test), "epochs": epochs, "loss": loss, "test_accuracy": accuracy}
    (results / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    return accuracy


def main() -> None:
    """Read the folders from the environment and train."""
    parser = argparse.ArgumentParser(description="Train a small network on the handwritten digits.")
    parser.add_argument("--epochs", type=int, default=240)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    progress = os.environ.get("HEADRACE_PROGRESS")
    results = Path(os.environ["HEADRACE_RESULTS"])
    train(Path(os.environ["HEADRACE_DATA"]), results, Path(progress) if progress else None, given.epochs, given.seed)


if __name__ == "__main__":
    main()
