"""Which address of the loopback network a pod is given."""

from __future__ import annotations

import pytest

from scheduler_core.errors import Unreachable
from voda_flows.local.pods import choose_address


def test_a_pod_keeps_to_its_own_corner_of_the_network() -> None:
    """The uid picks where the search begins; an address in use, or listened at, is passed over."""
    first = choose_address("uid-a", (), is_free=lambda _: True)
    second = choose_address("uid-a", {first}, is_free=lambda _: True)
    third = choose_address("uid-a", {first}, is_free=lambda address: address != second)

    assert first == choose_address("uid-a", (), is_free=lambda _: True)
    assert first != choose_address("uid-b", (), is_free=lambda _: True)
    assert len({first, second, third}) == 3
    assert all(address.startswith("127.") for address in (first, second, third))


def test_a_system_without_a_loopback_network_is_told_apart() -> None:
    """Where only 127.0.0.1 can be bound no pod can start, and the message says what local mode needs."""
    with pytest.raises(Unreachable, match=r"expected a free address .*, found none among 4096\nlocal mode needs"):
        choose_address("uid-a", (), is_free=lambda _: False)
