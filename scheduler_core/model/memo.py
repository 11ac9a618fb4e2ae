"""What a pure function made of a value, kept as long as the very same value is asked about again.

From round to round most jobs are the same frozen values; what is found out about one of them need not be found again.
Only time is saved: an equal value that is another object is looked at anew, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

#: Values remembered by one function; when there are more, all are forgotten. Some rounds of the largest clusters.
_MOST = 20_000


class OncePerObject(Generic[K, V]):
    """A function of one frozen value that is called once for each object.

    Args:
        function: Depends on nothing but the value; what it returns must not be changed.
    """

    def __init__(self, function: Callable[[K], V]) -> None:
        self._function = function
        self._known: dict[int, tuple[K, V]] = {}
        self._last: tuple[Sequence[K], list[V]] = ((), [])

    def __call__(self, value: K) -> V:
        """The function's result."""
        found = self._known.get(id(value))
        if found is not None and found[0] is value:
            return found[1]
        if len(self._known) >= _MOST:
            self._known.clear()
        result = self._function(value)
        self._known[id(value)] = (value, result)
        return result

    def of_all(self, values: Sequence[K]) -> Sequence[V]:
        """The function's result for each; at once where they are those of the last call."""
        last, results = self._last
        if len(last) != len(values) or not all(map(is_, values, last)):
            results = [self(value) for value in values]
            self._last = (values, results)
        return results
