"""Stdout and stderr as the command line needs them: whatever the locale, printing a sign never fails.

Where a stream cannot write a sign (``LC_ALL=C`` with an old interpreter, ``PYTHONIOENCODING=ascii``), what is drawn
with it is drawn with ASCII, one sign for one, so that columns stay aligned.
"""

from __future__ import annotations

import codecs
import io
import sys
from typing import Final

_NAME: Final = "voda.plain"
_PLAIN: Final = {
    "…": "~", "━": "=", "─": "-", "│": "|", "├": "|", "└": "`", "✔": "+", "✖": "x", "⚠": "!", "●": "*", "◷": "o",
    "○": "o", "→": ">", "×": "x", "’": "'", "–": "-", "—": "-", " ": " ",
}  # fmt: skip


def plain(wrong: UnicodeError) -> tuple[str, int]:
    """What is written in place of signs that a stream does not have (an error handler of ``codecs``).

    >>> codecs.register_error("plain-example", plain)
    >>> "├─ w0 ✔ ä".encode("ascii", "plain-example")
    b'|- w0 + ?'
    """
    if not isinstance(wrong, UnicodeEncodeError):
        raise wrong
    return "".join(_PLAIN.get(sign, "?") for sign in wrong.object[wrong.start : wrong.end]), wrong.end


def make_ready() -> None:
    """Let the streams of this process print every text."""
    codecs.register_error(_NAME, plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_NAME)
