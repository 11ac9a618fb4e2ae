"""Title and description of a document, as Argo's UI shows them: annotations, the description in Markdown."""

from __future__ import annotations

_PREFIX = "workflows.argoproj.io"


def described(description: str, title: str = "") -> dict[str, str]:
    """The annotations.

    Args:
        description: What it is, in Markdown.
        title: What stands in lists in place of the name; empty where people need the name.
    """
    titled = {f"{_PREFIX}/title": title} if title else {}
    return {**titled, f"{_PREFIX}/description": description}
