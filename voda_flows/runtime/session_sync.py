"""Brings all ranks of a new world to one state.

Every rank says how far it is; the one that is furthest (the lowest of them) is the root. Where all are equally far
nothing is sent: ranks that shrank together, or whose peer crashed between steps, already agree. Otherwise the root
sends one message with everything that is small and one per tensor type with all tensors, which is what keeps a
growth at a few hundredths of a second.

Random numbers are each rank's own: survivors keep their streams, a job that resumes gives each rank the stream that
the rank of that number had, and a rank that nobody had before starts one from (seed, step, rank).
"""

from __future__ import annotations

import hashlib
import pickle
from typing import TYPE_CHECKING, cast

from voda_flows.runtime import packing
from voda_flows.runtime.state import apply_random, seed_random

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from voda_flows.runtime.session_world import World
    from voda_flows.runtime.state import State


def choose_root(commits: Sequence[int]) -> int | None:
    """The rank whose state all others take, given each rank's commits (-1: has no state).

    Returns:
        The furthest rank, the lowest of them; None where all have the same state already.
    """
    furthest = max(commits)
    if all(number == furthest >= 0 for number in commits):
        return None
    return commits.index(furthest)


def synchronise(world: World, state: State, load: Callable[[], list[Mapping[str, object]] | None], seed: int) -> None:
    """Bring this rank to the state of the world's root.

    Args:
        world: just joined.
        state: of this rank; `commits` says whether it holds anything.
        load: puts the newest checkpoint into `state` and gives the random streams by rank, if there is one;
            called in rank 0 when no rank holds anything.
        seed: for ranks without a stream.
    """
    commits = [int(row[0]) for row in world.collect([state.commits])]
    root = choose_root(commits)
    beginning = max(commits) < 0
    streams = (load() if beginning and world.rank == 0 else None) or []
    if root is not None and world.size > 1:
        streams = _take(world, state, streams, root)
    if world.rank < len(streams):
        apply_random(streams[world.rank])
    elif commits[world.rank] < 0 and (world.rank > 0 or not beginning):
        seed_random(_stream_seed(seed, state.step, world.rank))
    state.commits = max(0, state.commits)


def _take(world: World, state: State, streams: list[Mapping[str, object]], root: int) -> list[Mapping[str, object]]:
    """Send (as root) or receive the state, and the streams that came with it."""
    skeleton, tensors = packing.pack(state.capture())
    message = _send_bytes(world, pickle.dumps((skeleton, streams)), root)
    skeleton, streams = pickle.loads(message)  # noqa: S301 - from a rank of this very job
    tensors = _send_tensors(world, skeleton, tensors, root)
    if world.rank != root:
        state.apply(cast("dict[str, object]", packing.unpack(skeleton, tensors)))
    return streams


def _send_bytes(world: World, message: bytes, root: int) -> bytes:
    import torch

    length = torch.tensor([len(message)])
    world.send(length, root, "voda.sync.length")
    if world.rank == root:
        buffer = torch.frombuffer(bytearray(message), dtype=torch.uint8)
    else:
        buffer = torch.empty(int(length), dtype=torch.uint8)
    world.send(buffer, root, "voda.sync.message")
    return buffer.numpy().tobytes()


def _send_tensors(world: World, skeleton: object, tensors: list[torch.Tensor], root: int) -> list[torch.Tensor]:
    import torch

    places = packing.holes(skeleton)
    received: list[torch.Tensor] = [torch.empty(0)] * len(places)
    for dtype in sorted({hole.dtype for hole in places}):
        of_type = [hole for hole in places if hole.dtype == dtype]
        sizes = [_numel(hole.shape) for hole in of_type]
        if world.rank == root:
            flat = torch.cat([tensors[hole.index].reshape(-1).cpu() for hole in of_type])
        else:
            flat = torch.empty(sum(sizes), dtype=getattr(torch, dtype))
        world.send(flat, root, f"voda.sync.{dtype}")
        for hole, piece in zip(of_type, flat.split(sizes)):
            received[hole.index] = piece.reshape(hole.shape).clone()
    return received


def _numel(shape: tuple[int, ...]) -> int:
    count = 1
    for side in shape:
        count *= side
    return count


def _stream_seed(seed: int, step: int, rank: int) -> int:
    digest = hashlib.sha256(f"{seed}:{step}:{rank}".encode()).digest()
    return int.from_bytes(digest[:4], "big")
