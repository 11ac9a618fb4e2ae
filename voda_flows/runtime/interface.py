"""The network interface that has an address: Gloo binds to an interface, not to an address."""

from __future__ import annotations

import array
import fcntl
import ipaddress
import socket
import struct

from voda_flows.runtime.errors import BadEnvironment

_SIOCGIFADDR = 0x8915  # linux/sockios.h


def interface_of(address: str) -> str:
    """The interface of an address; ``lo`` for any loopback address, which Linux answers without having it.

    Raises:
        BadEnvironment: No interface has it.
    """
    if ipaddress.ip_address(address).is_loopback:
        return "lo"
    for _, name in socket.if_nameindex():
        if _address_of(name) == address:
            return name
    raise BadEnvironment(f"VODA_POD_IP: expected an address of this machine, got {address!r}; see `ip address`")


def _address_of(name: str) -> str | None:
    request = array.array("B", struct.pack("256s", name.encode()))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            fcntl.ioctl(asked.fileno(), _SIOCGIFADDR, request)
        except OSError:
            return None  # an interface without an IPv4 address
    return socket.inet_ntoa(request.tobytes()[20:24])
