"""The training programs learn, their data is what they say, their options are documented."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
import torch

from voda_flows.runtime import session
from workloads import chartransformer, digits

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny models are slower, and not the same bits, on several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_digits_learns() -> None:
    """A few epochs give 0.95 on scans that were not trained on."""
    row = digits.main(["--epochs", "4", "--width", "16"])

    assert row["metrics"]["accuracy"] >= 0.95  # type: ignore[index]
    assert (row["epoch"], row["samples"], row["world_size"]) == (3, 4 * 1437, 1)


def test_digits_split_is_fixed() -> None:
    """Two loads give the same disjoint split of all scans."""
    (images, labels), (val_images, val_labels) = digits.load()
    (again, _), _ = digits.load()

    assert torch.equal(images, again)
    assert (len(labels), len(val_labels), images.shape[1:]) == (1437, 360, (1, 8, 8))
    assert 0.0 <= float(images.min()) < float(images.max()) <= 1.0
    assert val_images.shape[1:] == (1, 8, 8)


def test_chartransformer_learns() -> None:
    """One epoch predicts much better than chance, which is the logarithm of the vocabulary: 4.85 nats."""
    options = "--epochs 1 --text-bytes 40000 --context 32 --width 32 --layers 1 --batch 8 --warmup-samples 100"
    row = chartransformer.main(options.split())

    assert float(str(row["validation_loss"])) < 3.2


def test_chartransformer_never_looks_ahead() -> None:
    """What follows a place changes nothing of the scores there."""
    model = chartransformer.CharTransformer(chartransformer.Args(context=8, width=16, layers=1)).eval()
    window = torch.arange(8).unsqueeze(0)
    changed = window.clone()
    changed[0, 5:] = 100

    scores, others = model(window), model(changed)

    assert torch.allclose(scores[0, :5], others[0, :5])
    assert not torch.allclose(scores[0, 5:], others[0, 5:])


def test_windows_are_the_text() -> None:
    """Windows follow each other: the last character of one is the first of the next."""
    training, validation = chartransformer.load(10_000, 16)
    windows = torch.cat([training, validation])

    assert windows.shape == (len(windows), 17)
    assert torch.equal(windows[:-1, -1], windows[1:, 0])
    assert int(windows.max()) < chartransformer.VOCABULARY
    assert len(validation) / len(windows) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("workload", [digits, chartransformer])
def test_every_option_is_documented(workload: ModuleType) -> None:
    """Each field of Args has a docstring below it, and an option of its name."""
    source = inspect.getsource(workload.Args)
    documented = re.findall(r'^    (\w+): .*\n    """\w', source, flags=re.MULTILINE)
    options = [f"--{name.replace('_', '-')}" for name in documented if name != "measure_gradient"]
    argv = [word for option in options for word in (option, "sqrt" if option == "--scale-lr" else "8")]

    assert documented == [field.name for field in fields(workload.Args)]
    assert session.arguments(workload.Args, [*argv, "--measure-gradient"]).measure_gradient
    assert session.arguments(workload.Args, argv).batch == 8


@pytest.mark.parametrize("workload", [digits, chartransformer])
def test_a_workload_sees_the_session_only(workload: ModuleType) -> None:
    """Of Voda a training script imports the session and nothing else."""
    source = Path(str(sys.modules[workload.__name__].__file__)).read_text(encoding="utf-8")

    assert re.findall(r"^(?:from|import) .*(?:voda|scheduler).*$", source, flags=re.MULTILINE) == [
        "from voda_flows.runtime import session"
    ]
