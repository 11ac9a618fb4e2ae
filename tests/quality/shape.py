"""Measures the shape of the sources: lines of files, code lines and parameters of functions, depth of nesting.

A function's code lines are those that are neither blank, nor comment only, nor its docstring, nor of a function inside
it (that one is counted by itself).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("scheduler_core", "voda_flows", "workloads", "deploy")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
NESTING = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match, ast.AsyncFor, ast.AsyncWith)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionShape:
    """One function: where it is, how long, how wide, how deep."""

    where: str
    code_lines: int
    lines: int
    parameters: int
    nesting: int


def python_files(*folders: str) -> list[Path]:
    """Python files under folders of the repository, sorted."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def file_lines(path: Path) -> int:
    """Lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, source: list[str]) -> int:
    inner = [node for node in ast.walk(function) if isinstance(node, FUNCTION) and node is not function]
    skipped = {number for node in inner for number in _span(node)}
    if ast.get_docstring(function, clean=False) is not None:
        skipped.update(_span(function.body[0]))
    texts = (source[number - 1].strip() for number in _span(function) if number not in skipped)
    return sum(bool(text) and not text.startswith("#") for text in texts)


def _depth(node: ast.AST) -> int:
    inner = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        # `elif` is an If in the orelse of an If: written at the same depth, so counted once.
        is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        inner = max(inner, _depth(child) + (isinstance(child, NESTING) and not is_elif))
    return inner


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return sum(argument.arg not in {"self", "cls"} for argument in given)


@cache
def functions(*folders: str) -> tuple[FunctionShape, ...]:
    """Shapes of all functions and methods under folders of the repository; measured once."""
    return tuple(_functions(*folders))


def _functions(*folders: str) -> Iterator[FunctionShape]:
    for path in python_files(*folders):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, FUNCTION):
                yield FunctionShape(
                    where=f"{path.relative_to(ROOT)}:{node.lineno} {node.name}",
                    code_lines=_code_lines(node, text.splitlines()),
                    lines=(node.end_lineno or node.lineno) - node.lineno + 1,
                    parameters=_parameters(node),
                    nesting=_depth(node),
                )
