"""How machines on a real libvirt are reached: at an address that their guest agent tells, or at a port of the host."""
import re
import socket

import pytest
import yaml
from nodepool_helpers import ROOT, Tree, run
from services import wait_for
from standalone import Standalone

from libvirt_host import BOOT_SECONDS, DRIVERS


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


# LV-63
def test_a_job_of_a_user_network_gets_nothing_for_being_local(libvirt_site, tmp_path):
    provider = libvirt_site.provider({"network": {"user": True}})
    folder = tmp_path / "standalone"
    folder.mkdir()
    standalone = Standalone(folder, providers=[provider], labels=[{"name": "small"}])
    settings = yaml.safe_load(standalone.config.read_text())
    settings["webapp"]["read-needs-token"] = True
    standalone.config.write_text(yaml.safe_dump(settings))
    standalone.start("--drivers-dir", DRIVERS)
    try:
        standalone.nodes()
        secret = (folder / "state/zookeeper.secret").read_text().strip()
        tree = Tree(f"127.0.0.1:{standalone.port}", auth_data=[("digest", f"nodepool:{secret}")])
        tree.fulfil_timeout = 2 * BOOT_SECONDS
        held = tree.use(tree.add_request(["small"]))
        node = tree.node(held[0][0])
        answer = libvirt_site.login(node, f"printf ruok | busybox nc -w 9 10.0.2.2 {standalone.port}; "
                                    f"printf dump | busybox nc -w 9 10.0.2.2 {standalone.port}")
        assert answer.startswith("imok") and "secret" in answer and "Session" not in answer
        page = libvirt_site.login(node, f"busybox wget -S -O - http://10.0.2.2:{standalone.web_port}/api/v1/nodes 2>&1 || true")
        assert "403" in page or "401" in page, page
        tree.give_back(held)
        wait_for(lambda: not libvirt_site.host.domains(), "the machine ends", 60)
        tree.close()
    finally:
        standalone.process.kill()


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


@pytest.fixture
def arp_that_works(libvirt_host, tmp_path):
    """libvirtd with a list of neighbours that each version of libvirt can read."""
    library = tmp_path / "netlink.so"
    run("gcc", "-shared", "-fPIC", "-o", library, ROOT / "tests/data/netlink_before_6_9.c")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ld.so.preload").write_text(f"{library}\n")
    libvirt_host.restart("sh", "-euc", 'mount -t overlay overlay -o "lowerdir=$0:/etc" /etc; exec "$@"', tmp_path / "etc")
    yield
    libvirt_host.restart()


def leased_address(host, mac: str) -> str | None:
    found = re.search(rf"{mac} +ipv4 +([\d.]+)/", host.virsh("net-dhcp-leases", "nodepool"))
    return found and found[1]


def is_listening(address: str) -> bool:
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex((address, 22)) == 0


# LV-12
def test_on_a_bridge_the_arp_table_knows_the_address_of_a_machine_without_agent(libvirt_site, arp_that_works):
    host, tree = libvirt_site.host, libvirt_site.tree()
    label = {"network": {"bridge": host.settings["bridge"]}, "userdata": "#!/bin/sh\nchmod 0 /usr/sbin/qemu-ga\n"}
    libvirt_site.launcher(libvirt_site.config(providers=[libvirt_site.provider(label)]))
    request = tree.add_request(["small"])
    name, = wait_for(host.domains, "the machine is started", 60)
    mac = host.domain(name).find("devices/interface/mac").get("address")
    address = wait_for(lambda: leased_address(host, mac), "the machine is in the network", BOOT_SECONDS)
    # The kernel knows the neighbours that it has talked to.
    wait_for(lambda: is_listening(address), "its sshd answers", BOOT_SECONDS)
    node = tree.node(tree.use(request)[0][0])
    assert node["interface_ip"] == address
    assert not host.try_virsh("qemu-agent-command", name, '{"execute": "guest-ping"}'), "there is no agent"


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
