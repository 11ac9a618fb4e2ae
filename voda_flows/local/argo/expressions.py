"""The small language of conditions: ``when``, ``depends`` and ``{{=...}}``.

In: the text and the variables; out: its value. Argo uses two libraries here (govaluate for ``when`` and ``depends``,
expr for ``{{=...}}`` and ``retryStrategy.expression``); what both have in common, and what documents in practice use,
is one grammar: integers, numbers, text in quotes, ``true``, ``false``, ``nil``, names, arithmetic, comparison,
``&& || !``, ``?:``, ``x in (1, 2)``, and the functions of FUNCTIONS. Everything else is refused by name.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scheduler_core.errors import InvalidValue
from voda_flows.local.argo.unsupported import Unsupported

TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<name>[A-Za-z_]\w*(?:(?:\.[A-Za-z_]\w*)|(?:\[(?:'[^']*'|\"[^\"]*\")\]))*)"
    r"|(?P<sign>&&|\|\||==|!=|<=|>=|\*\*|[-+*/%<>!?:(),])|(?P<bad>\S))"
)
BRACKETS = re.compile(r"\[['\"](.*?)['\"]\]")
LITERALS: Mapping[str, Any] = {"true": True, "false": False, "nil": None}
WORDS = {"and": "&&", "or": "||", "not": "!", "in": "in"}
KINDS = {"number": "NUMERIC", "text": "STRING", "name": "VARIABLE"}
"""What Argo calls values of a condition."""
PRECEDENCE: Mapping[str, int] = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "in": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6,
    "%": 6, "**": 7,
}  # fmt: skip

CHAINS: Mapping[str, bool] = {"&&": False, "||": True}
"""Operations on any number of parts, with the value of a part that decides the whole."""
NESTING = frozenset({("sign", "("), ("sign", "!"), ("sign", "-"), ("sign", "?")})
MAX_DIGITS = 18  # of a 64-bit integer
MAX_NESTING = 50  # each costs a few calls of the parser; people write one or two
MAX_OPERATORS = 200  # but for && and ||, which a chain may have any number of: each deepens the tree by one
MAX_INTEGER = 2**63 - 1  # Go's int
MAX_SHOWN = 80


class UnknownName(InvalidValue):
    """A name has no value (yet)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A parsed expression: an operation with its parts, a literal, or a name."""

    kind: str
    value: Any = None
    parts: tuple[Expression, ...] = ()


def _as_int(value: Any) -> int:  # noqa: ANN401 - whatever an expression holds
    try:
        return int(_in_range(int(value)))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(f"asInt: expected a whole number, got {_shown(value)}") from error


def _as_float(value: Any) -> float:  # noqa: ANN401 - whatever an expression holds
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"asFloat: expected a number, got {_shown(value)}") from error


def _length(value: Any) -> int:  # noqa: ANN401 - whatever an expression holds
    try:
        return len(value)
    except TypeError as error:
        raise InvalidValue(f"len: expected text or a list, got {_shown(value)}") from error


def _in_range(value: Any) -> Any:  # noqa: ANN401 - whatever an expression holds
    """The value, unless it is a whole number that Go's int could not hold."""
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise OverflowError
    return value


def _shown(value: Any) -> str:  # noqa: ANN401 - whatever an expression holds
    """A value for a message, cut where it is long."""
    shown = repr(value)
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}..."


FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "asInt": _as_int, "int": _as_int, "asFloat": _as_float, "float": _as_float, "string": str, "len": _length,
}  # fmt: skip

ORDERED: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "+": operator.add, "-": operator.sub,
    "*": operator.mul, "%": operator.mod, "**": math.pow, "/": operator.truediv,
}  # fmt: skip


