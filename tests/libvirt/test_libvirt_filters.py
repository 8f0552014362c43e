"""libvirt's network filters on a real libvirt: what a machine can send and receive."""
import socket

import pytest
from services import wait_for

from network_filters import define_filters


@pytest.fixture
def filters(libvirt_host):
    define_filters(libvirt_host.try_virsh)


def answers(address: str) -> bool:
    """Whether its sshd can be reached."""
    try:
        socket.create_connection((address, 22), timeout=10).close()
    except OSError:
        return False
    return True


# LV-39
@pytest.mark.parametrize("security_filter", ["clean-traffic", False])
def test_a_machine_has_no_traffic_with_a_forged_address(libvirt_site, filters, security_filter):
    host, tree = libvirt_site.host, libvirt_site.tree()
    provider = libvirt_site.provider({"security-filter": security_filter})
    libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    held = tree.use(tree.add_request(["small"]))
    node = tree.node(held[0][0])
    name, = host.domains()
    assert (host.domain(name).find("devices/interface/filterref") is not None) == bool(security_filter)
    forged = node["interface_ip"].rsplit(".", 1)[0] + ".5"  # not in the range of the network's leases
    libvirt_site.login(node | {"username": "root"}, "ip", "address", "add", f"{forged}/24", "dev", "eth0")
    assert answers(node["interface_ip"]), "its own address works"
    assert answers(forged) == (not security_filter)


# LV-39
def test_a_filter_that_does_not_exist_is_named(libvirt_site):
    tree = libvirt_site.tree()
    provider = libvirt_site.provider({"security-filter": "no-such-filter"}, **{"launch-retries": 1})
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    tree.wait_request(tree.add_request(["small"]), "failed", 60)
    assert "no-such-filter" in launcher.output()
    wait_for(lambda: libvirt_site.host.volumes() == [], "nothing is left", 60)
