"""How machines on a real libvirt are reached: at an address that their guest agent tells, or at a port of the host."""
import socket

from services import wait_for


# LV-11
def test_machines_of_a_user_network_are_reached_at_ports_of_the_host(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    libvirt_site.launcher(libvirt_site.config(providers=[libvirt_site.provider({"network": {"user": True}})]))
    held = tree.use(tree.add_request(["small", "small"]))
    nodes = [tree.node(node_id) for node_id, _ in held]
    assert len({node["connection_port"] for node in nodes}) == 2
    for node, (node_id, _) in zip(nodes, held):
        assert node["interface_ip"] == "127.0.0.1" and 22000 <= node["connection_port"] <= 22999
        assert libvirt_site.login(node, "hostname") == f"np{node_id}"
    tree.give_back(held)
    wait_for(lambda: not host.domains(), "the machines end", 60)
    for node in nodes:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", node["connection_port"])) != 0, "the port is free again"


# LV-12
def test_on_a_bridge_the_guest_agent_tells_the_address(libvirt_site):
    tree = libvirt_site.tree()
    bridge = libvirt_site.host.settings["bridge"]
    libvirt_site.launcher(libvirt_site.config(providers=[libvirt_site.provider({"network": {"bridge": bridge}})]))
    held = tree.use(tree.add_request(["small"]))
    node = tree.node(held[0][0])
    name, = libvirt_site.host.domains()
    assert libvirt_site.host.domain(name).find("devices/interface").get("type") == "bridge"
    assert libvirt_site.login(node, "hostname") == f"np{held[0][0]}"


def test_a_kernel_of_the_host_starts_the_machine(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    provider = libvirt_site.provider()
    provider["cloud-images"][0].update(host.direct_kernel())
    libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    held = tree.use(tree.add_request(["small"]))
    node = tree.node(held[0][0])
    assert "nodepool.test=1" in libvirt_site.login(node, "cat", "/proc/cmdline")


# driver-libvirt.md 7.3
def test_uefi_starts_the_machine_and_its_variables_go_with_it(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    provider = libvirt_site.provider()
    # The image has no boot loader for UEFI.
    provider["cloud-images"][0].update(host.direct_kernel())
    provider["pools"][0]["labels"][0]["firmware"] = "uefi"
    libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    held = tree.use(tree.add_request(["small"]))
    node = tree.node(held[0][0])
    assert "efi" in libvirt_site.login(node, "ls", "/sys/firmware")
    assert any(name.endswith(".variables") for name in host.volumes())
    tree.give_back(held)
    wait_for(lambda: not any(name.startswith("np.") for name in host.volumes()), "every volume is deleted", 60)
