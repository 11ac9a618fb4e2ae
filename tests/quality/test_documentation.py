"""The check of the documentation's commands finds what does not exist."""

import pytest

from tests.quality.documentation import missing


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("make demo    # comments are no part of it", []),
        ("make show AREA=demo QUICK=1", []),
        ("make coffee", ["make target coffee"]),
        ("voda list", []),
        ("voda frobnicate", ["subcommand frobnicate"]),
        ("voda list --no-such", ["option --no-such of voda list"]),
        ("voda submit templates/examples/none.yaml", ["file templates/examples/none.yaml"]),
        ("python -m no_such_module", ["module no_such_module"]),
        ("frobnicate", ["program frobnicate"]),
        ("git clone whatever", []),
    ],
)
def test_a_command_that_could_not_be_typed_is_found(command: str, fault: list[str]) -> None:
    """Targets, subcommands, options, files, modules and programs are looked up; other people's tools are not."""
    assert missing(command) == fault
