"""Where an argo-server is and who asks: the command line's words and the environment, as ``argo`` reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from scheduler_core.errors import Forbidden, InvalidValue

TOKEN: Final = "ARGO_TOKEN"  # noqa: S105 - a name
SECURE: Final = "ARGO_SECURE"
UNVERIFIED: Final = "ARGO_INSECURE_SKIP_VERIFY"
NAMESPACE: Final = "ARGO_NAMESPACE"
_PLACE: Final = re.compile(r"(?:(?P<scheme>https?)://)?(?P<host>[^\s/:]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})/?")
_TRUE: Final = ("1", "t", "true")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An argo-server and who asks.

    Attributes:
        url: ``https://host:port``.
        token: What is sent as ``Authorization``.
        verified: Whether its certificate must be one that this machine trusts.
        namespace: Namespace of jobs where none is named.
    """

    url: str
    token: str = field(repr=False)
    verified: bool = True
    namespace: str = "default"


def address(place: str, environment: Mapping[str, str]) -> Address:
    """Read it.

    Args:
        place: ``HOST:PORT``, with ``http://`` or ``https://`` before it or not.
        environment: Of this process: the variables named above.

    Raises:
        InvalidValue: It is no such place.
        Forbidden: There is no token.
    """
    found = _PLACE.fullmatch(place)
    if found is None:
        raise InvalidValue(f"--argo-server: expected HOST:PORT, such as argo.example.com:2746, got {place!r}")
    token = environment.get(TOKEN, "").strip()
    if not token:
        raise Forbidden(
            f"argo-server {place}: expected a token in {TOKEN}, found none\n"
            "get one with `argo auth token`, or `kubectl create token ACCOUNT`"
        )
    scheme = found["scheme"] or ("https" if _is_true(environment.get(SECURE, "true")) else "http")
    return Address(
        url=f"{scheme}://{found['host']}:{found['port']}",
        token=token if " " in token else f"Bearer {token}",
        verified=not _is_true(environment.get(UNVERIFIED, "")),
        namespace=environment.get(NAMESPACE) or "default",
    )


def _is_true(text: str) -> bool:
    """As Go reads a boolean."""
    return text.strip().lower() in _TRUE
