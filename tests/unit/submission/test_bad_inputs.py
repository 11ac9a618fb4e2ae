"""Each row of the table of bad inputs, through the command line, on a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import world as world  # noqa: PLC0414 - a fixture is found by its name
from tests.unit.cli.world import World
from tests.unit.submission.bad_inputs import BAD_INPUTS, GOOD, Bad, given, missing


@pytest.mark.parametrize("bad", BAD_INPUTS, ids=[bad.name for bad in BAD_INPUTS])
def test_a_bad_input_is_one_clear_fault_and_changes_nothing(world: World, tmp_path: Path, bad: Bad) -> None:
    """Exit code, file, line, column, path and words as the table says; the store's revision is the same after."""
    file = tmp_path / "bad.yaml"
    file.write_bytes(bad.text if isinstance(bad.text, bytes) else bad.text.encode())
    before = world.store.revision()

    said = world.voda("submit", str(file))

    assert missing(bad, str(file), said.code, said.err) == ""
    assert (said.out, world.store.revision()) == ("", before)


def test_lint_says_the_same_and_needs_no_world(world: World, tmp_path: Path) -> None:
    """Every row that is not about this very cluster is refused offline in the same words."""
    for bad in BAD_INPUTS:
        file = tmp_path / "bad.yaml"
        file.write_bytes(bad.text if isinstance(bad.text, bytes) else bad.text.encode())

        said = world.voda("lint", str(file), "--offline", "--home", str(tmp_path / "none"))

        expected = "" if bad.name != "unknown GPU type" else f"exit code 0, not 2: {said.err}"
        assert missing(bad, str(file), said.code, said.err) == expected, bad.name


def test_lint_says_the_first_fault_of_every_document(world: World, tmp_path: Path) -> None:
    """One look at a folder is enough; what is right is not spoken of while something is wrong."""
    for name, text in (("a.yaml", given("epochs", "0")), ("b.yaml", "a: [1"), ("c.yaml", GOOD.replace("mine", "c"))):
        (tmp_path / name).write_text(text)

    said = world.voda("lint", *(str(tmp_path / name) for name in ("a.yaml", "b.yaml", "c.yaml")))

    assert (said.code, said.out) == (2, "")
    assert [line.count(f"{tmp_path}/") for line in said.err.splitlines()] == [1, 1]
    assert [name for name in ("a.yaml", "b.yaml", "c.yaml") if f"{name}:" in said.err] == ["a.yaml", "b.yaml"]


def test_lint_creates_nothing_and_names_what_it_has_read(world: World, tmp_path: Path) -> None:
    """A job that was submitted before is right too."""
    file = tmp_path / "job.yaml"
    file.write_text(GOOD)
    world.voda("submit", str(file))
    before = world.store.revision()

    said = world.voda("lint", str(file))

    assert (said.code, said.out, said.err) == (0, f"{file}: 1 Workflow, nothing to object to\n", "")
    assert world.store.revision() == before


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("max-gpus", "9"), "job mine/train: max-gpus is 9 and the cluster has 4: it gets 4 at most"),
        (("epochs", "2"), ""),
    ],
)
def test_more_than_the_cluster_has_is_submitted_with_a_warning(
    world: World, tmp_path: Path, changes: tuple[str, str], said: str
) -> None:
    """It is legal: nodes come and go. The author is told at once what becomes of it."""
    file = tmp_path / "job.yaml"
    file.write_text(given(*changes))

    answer = world.voda("submit", str(file))

    assert (answer.code, answer.out) == (0, "mine submitted\n")
    assert answer.err == (f"warning: {said}\n" if said else "")


def test_a_job_that_needs_more_than_there_is_waits_and_says_why(world: World, tmp_path: Path) -> None:
    """Accepted, with the reason for which it will wait."""
    file = tmp_path / "job.yaml"
    file.write_text(f"{given('min-gpus', '8')}      - {{name: max-gpus, value: '8'}}\n")

    answer = world.voda("submit", str(file))

    why = "job mine/train: min-gpus is 8 and the cluster has 4: it waits until there are more"
    assert (answer.code, answer.out, answer.err) == (0, "mine submitted\n", f"warning: {why}\n")


def test_one_file_submitted_twice_is_two_jobs(world: World, tmp_path: Path) -> None:
    """With generateName, also within one second."""
    file = tmp_path / "job.yaml"
    file.write_text(GOOD.replace("name: mine", "generateName: mine-"))

    names = [world.voda("submit", str(file), "-o", "name").out.strip() for _ in range(2)]

    assert [body["metadata"]["name"] for body in world.store.list("Workflow")] == sorted(names)
    assert len(set(names)) == 2


def test_a_name_that_is_taken_keeps_the_whole_file_out(world: World, tmp_path: Path) -> None:
    """The template that comes with it is not created either."""
    file = tmp_path / "job.yaml"
    file.write_text(GOOD)
    world.voda("submit", str(file))
    template = GOOD.replace("kind: Workflow", "kind: WorkflowTemplate").replace("mine", "other")
    file.write_text(f"{template}---\n{GOOD}")
    before = world.store.revision()

    said = world.voda("submit", str(file))

    assert (said.code, world.store.revision()) == (4, before)
    assert said.err.startswith(f"error: {file}:15:3: Workflow default/mine: expected a new name, it exists already\n")
