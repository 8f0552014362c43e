"""How often the leases of a real libvirt's network are read."""
import os
import time

AT_ONCE = int(os.environ.get("NODEPOOL_TEST_LIBVIRT_AT_ONCE", "3"))


# LV-43
def test_leases_are_read_once_for_all_machines_that_boot(libvirt_site, statsd):
    tree = libvirt_site.tree()
    provider = libvirt_site.provider()
    provider["hosts"] = [{"name": "local", "uri": provider.pop("uri"), "cores": AT_ONCE}]
    provider["cloud-images"][0].update(libvirt_site.host.direct_kernel())
    provider["pools"][0]["labels"][0]["memory"] = 256
    libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    begun = time.monotonic()
    held = [tree.use(request) for request in [tree.add_request(["small"]) for _ in range(AT_ONCE)]]
    seconds = time.monotonic() - begun
    calls = sum(int(line.split(":")[1].split("|")[0])
                for _, line in statsd.lines(r"nodepool\.provider\.here\.host\.local\.call\.leases\.ok:"))
    assert 0 < calls <= 4 * seconds + 1, "one each 250 ms"
    addresses = {tree.node(lock[0][0])["interface_ip"] for lock in held}
    assert len(addresses) == AT_ONCE
