"""Completion in shells: click's own, and bash's with words as people see them.

Bash breaks words at ``=``, ``:`` and ``@`` too, so `--set policy=` and `@latest` reach click in pieces. Ours sends the
line as well, breaks it at blanks alone, and answers with what belongs behind the last such sign.
"""

from __future__ import annotations

import os
import re
from typing import Final

from click import shell_completion
from click.shell_completion import CompletionItem

#: The variable by which a shell asks; click makes it from the command's name.
VARIABLE: Final = "_VODA_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish")
_BREAKS: Final = re.compile(r".*[=:@]")


class Bash(shell_completion.BashComplete):
    """Bash: the line up to the cursor comes in ``COMP_LINE``."""

    source_template = shell_completion.BashComplete.source_template.replace(
        "COMP_CWORD=$COMP_CWORD", 'COMP_CWORD=$COMP_CWORD COMP_LINE="${COMP_LINE:0:COMP_POINT}"'
    )
    _begun = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor's, and the cursor's."""
        line = os.environ.get("COMP_LINE")
        if not line:
            return super().get_completion_args()
        words = shell_completion.split_arg_string(line)
        incomplete = "" if line[-1:].isspace() else words.pop()
        found = _BREAKS.match(incomplete)
        self._begun = found[0] if found else ""
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """A suggestion, without what bash takes for the words before it."""
        return f"{item.type},{item.value.removeprefix(self._begun)}"


def make_ready() -> None:
    """Let click know our bash."""
    shell_completion.add_completion_class(Bash, "bash")
