"""Finds assertions that something was quick: they fail on a slow machine, where nothing is wrong.

In: the source of a test file; out: the lines of its ``assert`` statements that hold elapsed wall or CPU time under a
bound. Elapsed is a difference of which one side is a clock's reading, or a name that was given one; a reading that has
to come before something is a bound too. That something took at least so long is no matter: it does on any machine.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "getrusage", "clock_gettime", "time", "times"}
CLOCKS |= {f"{name}_ns" for name in CLOCKS}
DATES = {"now", "utcnow"}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def upper_bounds(source: str) -> list[int]:
    """Lines of the assertions that bound elapsed time from above, in order.

    Args:
        source: A Python file's text.
    """
    tree = ast.parse(source)
    scopes = [tree, *(node for node in ast.walk(tree) if isinstance(node, FUNCTION))]
    return sorted({line for scope in scopes for line in _bounds_in(scope)})


def _bounds_in(scope: ast.AST) -> Iterator[int]:
    readings, elapsed = _names(scope)
    for node in ast.walk(scope):
        if isinstance(node, ast.Assert):
            for compare in ast.walk(node.test):
                if isinstance(compare, ast.Compare) and _is_bound(compare, readings, elapsed):
                    yield node.lineno


def _names(scope: ast.AST) -> tuple[set[str], set[str]]:
    """Names that were given a clock's reading, and names that were given elapsed time."""
    readings, elapsed = set[str](), set[str]()
    given = [pair for node in ast.walk(scope) for pair in _assigned(node)]
    before = -1
    while before != (before := len(readings) + len(elapsed)):  # names are given on from one to the next
        for names, value in given:
            if _is_elapsed(value, readings, elapsed):
                elapsed |= names
            elif _has_reading(value, readings):
                readings |= names
    return readings, elapsed


def _assigned(node: ast.AST) -> Iterator[tuple[set[str], ast.expr]]:
    """What an assignment gives to which names."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
        targets = [node.target]
    else:
        return
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from (({*_named(one)}, value) for one, value in zip(target.elts, node.value.elts, strict=False))
        elif node.value is not None:
            yield {*_named(target)}, node.value


def _named(target: ast.AST) -> Iterator[str]:
    return (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _is_bound(compare: ast.Compare, readings: set[str], elapsed: set[str]) -> bool:
    """Whether something elapsed stands on the lesser side of a comparison."""
    for (left, right), operator in zip(pairwise([compare.left, *compare.comparators]), compare.ops, strict=True):
        lesser = left if isinstance(operator, ast.Lt | ast.LtE) else right
        if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and (
            _is_elapsed(lesser, readings, elapsed) or _is_clock(lesser)
        ):
            return True
    return False


def _is_elapsed(value: ast.expr, readings: set[str], elapsed: set[str]) -> bool:
    """Whether there is a difference with a reading in it, or a name that was given one."""
    return any(
        (isinstance(node, ast.Name) and node.id in elapsed)
        or (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Sub)
            and (_has_reading(node.left, readings) or _has_reading(node.right, readings))
        )
        for node in ast.walk(value)
    )


def _has_reading(value: ast.expr, readings: set[str]) -> bool:
    """Whether a clock is read in it, or a name stands in it that was given a reading."""
    return any(_is_clock(node) or (isinstance(node, ast.Name) and node.id in readings) for node in ast.walk(value))


def _is_clock(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in CLOCKS
    if not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Name):
        return False
    module, name = node.func.value.id, node.func.attr
    return (module in {"time", "os", "resource"} and name in CLOCKS) or (module == "datetime" and name in DATES)
