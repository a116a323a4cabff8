"""Tries the first steps of a live run in a separate process, and prints the errors as JSON.

Run as ``python -m sojourn.host.probe``. A user namespace can only be entered by a process with
one thread; the command has several, and a process cannot leave the namespace again.
"""

import ctypes
import json
import os
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from sojourn import _core

# From the kernel's uapi headers sched.h, if_tun.h, netlink.h, rtnetlink.h and if_link.h.
CLONE_NEWNET = 0x4000_0000
TUNSETIFF = 0x4004_54CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
NETLINK_ROUTE = 0
RTM_NEWLINK = 16
NLM_F_REQUEST = 0x001
NLM_F_ACK = 0x004
NLM_F_EXCL = 0x200
NLM_F_CREATE = 0x400
IFLA_IFNAME = 3
IFLA_LINKINFO = 18
IFLA_INFO_KIND = 1
# Packets of all protocols (if_ether.h).
ETH_P_ALL = 0x0003
DEVICE = b"sojourn0"
TUN = Path("/dev/net/tun")
NAMES = (
    "user_namespace",
    "network_namespace",
    "tun_file",
    "tun_device",
    "veth_pair",
    "packet_socket",
)


def network_namespace() -> None:
    """Enter a new network namespace."""
    library = ctypes.CDLL(None, use_errno=True)
    # `os.unshare` needs Python 3.12.
    if library.unshare(CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def tun_file(file: Path = TUN) -> int:
    """Open the file of TUN devices; live runs use veth devices where it cannot be opened."""
    return os.open(file, os.O_RDWR | os.O_CLOEXEC)


def tun_device(file: Path = TUN) -> None:
    """Create a TUN device, which ends with the process."""
    import fcntl  # noqa: PLC0415 - not on every system

    request = struct.pack("16sH22x", DEVICE, IFF_TUN | IFF_NO_PI)
    fcntl.ioctl(tun_file(file), TUNSETIFF, request)


def veth_pair() -> None:
    """Create a pair of veth devices, which ends with the network namespace."""
    family = getattr(socket, "AF_NETLINK", None)
    if family is None:
        message = "not supported by this Python"
        raise OSError(message)
    kind = _attribute(IFLA_INFO_KIND, b"veth")
    # An empty `ifinfomsg`; the kernel names the other end.
    body = bytes(16) + _attribute(IFLA_IFNAME, DEVICE + b"\0") + _attribute(IFLA_LINKINFO, kind)
    flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_EXCL | NLM_F_CREATE
    head = struct.pack("=LHHLL", 16 + len(body), RTM_NEWLINK, flags, 1, 0)
    with socket.socket(family, socket.SOCK_RAW, NETLINK_ROUTE) as netlink:
        netlink.send(head + body)
        # A header, and the negative number of the error or 0.
        (number,) = struct.unpack_from("=l", netlink.recv(4096), 16)
    if number:
        raise OSError(-number, os.strerror(-number))


def _attribute(kind: int, value: bytes) -> bytes:
    """Return an attribute of a netlink message, padded to four bytes."""
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % 4)


def packet_socket() -> None:
    """Open a packet socket."""
    family = getattr(socket, "AF_PACKET", None)
    if family is None:
        message = "not supported by this Python"
        raise OSError(message)
    socket.socket(family, socket.SOCK_RAW, socket.htons(ETH_P_ALL)).close()


def attempts() -> dict[str, str | None]:
    """Try in order what live runs need."""
    found = {
        "user_namespace": _error(_core.enter_user_namespace),
        "network_namespace": _error(network_namespace),
        "tun_file": _error(tun_file),
    }
    if found["network_namespace"] is None:
        if found["tun_file"] is None:
            found["tun_device"] = _error(tun_device)
        else:
            found["veth_pair"] = _error(veth_pair)
    found["packet_socket"] = _error(packet_socket)
    return found


def _error(action: Callable[[], object]) -> str | None:
    try:
        action()
    except OSError as error:
        return error.strerror or str(error)
    except (_core.SojournError, AttributeError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    json.dump(attempts(), sys.stdout)
