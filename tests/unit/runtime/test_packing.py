"""Trees come apart and together again as they were."""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict

import torch

from voda_flows.runtime.packing import Hole, from_bytes, holes, pack, to_bytes, unpack


def test_a_tree_is_a_skeleton_and_its_tensors() -> None:
    """Tensors become holes that know shape and type; all else stays."""
    weight, step = torch.ones(2, 3), torch.tensor(4)
    skeleton, tensors = pack({"a": [weight, 1], "b": (None, {"c": step}), "d": "text"})

    assert skeleton == {"a": [Hole(0, (2, 3), "float32"), 1], "b": (None, {"c": Hole(1, (), "int64")}), "d": "text"}
    assert [tensor.shape for tensor in tensors] == [weight.shape, step.shape]
    assert [hole.index for hole in holes(skeleton)] == [0, 1]


def test_together_again_is_the_same() -> None:
    """`unpack` is the inverse, also after the skeleton went through a message."""
    tree = {"a": [torch.arange(3.0)], "b": (1, {"c": torch.tensor([True])}), "counts": Counter(x=2)}
    skeleton, tensors = pack(tree)
    again = unpack(pickle.loads(pickle.dumps(skeleton)), tensors)

    assert str(again) == str(tree)


def test_the_skeleton_shares_nothing_with_the_tree() -> None:
    """A commit must not change when the script goes on."""
    rates = [0.1]
    values = OrderedDict(rates=rates)
    skeleton, _ = pack(values)
    rates.append(0.2)

    assert skeleton == {"rates": [0.1]}


def test_tensors_of_all_kinds_travel_as_bytes() -> None:
    """Types, shapes, scalars and empty ones come back as they were, wherever in the stream they begin."""
    tensors = [
        torch.tensor([True, False, True]),
        torch.arange(6, dtype=torch.float64).reshape(2, 3).t(),
        torch.tensor(7),
        torch.empty(0, 4),
        torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        torch.tensor(3.25),
    ]
    skeleton, packed = pack(tensors)
    again = from_bytes(to_bytes(packed), holes(skeleton))

    assert [tensor.dtype for tensor in again] == [tensor.dtype for tensor in tensors]
    assert [tensor.tolist() for tensor in again] == [tensor.tolist() for tensor in tensors]
    assert to_bytes([]).numel() == 0
