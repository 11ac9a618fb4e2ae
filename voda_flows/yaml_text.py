"""Objects as YAML that every reader understands alike.

To YAML 1.1 readers, Kubernetes among them, a bare ``n``, ``y``, ``on`` or ``1e3`` is no string. So every string that
could be read as something else is quoted, and texts of several lines are written as blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

#: Begins with a letter, a slash or a dot and holds nothing that YAML reads as syntax.
_PLAIN = re.compile(r"[A-Za-z/_][A-Za-z0-9/_.-]*(?:[ ,;()=+:][A-Za-z0-9/_.-]+)*")
_TAKEN = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


class _Dumper(yaml.SafeDumper):
    """Quotes what could be misread; never writes anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002 -- PyYAML's signature
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, indentless)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        style = "|"
    elif text.lower() in _TAKEN or not _PLAIN.fullmatch(text):
        style = "'" if '"' in text else '"'
    else:
        style = ""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style or None)


_Dumper.add_representer(str, _text)


def dump_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Documents as YAML text, in the order of their keys; long lines are left whole.

    Args:
        documents: One mapping per document.

    Returns:
        The text; documents are parted by ``---``.
    """
    texts = [
        yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, width=4096, allow_unicode=True)
        for document in documents
    ]
    return "---\n".join(texts)
