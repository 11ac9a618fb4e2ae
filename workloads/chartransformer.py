"""Elastic training of a character transformer on text that every Python ships: the source of its own library.

By itself: `python -m workloads.chartransformer --epochs 2`. As a job: the same command in templates/examples.
"""

from __future__ import annotations

import math
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from voda_flows.runtime import session

VOCABULARY = 128  # ASCII; other bytes are left out
VALIDATION_SHARE = 0.1  # the last tenth of the text


@dataclass(frozen=True)
class Args:
    """What can be set."""

    epochs: int = session.job_epochs(5)
    """epochs to train; a job's input `epochs` is the default"""
    text_bytes: int = 200_000
    """characters of library source to train and validate on; an epoch goes through them once"""
    context: int = 64
    """characters that a prediction may look back on"""
    batch: int = 16
    """windows per rank and step; the effective batch is this times the world size"""
    width: int = 64
    """width of the model, a multiple of the heads"""
    heads: int = 4
    """attention heads"""
    layers: int = 2
    """transformer layers"""
    dropout: float = 0.1
    """dropout in every layer"""
    lr: float = 1e-3
    """highest learning rate of one rank, for AdamW"""
    scale_lr: str = "sqrt"
    """how the learning rate grows with the world size: linear, sqrt or none (sqrt is usual for Adam)"""
    warmup_samples: int = 2000
    """windows over which the learning rate rises; counted in samples, so that a resize does not move it"""
    commit_every: int = 1
    """steps between commits in memory"""
    checkpoint_every: int = -1
    """steps between checkpoints; -1 is what the job's input `checkpoint-steps` says"""
    report_every: int = 20
    """steps between report rows; 0 for one per epoch only"""
    measure_gradient: bool = False
    """whether rows carry the gradient's square and variance"""
    seed: int = 0
    """of the initial weights, the order of windows, and dropout"""


def load(text_bytes: int, context: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Training and validation windows (n, context + 1): a window's last `context` characters are its targets."""
    text = bytearray()
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text += bytes(byte for byte in path.read_bytes() if byte < VOCABULARY)
        if len(text) >= text_bytes:
            break
    characters = torch.frombuffer(text[:text_bytes], dtype=torch.uint8).long()
    windows = characters.unfold(0, context + 1, context)
    cut = round(len(windows) * (1 - VALIDATION_SHARE))
    return windows[:cut], windows[cut:]


class CharTransformer(nn.Module):
    """Embeddings, layers of masked self-attention, and a prediction for every place."""

    def __init__(self, args: Args) -> None:
        super().__init__()
        self.characters = nn.Embedding(VOCABULARY, args.width)
        self.places = nn.Embedding(args.context, args.width)
        layer = nn.TransformerEncoderLayer(
            args.width, args.heads, 4 * args.width, args.dropout, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, args.layers, enable_nested_tensor=False)
        self.scores = nn.Linear(args.width, VOCABULARY)
        mask = torch.ones(args.context, args.context, dtype=torch.bool).triu(1)  # True: may not be looked at
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        """Scores (n, context, characters) of what follows each place of `windows` (n, context)."""
        mask = self.get_buffer("mask")
        places = torch.arange(windows.shape[1], device=windows.device)
        hidden = self.characters(windows) + self.places(places)
        scores: torch.Tensor = self.scores(self.layers(hidden, mask=mask))
        return scores


def loss_of(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy per character, in nats."""
    return cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def main(argv: list[str]) -> dict[str, object]:
    """Train; returns the last epoch's report row."""
    args = session.arguments(Args, argv, __doc__)
    device = session.device()
    training, validation = (windows.to(device) for windows in load(args.text_bytes, args.context))

    torch.manual_seed(args.seed)
    model = CharTransformer(args).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    sampler = session.Sampler(len(training), args.batch, seed=args.seed)
    state = session.State(model=model, optimizer=optimizer, sampler=sampler)
    last_row: dict[str, object] = {}

    def rate(samples: int) -> float:
        """Learning rate of one rank after `samples`: a linear rise, then half a cosine down to a tenth."""
        rise = min(1.0, (samples + args.batch) / args.warmup_samples)
        progress = min(1.0, samples / (args.epochs * len(training)))
        return args.lr * rise * (0.55 + 0.45 * math.cos(math.pi * progress))

    def validate() -> float:
        """Mean loss over the validation windows, shared out among the ranks."""
        model.eval()
        with torch.no_grad():
            mine = validation[list(session.part_of(len(validation)))]
            losses = [loss_of(model, part).item() * len(part) for part in mine.split(64)]
        model.train()
        loss, count = session.total(sum(losses), len(mine))
        return loss / count

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
                for group in optimizer.param_groups:
                    group["lr"] = rate(state.samples)
                optimizer.zero_grad()
                loss = loss_of(model, training[indices])
                loss.backward()
                session.average_gradients(state)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                session.commit(state, loss)
            validation_loss = validate()
            row = session.report(state, validation_loss=validation_loss)
            last_row.update(row)
            if session.rank() == 0:
                print(f"epoch {epoch}: validation loss {validation_loss:.4f} nats per character", flush=True)

    train(state)
    return last_row


if __name__ == "__main__":
    main(sys.argv[1:])
