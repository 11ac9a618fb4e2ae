"""Mending Gloo before it is compiled: every text once, all repairs or none."""

from pathlib import Path

import pytest

from deploy.horovod import repairs


def _release(folder: Path, text: str) -> Path:
    path = folder / repairs.PAIR
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_every_repair_takes_the_place_of_its_text(tmp_path: Path) -> None:
    """What is around the texts stays as it was."""
    parts = ["// begin\n", *(repair.before + "// between\n" for repair in repairs.REPAIRS)]
    path = _release(tmp_path, "".join(parts))
    repairs.apply(tmp_path)

    expected = ["// begin\n", *(repair.after + "// between\n" for repair in repairs.REPAIRS)]
    assert path.read_text(encoding="utf-8") == "".join(expected)


@pytest.mark.parametrize("times", [0, 2])
def test_another_release_is_refused_and_stays_as_it_is(tmp_path: Path, times: int) -> None:
    """A text that is missing or not alone stops the build, before anything is written."""
    others = "".join(repair.before for repair in repairs.REPAIRS[:-1])
    text = others + repairs.REPAIRS[-1].before * times
    path = _release(tmp_path, text)

    with pytest.raises(repairs.RepairError, match=f"expected the text of a repair once, found it {times} times"):
        repairs.apply(tmp_path)
    assert path.read_text(encoding="utf-8") == text


def test_texts_do_not_meet() -> None:
    """No repair's text is part of another's, before or after: their order does not matter."""
    texts = [repair.before for repair in repairs.REPAIRS]
    others = [(one, other) for one in texts for other in repairs.REPAIRS if other.before != one]

    assert [one for one, other in others if one in other.before or one in other.after] == []
