"""Commands that a warm agent can run by itself, and what it can learn about them beforehand."""

from __future__ import annotations

from pathlib import Path

import pytest

from voda_flows.runtime.program import Program, exit_code, imports_of, parse_command


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("python train.py --lr 0.1", Program("train.py", False, ("--lr", "0.1"))),
        ("python3.11 -u train.py", Program("train.py", False, ())),
        ("/usr/bin/python3 -m workloads.digits 'a b'", Program("workloads.digits", True, ("a b",))),
        ("python -c 'print(1)'", None),
        ("python -O train.py", None),
        ("python", None),
        ("python -m", None),
        ("LR=1 python train.py", None),
        ("python train.py && echo done", None),
        ("./train.sh", None),
        ("python 'train.py", None),
        ("", None),
    ],
)
def test_python_files_and_modules_are_programs(command: str, program: Program | None) -> None:
    """Anything that only a shell or another interpreter understands is none."""
    assert parse_command(command) == program


def test_imports_are_those_of_the_top_level_in_order(tmp_path: Path) -> None:
    """What is imported inside functions or relatively is not known beforehand."""
    script = tmp_path / "train.py"
    script.write_text("import os.path, json\nfrom a.b import c\nfrom . import d\nimport json\ndef f():\n    import e\n")

    assert imports_of(Program(str(script), False, ())) == ("os.path", "json", "a.b")


def test_an_unreadable_program_has_no_imports(tmp_path: Path) -> None:
    """Its own fault shows when it runs."""
    (tmp_path / "broken.py").write_text("import (")

    found = [
        imports_of(Program(name, False, ())) for name in (str(tmp_path / "broken.py"), str(tmp_path / "absent.py"))
    ]

    assert [*found, imports_of(Program("no.such.module", True, ()))] == [(), (), ()]


@pytest.mark.parametrize(("given", "code"), [(None, 0), (0, 0), (3, 3), (-1, 255), ("sorry", 1)])
def test_exit_codes_are_the_interpreters_own(given: object, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A text is printed and is 1."""
    assert exit_code(SystemExit(given)) == code
    assert capsys.readouterr().err == ("sorry\n" if given == "sorry" else "")
