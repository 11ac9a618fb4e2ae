"""Area policies, truth to the original: its 1,721 golden answers, by its model and by ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from scheduler_core.errors import LawBroken
from tests.show.registry import Row, at_most, exactly, figure, information
from tests.theory.golden_cases import Case, faults_behind, golden_cases
from tests.theory.voda_original import Fault


@figure(area="policies")
def golden_answers(quick: bool) -> Iterator[Row]:
    """How many answers agree, why the others differ, and whether anything is slower in all or breaks a law."""
    asked = [(case, name) for case in golden_cases() for name in case.answers]
    answered = [(case, name) for case, name in asked if case.answers[name] is not None]
    yield exactly("golden: the model of the original agrees", _agreeing_models(answered), "1721 of 1721")
    differing = [(case, name) for case, name in answered if case.ours(name) != case.answers[name]]
    yield at_most("golden: ours differs", len(differing), 110, "answers")
    causes = Counter(faults_behind(case, name) for case, name in differing)
    for fault in Fault:
        yield information(f"golden: the original {fault}", f"{causes[fault,]} of them")
    explained = sum(causes[fault,] for fault in Fault)
    yield exactly("golden: differences with one such cause", explained, len(differing))
    yield exactly("golden: total speed below the original's", sum(_is_slower(*pair) for pair in answered), 0)
    yield exactly(f"golden: crashes and broken laws, {len(asked)} questions", sum(_fails(*pair) for pair in asked), 0)


def _agreeing_models(answered: list[tuple[Case, str]]) -> str:
    agreeing = sum(case.model(name) == case.answers[name] for case, name in answered)
    return f"{agreeing} of {len(answered)}"


def _is_slower(case: Case, name: str) -> bool:
    theirs = case.answers[name]
    return theirs is not None and case.total(case.ours(name)) < case.total(theirs)


def _fails(case: Case, name: str) -> bool:
    try:
        case.ours(name)
    except (LawBroken, ArithmeticError, LookupError, ValueError):
        return True
    return False
