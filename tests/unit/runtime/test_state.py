"""Laws of the state: applying what was captured changes nothing, restoring gives the last save."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from voda_flows.runtime.sampler import Sampler
from voda_flows.runtime.state import State, apply_random, capture_random, seed_random


def make(seed: int = 0) -> State:
    """A state with every kind of part."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    return State(
        model=model,
        optimizer=optimizer,
        sampler=Sampler(20, 4),
        schedule=torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4]),
        extra={"best": 0.5, "average": torch.optim.swa_utils.AveragedModel(model)},
    )


def train(state: State, steps: int) -> None:
    """Some steps that move every part."""
    for _ in range(steps):
        state.optimizer.zero_grad()
        state.model(torch.randn(4, 3)).square().mean().backward()
        state.optimizer.step()
        state.step += 1
        state.extra["best"] = float(state.step)
        state.extra["average"].update_parameters(state.model)  # type: ignore[attr-defined]
        assert state.sampler is not None
        state.samples += state.sampler.advance()


def text(state: State) -> str:
    """All of a state, to compare."""
    torch.set_printoptions(precision=10)
    return str(state.capture())


def test_restore_gives_the_last_save() -> None:
    """Whatever happened since is gone, in every part; a second restore gives it again."""
    state = make()
    train(state, 3)
    state.save()
    saved = text(state)
    for _ in range(2):
        train(state, 2)
        assert text(state) != saved
        state.restore()
        assert text(state) == saved


def test_a_save_is_not_changed_by_training_on_a_restored_state() -> None:
    """Buffers of a save are never the tensors that train."""
    state = make()
    train(state, 1)
    state.save()
    state.restore()
    train(state, 1)
    state.save()
    saved = text(state)
    train(state, 1)
    state.restore()

    assert text(state) == saved


def test_random_numbers_go_back_too() -> None:
    """After a restore the same numbers are drawn."""
    state = make()
    state.save()
    first = [random.random(), float(torch.rand(1)), float(np.random.rand())]  # noqa: NPY002 - the global stream
    state.restore()

    assert [random.random(), float(torch.rand(1)), float(np.random.rand())] == first  # noqa: NPY002


def test_apply_makes_another_state_the_same() -> None:
    """A newcomer with other weights and no optimizer state becomes the captured state."""
    state, other = make(), make(seed=1)
    train(state, 3)
    other.apply(state.capture())

    assert text(other) == text(state)


def test_captured_random_streams_are_plain() -> None:
    """What a checkpoint keeps of the streams loads without unpickling objects, and sets them as they were."""
    seed_random(5)
    streams = capture_random()
    drawn = [random.random(), float(torch.rand(1))]
    apply_random(streams)

    assert [random.random(), float(torch.rand(1))] == drawn
    assert {type(value) for value in streams.values()} <= {tuple, torch.Tensor}


def test_other_parts_are_refused() -> None:
    """A checkpoint of a script with other parts is named as such."""
    other = make()
    other.schedule = None

    with pytest.raises(ValueError, match="the stored state has the parts"):
        other.apply(make().capture())


def test_what_cannot_be_kept_is_refused() -> None:
    """An extra is plain or has the two methods; the path of what is neither is named."""
    model = torch.nn.Linear(1, 1)
    with pytest.raises(TypeError, match=r"state extra\['a'\]\[1\]: expected a plain value .* got object"):
        State(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), extra={"a": [1, object()]})
