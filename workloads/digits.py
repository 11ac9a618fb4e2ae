"""Elastic training of a small image classifier on scikit-learn's bundled digits (1797 real scans of 8 x 8 pixels).

By itself: `python -m workloads.digits --epochs 10`. As a job: the same command in templates/examples.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

from voda_flows.runtime import session

VALIDATION = 360  # of 1797 scans, about a fifth
SPLIT_SEED = 20260131  # the split never changes, or runs could not be compared
PIXEL_MAX = 16.0


@dataclass(frozen=True)
class Args:
    """What can be set."""

    epochs: int = session.job_epochs(15)
    """epochs to train; a job's input `epochs` is the default"""
    batch: int = 16
    """samples per rank and step; the effective batch is this times the world size"""
    width: int = 32
    """channels of the first convolution; the second has twice as many. Steps cost about width squared"""
    repeat: int = 1
    """times that an epoch goes through the training set; makes epochs longer, not different"""
    lr: float = 2e-3
    """learning rate of one rank, for Adam"""
    scale_lr: str = "sqrt"
    """how the learning rate grows with the world size: linear, sqrt or none (sqrt is usual for Adam)"""
    decay: float = 0.9
    """what the learning rate is multiplied with after every epoch"""
    commit_every: int = 1
    """steps between commits in memory"""
    checkpoint_every: int = -1
    """steps between checkpoints; -1 is what the job's input `checkpoint-steps` says"""
    report_every: int = 20
    """steps between report rows; 0 for one per epoch only"""
    measure_gradient: bool = False
    """whether rows carry the gradient's square and variance"""
    seed: int = 0
    """of the initial weights, the order of samples, and dropout"""


def load() -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """Training and validation set: images (n, 1, 8, 8) in 0..1 and labels (n)."""
    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1) / PIXEL_MAX
    labels = torch.tensor(bunch.target, dtype=torch.long)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(SPLIT_SEED))
    validation, training = order[:VALIDATION], order[VALIDATION:]
    return (images[training], labels[training]), (images[validation], labels[validation])


def build(width: int) -> nn.Module:
    """Two convolutions and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(2 * width * 4, 10),
    )


def main(argv: list[str]) -> dict[str, object]:
    """Train; returns the last epoch's report row."""
    args = session.arguments(Args, argv, __doc__)
    device = session.device()
    (images, labels), (val_images, val_labels) = (tuple(t.to(device) for t in part) for part in load())

    torch.manual_seed(args.seed)
    model = build(args.width).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, args.decay)
    sampler = session.Sampler(args.repeat * len(labels), args.batch, seed=args.seed)
    state = session.State(model=model, optimizer=optimizer, schedule=schedule, sampler=sampler)
    last_row: dict[str, object] = {}

    def validate() -> tuple[float, float]:
        """Mean loss and accuracy over the validation set, shared out among the ranks."""
        model.eval()
        with torch.no_grad():
            mine = list(session.part_of(len(val_labels)))
            scores = model(val_images[mine])
            loss = cross_entropy(scores, val_labels[mine], reduction="sum").item()
            right = (scores.argmax(1) == val_labels[mine]).sum().item()
        model.train()
        loss, right, count = session.total(loss, right, len(mine))
        return loss / count, right / count

    @session.elastic(
        session.Options(
            commit_every=args.commit_every,
            checkpoint_every=args.checkpoint_every,
            report_every=args.report_every,
            scale_lr=args.scale_lr,
            measure_gradient=args.measure_gradient,
            seed=args.seed,
        )
    )
    def train(state: session.State) -> None:
        for epoch in session.epochs(state, args.epochs):
            for indices in sampler:
                batch = torch.tensor(indices) % len(labels)
                optimizer.zero_grad()
                loss = cross_entropy(model(images[batch]), labels[batch])
                loss.backward()
                optimizer.step()
                session.commit(state, loss)
            schedule.step()
            validation_loss, accuracy = validate()
            row = session.report(state, validation_loss=validation_loss, accuracy=accuracy)
            last_row.update(row)
            if session.rank() == 0:
                print(f"epoch {epoch}: validation loss {validation_loss:.4f}, accuracy {accuracy:.4f}", flush=True)

    train(state)
    return last_row


if __name__ == "__main__":
    main(sys.argv[1:])
