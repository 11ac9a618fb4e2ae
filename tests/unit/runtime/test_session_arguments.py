"""A script's options from its dataclass of settings."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from voda_flows.runtime import session


@dataclass(frozen=True)
class Args:
    """Settings of every kind."""

    epochs: int = 5
    learning_rate: float = 1e-3
    schedule: str = "cosine"
    measure: bool = False


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("", Args()),
        ("--epochs 2 --learning-rate 0.5", Args(epochs=2, learning_rate=0.5)),
        ("--schedule=none --measure", Args(schedule="none", measure=True)),
    ],
)
def test_every_field_is_an_option(line: str, settings: Args) -> None:
    """A field is the option of its name with hyphens; what is not on the line has its default."""
    assert session.arguments(Args, line.split()) == settings


def test_help_shows_every_default(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever asks for help sees the description, and each option's default."""
    with pytest.raises(SystemExit) as left:
        session.arguments(Args, ["--help"], "Trains.")

    shown = capsys.readouterr().out
    assert left.value.code == 0
    assert [text in shown for text in ("Trains.", "default: 5", "default: 0.001", "default: cosine")] == [True] * 4


def test_a_line_that_cannot_be_read_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2 and the message names the option and what was found."""
    with pytest.raises(SystemExit) as left:
        session.arguments(Args, ["--epochs", "many"])

    assert left.value.code == 2
    assert "argument --epochs: invalid int value: 'many'" in capsys.readouterr().err


@dataclass(frozen=True)
class NoDefault:
    """A field that the line would have to give."""

    epochs: int


@dataclass(frozen=True)
class Several:
    """A field that is no single word."""

    sizes: tuple[int, ...] = field(default=(1, 2))


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        (NoDefault, "'epochs' of NoDefault to have a default that is text, a number or False, got none"),
        (Several, "'sizes' of Several to have a default that is text, a number or False, got (1, 2)"),
        (str, "expected a dataclass, got <class 'str'>"),
    ],
)
def test_settings_that_no_line_can_fill_are_refused(settings: type, found: str) -> None:
    """A programmer's mistake is named with the field, before any word is read."""
    with pytest.raises(TypeError) as refused:
        session.arguments(settings, [])

    assert found in str(refused.value)
