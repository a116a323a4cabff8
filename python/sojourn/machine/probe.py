"""Tries the first steps of a live run in a separate process, and prints the errors as JSON.

Run as ``python -m sojourn.machine.probe``. A user namespace can only be entered by a process with
one thread; the command has several, and a process cannot leave the namespace again.
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from sojourn import _core

# From the kernel's uapi headers sched.h and if_tun.h.
CLONE_NEWNET = 0x4000_0000
TUNSETIFF = 0x4004_54CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
# Packets of all protocols (if_ether.h).
ETH_P_ALL = 0x0003
DEVICE = b"sojourn0"
TUN = Path("/dev/net/tun")
NAMES = ("user_namespace", "network_namespace", "tun_device", "packet_socket")


def network_namespace() -> None:
    """Enter a new network namespace."""
    library = ctypes.CDLL(None, use_errno=True)
    # `os.unshare` needs Python 3.12.
    if library.unshare(CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def tun_device(file: Path = TUN) -> None:
    """Create a TUN device, which ends with the process."""
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    request = struct.pack("16sH22x", DEVICE, IFF_TUN | IFF_NO_PI)
    fcntl.ioctl(descriptor, TUNSETIFF, request)


def packet_socket() -> None:
    """Open a packet socket."""
    family = getattr(socket, "AF_PACKET", None)
    if family is None:
        message = "not supported by this Python"
        raise OSError(message)
    socket.socket(family, socket.SOCK_RAW, socket.htons(ETH_P_ALL)).close()


def attempts() -> dict[str, str | None]:
    """Try everything in order; return the error of each, None if it succeeded."""
    actions: tuple[Callable[[], None], ...] = (
        _core.enter_user_namespace,
        network_namespace,
        tun_device,
        packet_socket,
    )
    return {name: _error(action) for name, action in zip(NAMES, actions, strict=True)}


def _error(action: Callable[[], None]) -> str | None:
    try:
        action()
    except OSError as error:
        return error.strerror or str(error)
    except (_core.SojournError, AttributeError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    json.dump(attempts(), sys.stdout)
