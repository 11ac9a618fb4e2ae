"""How people write amounts in settings and inputs: lists of GPU counts, and links with bandwidth and latency.

In: text. Out: values of the core. A ``ValueError`` says what was expected; the caller says where, and what was found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from scheduler_core.model.communication import Link

POWERS_OF_TWO = "powers-of-two"
#: The largest of them: no job here comes near.
_MOST_POWER = 16
_SIZE = re.compile(r"[1-9][0-9]{0,8}")
_SIZES = f"GPU counts >= 1 joined by commas, each once, or {POWERS_OF_TWO}"
_LINKS = (
    "links joined by ';', each a level, '=', a bandwidth in GB/s, MB/s, Gbit/s or Mbit/s and perhaps a latency in s, "
    "ms, us or ns, e.g. node=300GB/s,2us"
)
_LINK = re.compile(
    r"(?P<level>[^=;,\s]+)\s*=\s*(?P<much>[0-9.]{1,12})\s*(?P<per>GB|MB|Gbit|Mbit)/s"
    r"(\s*,\s*(?P<late>[0-9.]{1,12})\s*(?P<unit>s|ms|us|ns))?"
)
_BYTES: Mapping[str, float] = {"GB": 1e9, "MB": 1e6, "Gbit": 1e9 / 8, "Mbit": 1e6 / 8}
_SECONDS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def gpu_sizes(text: str) -> tuple[int, ...]:
    """Sizes that jobs may have, GPUs in ascending order; none where the text is empty.

    >>> gpu_sizes("4, 1,2"), gpu_sizes("powers-of-two")[:4], gpu_sizes("")
    ((1, 2, 4), (1, 2, 4, 8), ())

    Raises:
        ValueError: It is no such list.
    """
    if not text.strip():
        return ()
    if text.strip() == POWERS_OF_TWO:
        return tuple(1 << power for power in range(_MOST_POWER + 1))
    parts = [part.strip() for part in text.split(",")]
    if not all(_SIZE.fullmatch(part) for part in parts) or len(set(parts)) < len(parts):
        raise ValueError(_SIZES)
    return tuple(sorted(map(int, parts)))


def links(text: str) -> dict[str, Link]:
    """Links by level of the topology tree.

    >>> links("node=300GB/s,2us; rack=100Gbit/s")
    {'node': Link(bytes_per_s=300000000000.0, latency_s=2e-06), 'rack': Link(bytes_per_s=12500000000.0, latency_s=0.0)}

    Raises:
        ValueError: It names no such links, or one level twice.
    """
    found: dict[str, Link] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        read = _LINK.fullmatch(part)
        if read is None or read["level"] in found:
            raise ValueError(_LINKS)
        found[read["level"]] = Link(
            bytes_per_s=_positive(read["much"]) * _BYTES[read["per"]],
            latency_s=_number(read["late"]) * _SECONDS[read["unit"]] if read["late"] else 0.0,
        )
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as fault:
        raise ValueError(_LINKS) from fault


def _positive(text: str) -> float:
    number = _number(text)
    if number <= 0:
        raise ValueError(_LINKS)
    return number
