"""Brings all ranks of a new world to one state.

Every rank says how far it is; the one that is furthest (the lowest of them) is the root. Where all are equally far
nothing is sent: ranks that shrank together, or whose peer crashed between steps, already agree. Otherwise the root
sends its whole state as one message, whose length it said together with how far it is: two collectives, because each
one costs milliseconds in which all ranks stand still.

Random numbers are each rank's own: survivors keep their streams, a job that resumes gives each rank the stream that
the rank of that number had, and a rank that nobody had before starts one from (seed, step, rank).
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from voda_flows.runtime import packing
from voda_flows.runtime.state import apply_random, seed_random

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from voda_flows.runtime.session_world import World
    from voda_flows.runtime.state import State

    Streams = Mapping[str, object]


def choose_root(commits: Sequence[int]) -> int | None:
    """The rank whose state all others take, given each rank's commits (-1: has no state).

    Returns:
        The furthest rank, the lowest of them; None where all have the same state already.
    """
    furthest = max(commits)
    if all(number == furthest >= 0 for number in commits):
        return None
    return commits.index(furthest)


@dataclass(frozen=True)
class Message:
    """A state on its way.

    Attributes:
        small: pickled skeleton of the state, and random streams by rank.
        tensors: the state's own tensors; put behind each other only by the rank that sends them.
    """

    small: bytes
    tensors: list[torch.Tensor]


def synchronise(world: World, state: State, load: Callable[[], list[Streams] | None], seed: int) -> None:
    """Bring this rank to the state of the world's root.

    Args:
        world: just joined.
        state: of this rank; `commits` says whether it holds anything.
        load: puts the newest checkpoint into `state` and gives the random streams by rank, if there is one;
            called in rank 0 when no rank holds anything.
        seed: for ranks without a stream.
    """
    message = _write(state, [])
    fresh = state.commits < 0
    rows = world.collect(_standing(state, message))
    beginning = all(row[0] < 0 for row in rows)
    streams: list[Streams] = []
    if beginning:
        streams = (load() if world.rank == 0 else None) or []
        message = _write(state, streams)
        rows = world.collect(_standing(state, message))
    root = choose_root([int(row[0]) for row in rows])
    if root is not None and world.size > 1:
        streams = _take(world, state, message, (root, [int(length) for length in rows[root][1:]]))
    if world.rank < len(streams):
        apply_random(streams[world.rank])
    elif fresh and (world.rank > 0 or not beginning):
        seed_random(_stream_seed(seed, state.step, world.rank))
    state.commits = max(0, state.commits)


def _standing(state: State, message: Message) -> list[float]:
    return [state.commits, len(message.small), sum(tensor.nbytes for tensor in message.tensors)]


def _write(state: State, streams: list[Streams]) -> Message:
    skeleton, tensors = packing.pack(state.capture())
    return Message(pickle.dumps((skeleton, streams)), tensors)


def _take(world: World, state: State, message: Message, sender: tuple[int, list[int]]) -> list[Streams]:
    """Send (as root) or receive a state.

    Args:
        world: all ranks of it call this.
        state: takes what is received.
        message: what this rank sends, were it the root.
        sender: the root, and the lengths of the two parts of its message, in bytes.

    Returns:
        The random streams that came with it.
    """
    import torch

    root, lengths = sender
    if world.rank == root:
        small = torch.frombuffer(bytearray(message.small), dtype=torch.uint8)
        buffer = packing.to_bytes([small, *message.tensors])
    else:
        buffer = torch.empty(sum(lengths), dtype=torch.uint8)
    world.send(buffer, root, "voda.sync")
    small, tensors = torch.split(buffer, lengths)
    skeleton, streams = pickle.loads(small.numpy().tobytes())  # noqa: S301 - from a rank of this very job
    if world.rank != root:
        tree = packing.unpack(skeleton, packing.from_bytes(tensors, packing.holes(skeleton)))
        state.apply(cast("dict[str, object]", tree))
    return list(streams)


def _stream_seed(seed: int, step: int, rank: int) -> int:
    digest = hashlib.sha256(f"{seed}:{step}:{rank}".encode()).digest()
    return int.from_bytes(digest[:4], "big")
