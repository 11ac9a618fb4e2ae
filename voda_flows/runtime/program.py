"""The user's command as something that a warm agent can run in a forked process.

``python FILE args`` and ``python -m MODULE args`` become a ``Program``: a fork of the agent runs it as ``__main__``,
with every import already made. Any other command is None here and has to be exec'd, cold.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import runpy
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

_PYTHON = re.compile(r"python(3(\.\d+)?)?$")
_SHELL = re.compile(r"[;&|<>$`\\*?(){}\n]")


@dataclass(frozen=True)
class Program:
    """A Python program.

    Attributes:
        target: File or module name.
        is_module: Whether ``target`` is a module (``-m``).
        arguments: What follows it.
    """

    target: str
    is_module: bool
    arguments: tuple[str, ...]


def parse_command(command: str) -> Program | None:
    """The program of a command; None for what only a shell or another interpreter can run."""
    if _SHELL.search(command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not words or not _PYTHON.match(Path(words[0]).name):
        return None
    words = words[2:] if words[1:2] == ["-u"] else words[1:]
    is_module = words[:1] == ["-m"]
    words = words[is_module:]
    if not words or words[0].startswith("-"):
        return None
    return Program(target=words[0], is_module=is_module, arguments=tuple(words[1:]))


def stand_in_place(program: Program) -> None:
    """Make ``sys.path`` start as the interpreter itself would have made it for this program."""
    sys.path[0] = str(Path.cwd()) if program.is_module else str(Path(program.target).resolve().parent)


def run(program: Program) -> int:
    """Run it as ``__main__`` in this process; its exit code. Exceptions of the program pass through."""
    sys.argv = [program.target, *program.arguments]
    stand_in_place(program)
    try:
        if program.is_module:
            runpy.run_module(program.target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program.target, run_name="__main__")
    except SystemExit as end:
        return exit_code(end)
    return 0


def exit_code(end: SystemExit) -> int:
    """The number that the interpreter would end with."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    sys.stderr.write(f"{end.code}\n")
    return 1


def imports_of(program: Program) -> tuple[str, ...]:
    """Names of the modules that the program's file imports at its top level, in order; empty when it is unreadable."""
    path = _module_file(program.target) if program.is_module else Path(program.target)
    if path is None:
        return ()
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return tuple(dict.fromkeys(names))


def _module_file(name: str) -> Path | None:
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found and found.origin else None
