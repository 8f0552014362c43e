"""A subnet for the machines."""
import ipaddress
import re
import zlib

CANDIDATES = [ipaddress.ip_network(f"192.168.{third}.0/24") for third in range(170, 200)]


def free_subnet(routes: str, name: str) -> ipaddress.IPv4Network:
    """A candidate that no route leads to; `routes` is what `ip -4 route show table all` prints. The name decides where the
    search begins, so that two that are made at the same time do not get the same one."""
    first = zlib.crc32(name.encode()) % len(CANDIDATES)
    taken = [ipaddress.ip_network(word, strict=False)
             for word in re.findall(r"\b\d+\.\d+\.\d+\.\d+(?:/\d+)?", routes)]
    for subnet in CANDIDATES[first:] + CANDIDATES[:first]:
        if not any(subnet.overlaps(other) for other in taken if other.prefixlen > 0):
            return subnet
    raise RuntimeError(f"Every subnet from {CANDIDATES[0]} to {CANDIDATES[-1]} is in use on this computer")