def evaluate(source: str, variables: Mapping[str, Any]) -> Any:  # noqa: ANN401 - an expression has any type
    """The value of an expression over variables named with dots, as ``inputs.parameters.x``.

    Raises:
        UnknownName: It names a variable that is not there.
        InvalidValue: It does not parse, mixes types, or uses what local mode does not know.
    """

    def lookup(name: str) -> Any:  # noqa: ANN401 - a variable has any type
        if name in variables:
            return variables[name]
        raise UnknownName(f"expression {source.strip()!r}: expected a known variable, got {name!r}")

    return compute(parse(source), lookup)


def compute(tree: Expression, lookup: Callable[[str], Any]) -> Any:  # noqa: ANN401 - an expression has any type
    """The value of a parsed expression; names are asked of ``lookup``."""
    if tree.kind == "literal":
        return tree.value
    if tree.kind == "name":
        return lookup(tree.value)
    if tree.kind == "call":
        return FUNCTIONS[tree.value](compute(tree.parts[0], lookup))
    if tree.kind in CHAINS:
        decides = CHAINS[tree.kind]
        return decides if any(_truth(compute(part, lookup)) == decides for part in tree.parts) else not decides
    first = compute(tree.parts[0], lookup)
    if tree.kind == "?:":
        return compute(tree.parts[1 if _truth(first) else 2], lookup)
    return _operation(tree.kind, first, *(compute(part, lookup) for part in tree.parts[1:]))


def names(tree: Expression) -> tuple[str, ...]:
    """All names of an expression, in order."""
    found, left = list[str](), [tree]
    while left:
        part = left.pop()
        if part.kind == "name":
            found.append(part.value)
        left += reversed(part.parts)
    return tuple(found)


def _operation(sign: str, *values: Any) -> Any:  # noqa: ANN401 - an expression has any type
    if sign == "in":
        return any(_binary("==", values[0], other) for other in values[1:])
    if len(values) == 1:
        return not _truth(values[0]) if sign == "!" else -_number(values[0])
    return _binary(sign, *values)


def _binary(sign: str, first: Any, second: Any) -> Any:  # noqa: ANN401 - an expression has any type
    if sign in {"==", "!="}:
        return (_kind(first) is _kind(second) and first == second) == (sign == "==")
    comparable = _kind(first) is _kind(second) and _kind(first) in ({float, str} if sign in "+<=>=" else {float})
    if not comparable:
        raise InvalidValue(
            f"expected values of one kind on both sides of {sign}, got {_shown(first)} and {_shown(second)}"
        )
    if sign in {"/", "%"} and second == 0:
        raise InvalidValue(f"expected a divisor other than 0 in {first!r} {sign} {second!r}")
    try:
        return _in_range(ORDERED[sign](first, second))
    except (OverflowError, ValueError) as error:
        raise InvalidValue(f"{first!r} {sign} {second!r}: too large, or no number") from error


def _kind(value: Any) -> type:  # noqa: ANN401 - an expression has any type
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def _number(value: Any) -> float:  # noqa: ANN401 - an expression has any type
    if _kind(value) is not float:
        raise InvalidValue(f"expected a number behind -, got {_shown(value)}")
    return value  # type: ignore[no-any-return]  # _kind has just said so


def _truth(value: Any) -> bool:  # noqa: ANN401 - an expression has any type
    if isinstance(value, bool):
        return value
    raise InvalidValue(f"expected true or false, got {_shown(value)}")


@lru_cache(maxsize=4096)
def parse(source: str) -> Expression:
    """The expression of a text.

    Raises:
        InvalidValue: It does not parse ("Unexpected end of expression"), or calls an unknown function.
    """
    tokens = _tokens(source)
    if sum(token in NESTING for token in tokens) > MAX_NESTING:
        raise InvalidValue(f"expected at most {MAX_NESTING} brackets and signs in an expression")
    if sum(kind == "sign" and word not in CHAINS for kind, word in tokens) > MAX_OPERATORS:
        raise InvalidValue(f"expected at most {MAX_OPERATORS} operators other than && and || in an expression")
    parser = _Parser(tokens)
    tree = parser.ternary()
    if parser.peek()[0]:
        raise InvalidValue(f"Cannot transition token types{parser.transition()}")
    return tree


