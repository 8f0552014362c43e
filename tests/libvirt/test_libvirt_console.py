"""The console log of a machine on a real libvirt."""
import os

from services import wait_for

MEBIBYTE = 1 << 20
# Bytes that the machine prints, more than is kept of them. 100000000 take ten minutes without KVM.
PRINTED = int(os.environ.get("NODEPOOL_TEST_LIBVIRT_PRINTED", str(12 * MEBIBYTE)))


def bytes_of_console(host) -> int:
    names = [name for name in host.volumes() if ".console" in name]
    return sum(int(host.volume(name).findtext("allocation")) for name in names)


# LV-16
def test_a_console_that_never_stops_printing_is_bounded(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    provider = libvirt_site.provider()
    provider["cloud-images"][0].update(host.direct_kernel())
    libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    held = tree.use(tree.add_request(["small"]))
    as_root = tree.node(held[0][0]) | {"username": "root"}
    libvirt_site.login(as_root, f"head -c {PRINTED} /dev/zero | tr '\\0' x >/dev/ttyS0")
    assert bytes_of_console(host) < 10 * MEBIBYTE
    assert [name for name in host.volumes() if ".console." in name], "libvirt's log daemon has made further files"
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)
    wait_for(lambda: host.volumes() == [], "nothing is left", 30)
