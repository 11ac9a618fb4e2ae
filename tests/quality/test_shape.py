"""The sizes that keep the sources readable are law."""

from statistics import median

from tests.quality.shape import ROOT, SOURCES, file_lines, functions, python_files


def test_files_fit_on_a_few_screens() -> None:
    """A source file has at most 400 lines, a test file at most 600."""
    too_long = {
        str(path.relative_to(ROOT)): file_lines(path)
        for path in python_files(*SOURCES, "tests")
        if file_lines(path) > (600 if path.is_relative_to(ROOT / "tests") else 400)
    }

    assert too_long == {}


def test_functions_are_short() -> None:
    """A function has at most 40 lines of code, half of them at most 12."""
    shapes = functions(*SOURCES)

    assert [(shape.where, shape.code_lines) for shape in shapes if shape.code_lines > 40] == []
    assert median(shape.code_lines for shape in shapes) <= 12


def test_functions_take_few_parameters() -> None:
    """At most five parameters, then a params object."""
    assert [(shape.where, shape.parameters) for shape in functions(*SOURCES) if shape.parameters > 5] == []


def test_functions_are_flat() -> None:
    """Blocks nest at most three deep."""
    assert [(shape.where, shape.nesting) for shape in functions(*SOURCES) if shape.nesting > 3] == []
