"""Where an argo-server is and who asks, in the words that ``argo`` knows."""

from __future__ import annotations

import pytest

from scheduler_core.errors import Forbidden, InvalidValue
from voda_flows.argo_server.address import Address, address

TOKEN = {"ARGO_TOKEN": "abc"}


@pytest.mark.parametrize(
    ("place", "environment", "expected"),
    [
        ("argo:2746", {}, Address(url="https://argo:2746", token="Bearer abc")),
        ("argo:2746", {"ARGO_SECURE": "false"}, Address(url="http://argo:2746", token="Bearer abc")),
        ("http://10.0.0.1:80/", {}, Address(url="http://10.0.0.1:80", token="Bearer abc")),
        ("argo:1", {"ARGO_TOKEN": "Basic xyz"}, Address(url="https://argo:1", token="Basic xyz")),
        ("argo:1", {"ARGO_INSECURE_SKIP_VERIFY": "true", "ARGO_NAMESPACE": "team"},
         Address(url="https://argo:1", token="Bearer abc", verified=False, namespace="team")),
    ],
)  # fmt: skip
def test_a_place_and_the_environment_make_an_address(
    place: str, environment: dict[str, str], expected: Address
) -> None:
    """TLS unless somebody says otherwise; a bare token is a bearer's."""
    assert address(place, {**TOKEN, **environment}) == expected


@pytest.mark.parametrize("place", ["argo", "argo:", "argo:port", "ftp://argo:1", "argo:2746/path"])
def test_what_is_no_place_is_refused(place: str) -> None:
    """With what one looks like."""
    with pytest.raises(InvalidValue, match="--argo-server: expected HOST:PORT"):
        address(place, TOKEN)


def test_without_a_token_it_is_said_how_to_get_one() -> None:
    """And the token is in no text of ours."""
    with pytest.raises(Forbidden, match="expected a token in ARGO_TOKEN"):
        address("argo:1", {})

    assert "abc" not in repr(address("argo:1", TOKEN))
