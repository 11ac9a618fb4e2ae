"""Trees of Python values and tensors, taken apart into a small picklable skeleton and a list of tensors.

`state` keeps its in-memory commits that way (tensors copied into buffers that are made once), and `session_sync`
sends a whole state to newcomers as one message instead of one per parameter.
"""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch


@dataclass(frozen=True)
class Hole:
    """The place of a tensor in a skeleton.

    Attributes:
        index: which tensor of the list stood here.
        shape: its shape.
        dtype: its type, as in `torch.<dtype>`.
    """

    index: int
    shape: tuple[int, ...]
    dtype: str


def pack(tree: object) -> tuple[object, list[torch.Tensor]]:
    """Take `tree` apart.

    Dicts, lists and tuples are rebuilt, tensors become holes, other values are copied: the skeleton shares nothing
    with the tree. The tensors are the tree's own, not copies.

    Returns:
        The skeleton, and the tensors in the order of the holes.
    """
    tensors: list[torch.Tensor] = []
    return _pack(tree, tensors), tensors


def unpack(skeleton: object, tensors: Sequence[torch.Tensor]) -> object:
    """Put a tree together again: the inverse of `pack`."""
    if isinstance(skeleton, Hole):
        return tensors[skeleton.index]
    if type(skeleton) is dict:
        return {key: unpack(value, tensors) for key, value in skeleton.items()}
    if type(skeleton) is list:
        return [unpack(value, tensors) for value in skeleton]
    if type(skeleton) is tuple:
        return tuple(unpack(value, tensors) for value in skeleton)
    return copy.deepcopy(skeleton)


def holes(skeleton: object) -> list[Hole]:
    """All holes of `skeleton`, in the order of their tensors."""
    if isinstance(skeleton, Hole):
        return [skeleton]
    children: Sequence[object] = ()
    if type(skeleton) is dict:
        children = list(skeleton.values())
    elif type(skeleton) is list or type(skeleton) is tuple:
        children = skeleton
    return [hole for child in children for hole in holes(child)]


def to_bytes(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """All tensors behind each other, as bytes in memory of the CPU."""
    import torch

    pieces = [tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for tensor in tensors]
    return torch.cat(pieces) if pieces else torch.empty(0, dtype=torch.uint8)


def from_bytes(stream: torch.Tensor, places: Sequence[Hole]) -> list[torch.Tensor]:
    """The tensors that `to_bytes` put into `stream`, given the holes that they left."""
    import torch

    sizes = [math.prod(hole.shape) * _dtype(hole).itemsize for hole in places]
    # Clones: a piece of the stream need not begin where a wider type may.
    pieces: list[torch.Tensor] = [piece.clone() for piece in torch.split(stream, sizes)]
    return [piece.view(_dtype(hole)).reshape(hole.shape) for hole, piece in zip(places, pieces)]


def _dtype(hole: Hole) -> torch.dtype:
    import torch

    dtype: torch.dtype = getattr(torch, hole.dtype)
    return dtype


def _pack(tree: object, tensors: list[torch.Tensor]) -> object:
    import torch

    if isinstance(tree, torch.Tensor):
        tensors.append(tree.detach())
        return Hole(len(tensors) - 1, tuple(tree.shape), str(tree.dtype).removeprefix("torch."))
    if type(tree) is dict or type(tree) is OrderedDict:  # no other kinds: they would not come back as what they were
        return {key: _pack(value, tensors) for key, value in tree.items()}
    if type(tree) is list:
        return [_pack(value, tensors) for value in tree]
    if type(tree) is tuple:
        return tuple(_pack(value, tensors) for value in tree)
    return copy.deepcopy(tree)
