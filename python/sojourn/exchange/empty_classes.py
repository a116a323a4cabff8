"""The classes of a tree that no packet of a scenario reaches, from its filters and its traffic.

Addresses and ports of simulated hosts are those of ``docs/qdiscs/htb.md``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from sojourn.traffic import Traffic
from sojourn.traffic.block import Direction

_SERVER_PORT, _QUIC_PORT = range(5001, 5002), range(443, 444)
_CLIENT_PORTS = range(49_152, 65_536)
_Network = IPv4Network | IPv6Network
# By version of IP: sender, receiver, hosts from the number 0 on, and their servers.
_NETWORKS: Mapping[int, Sequence[_Network]] = {
    4: [*map(IPv4Network, ("198.18.0.1", "198.18.0.2", "198.18.1.0", "10.0.0.0/8"))],
    6: [*map(IPv6Network, ("2001:2::1", "2001:2::2", "2001:2::100", "fd53:6f6a:6f75:726e::/64"))],
}
_DATAGRAMS = ("udp", "voip", "media", "ping")
# Traffic without packets in the other direction.
_ONE_WAY = ("udp", "voip")
_DSCP = {"EF": 46, "VA": 44, "NQB": 45, "LE": 1, "BE": 0}


@dataclass(frozen=True, slots=True)
class _Packets:
    """What filters see of the packets of a block of traffic on one link."""

    traffic: str
    host: int | None
    dscp: int
    ip: int
    protocol: str
    source: _Network
    destination: _Network
    # None: packets without ports.
    source_port: range | None
    destination_port: range | None


def empty_classes(
    queue: Mapping[str, Any], groups: Sequence[Traffic], direction: Direction
) -> Iterator[str]:
    """Describe each leaf class of ``htb`` that stays empty, and why."""
    classes = [one["name"] for one in queue.get("classes", ())]
    parents = {one.get("parent") for one in queue.get("classes", ())}
    filters: Sequence[Mapping[str, str]] = queue.get("filters", ())
    reached = {queue.get("default")}
    for group in groups:
        if group.direction == direction or group.kind not in _ONE_WAY:
            reached |= _reached(filters, _packets(group, direction))
    for name in classes:
        if name in parents or name in reached:
            continue
        texts = [_described(one) for one in filters if one["to"] == name]
        if texts:
            matches = " or ".join(dict.fromkeys(texts))
            yield f"no traffic of this scenario matches {matches}, so class {name} stays empty"
        else:
            yield f"no filter leads to class {name}, so it stays empty"


def _described(conditions: Mapping[str, str]) -> str:
    parts = [f"{key} {value}" for key, value in conditions.items() if key != "to"]
    return " and ".join(parts) or "a filter behind one that takes all packets"


def _reached(filters: Iterable[Mapping[str, str]], packets: _Packets) -> set[str]:
    """Return the classes of these packets: those of the filters up to one that takes them all."""
    found = set()
    for conditions in filters:
        parts = [_share(key, value, packets) for key, value in conditions.items() if key != "to"]
        share = min(parts, default=1.0)
        if share > 0:
            found.add(conditions["to"])
        if share == 1.0:
            break
    return found


def _share(key: str, value: str, packets: _Packets) -> float:
    """Return whether a condition holds for all (1.0), for some (0.5) or for none (0.0) of them."""
    if key == "traffic":
        return float(packets.traffic == value or packets.traffic.startswith(f"{value}/"))
    if key in {"source", "destination"}:
        return _overlap(ip_network(value, strict=False), getattr(packets, key))
    if key in {"source_port", "destination_port"}:
        return _of_ports(value, getattr(packets, key))
    if key == "dscp":
        return float(_number(value) == packets.dscp)
    return float(value in {"any", f"{getattr(packets, key)}"})


def _overlap(wanted: _Network, own: _Network) -> float:
    if wanted.version != own.version or not wanted.overlaps(own):
        return 0.0
    return 1.0 if wanted.prefixlen <= own.prefixlen else 0.5


def _of_ports(value: str, own: range | None) -> float:
    if own is None:
        return 0.0
    first, _, last = value.partition("-")
    low, high = int(first), int(last or first)
    if high < own.start or low >= own.stop:
        return 0.0
    return 1.0 if low <= own.start and high >= own.stop - 1 else 0.5


def _packets(group: Traffic, direction: Direction) -> _Packets:
    """Return the packets of a block on the link of a direction."""
    protocol, port = _service(group)
    ip = group.ip or 4
    sender, receiver, hosts, servers = _NETWORKS[ip]
    if group.host is None:
        # The sender of the data has the port of a client.
        client, server = sender, receiver
        is_from_client = group.direction == direction
    else:
        client, server = ip_network(hosts.network_address + group.host), servers
        is_from_client = direction == "up"
    ends = [(client, None if port is None else _CLIENT_PORTS), (server, port)]
    (source, source_port), (destination, destination_port) = ends if is_from_client else ends[::-1]
    return _Packets(
        traffic=f"{group.name}",
        host=group.host,
        dscp=_number(group.dscp or 0),
        ip=ip,
        protocol=protocol,
        source=source,
        destination=destination,
        source_port=source_port,
        destination_port=destination_port,
    )


def _service(group: Traffic) -> tuple[str, range | None]:
    """Return the protocol of a block, and the port of its server; None: it has no ports."""
    protocol = getattr(group, "protocol", None)
    if group.kind == "ping" and protocol != "udp":
        return "icmp", None
    is_quic = getattr(group, "transport", None) == "quic" or getattr(group, "http", None) == "3"
    if group.kind == "quic" or is_quic:
        return "udp", _QUIC_PORT
    return ("udp" if group.kind in _DATAGRAMS else "tcp"), _SERVER_PORT


def _number(dscp: str | int) -> int:
    """Return the number of a DSCP.

    Examples
    --------
    >>> [_number(one) for one in ("CS5", "AF42", "EF", "0x2e", 7)]
    [40, 36, 46, 46, 7]
    """
    text = f"{dscp}".upper()
    if text in _DSCP:
        return _DSCP[text]
    if text.startswith("CS"):
        return 8 * int(text[2:])
    if text.startswith("AF"):
        return 8 * int(text[2]) + 2 * int(text[3])
    return int(text, 0)