def _tokens(source: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for match in TOKEN.finditer(source.rstrip()):
        kind = str(match.lastgroup)
        if kind == "bad":
            raise InvalidValue(f"Invalid token: '{match.group('bad')}'")
        word = match.group(kind)
        found.append(("sign", WORDS[word]) if kind == "name" and word in WORDS else (kind, word))
    return found


def _bare(kind: str, word: str) -> str:
    """A token without its quotes."""
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if kind == "text" else word


class _Parser:
    """Precedence climbing over a list of tokens; ``position`` is the next one."""

    def __init__(self, tokens: Sequence[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.position = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.position] if self.position < len(self.tokens) else ("", "")

    def take(self, sign: str = "") -> tuple[str, str]:
        token = self.peek()
        if not token[0]:
            raise InvalidValue("Unexpected end of expression")
        if sign and token != ("sign", sign):
            raise InvalidValue(f"expected {sign!r}, got {token[1]!r}")
        self.position += 1
        return token

    def ternary(self) -> Expression:
        condition = self.binary(0)
        if self.peek() != ("sign", "?"):
            return condition
        self.take("?")
        then = self.ternary()
        self.take(":")
        return Expression(kind="?:", parts=(condition, then, self.ternary()))

    def binary(self, lowest: int) -> Expression:
        left = self.unary()
        while self.peek()[0] == "sign" and PRECEDENCE.get(self.peek()[1], -1) > lowest:
            sign = self.take()[1]
            if sign == "in":
                left = Expression(kind="in", parts=(left, *self.listed()))
                continue
            parts = [left, self.binary(PRECEDENCE[sign])]
            while sign in CHAINS and self.peek() == ("sign", sign):
                self.take()
                parts.append(self.binary(PRECEDENCE[sign]))
            left = Expression(kind=sign, parts=tuple(parts))
        return left

    def listed(self) -> list[Expression]:
        self.take("(")
        found = [self.ternary()]
        while self.peek() == ("sign", ","):
            self.take()
            found.append(self.ternary())
        self.take(")")
        return found

    def transition(self) -> str:
        """What follows where nothing should, in Argo's words where two values stand side by side."""
        (before, first), (kind, word) = self.tokens[self.position - 1], self.peek()
        if before in KINDS and kind in KINDS:
            return f" from {KINDS[before]} [{_bare(before, first)}] to {KINDS[kind]} [{_bare(kind, word)}]"
        return f": unexpected {word!r}"

    def unary(self) -> Expression:
        if self.peek() in {("sign", "!"), ("sign", "-")}:
            return Expression(kind=self.take()[1], parts=(self.unary(),))
        return self.atom()

    def atom(self) -> Expression:
        kind, word = self.take()
        if kind == "number":
            is_float = "." in word or len(word) > MAX_DIGITS
            return Expression(kind="literal", value=float(word) if is_float else int(word))
        if kind == "text":
            return Expression(kind="literal", value=_bare(kind, word))
        if kind == "name":
            return self.call(word) if self.peek() == ("sign", "(") else self.name(word)
        if word == "(":
            inside = self.ternary()
            self.take(")")
            return inside
        raise InvalidValue(f"Cannot transition token types: unexpected {word!r}")

    def name(self, word: str) -> Expression:
        if word in LITERALS:
            return Expression(kind="literal", value=LITERALS[word])
        return Expression(kind="name", value=BRACKETS.sub(r".\1", word))

    def call(self, word: str) -> Expression:
        if word not in FUNCTIONS:
            known = ", ".join(sorted(FUNCTIONS))
            raise Unsupported(f"function {word}: not supported in local mode (known: {known})")
        self.take("(")
        argument = self.ternary()
        self.take(")")
        return Expression(kind="call", value=word, parts=(argument,))
