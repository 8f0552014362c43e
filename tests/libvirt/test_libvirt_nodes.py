"""Nodes on a real libvirt, from the request to the end of the machine."""
import pytest
from nodepool_helpers import run
from services import wait_for

from libvirt_host import BIN, DRIVERS


# LV-3, LV-5, LV-6
def test_a_node_lives_and_dies(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    launcher = libvirt_site.launcher()
    held = tree.use(tree.add_request(["small"]))
    node_id = held[0][0]
    node = tree.node(node_id)
    name, = host.domains()
    digits = node["external_id"].removeprefix("local/")[:8]
    assert name == f"np{node_id}-{digits}"
    assert host.domain(name).findtext("uuid") == node["external_id"].removeprefix("local/")
    assert "Persistent:     no" in host.virsh("dominfo", name)
    metadata = host.metadata(name)
    assert metadata["nodepool_node_id"] == node_id and metadata["nodepool_provider_name"] == "here"
    assert metadata["label"] == "small" and metadata["image"] == "tiny"
    assert node["username"] == "zuul" and node["host_id"] == "local" and node["cloud"] == "here"
    assert node["resources"].items() >= {"cores": 1, "instances": 1, "ram": 512}.items()
    prefix = f"np.here.node.{node_id}.{digits}."
    assert {prefix + part for part in ("root", "console", "nocloud", "config-drive")} <= set(host.volumes())
    # LV-9
    assert libvirt_site.login(node, "hostname") == f"np{node_id}"
    tree.give_back(held)
    tree.wait_node_gone(node_id, 60)
    assert host.domains() == [] and host.volumes() == []
    assert host.public_key not in launcher.output()


# LV-7
def test_machines_share_nothing_but_their_image(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    before = host.virsh("vol-dumpxml", "guest.qcow2", "nodepool")
    libvirt_site.launcher()
    held = tree.use(tree.add_request(["small", "small"]))
    first, second = (tree.node(node_id) for node_id, _ in held)
    assert first["interface_ip"] != second["interface_ip"]
    assert not set(first["host_keys"]) & set(second["host_keys"])
    libvirt_site.login(first, "touch ~/left-here && sync")
    assert libvirt_site.login(second, "ls ~") == ""
    tree.give_back(held)
    for node_id, _ in held:
        tree.wait_node_gone(node_id, 60)
    assert host.virsh("vol-dumpxml", "guest.qcow2", "nodepool") == before


# LV-14
def test_a_machine_that_ends_while_it_boots_fails_its_attempt(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[
        libvirt_site.provider(**{"launch-retries": 1})]))
    request = tree.add_request(["small"])
    wait_for(lambda: "waiting for an address" in launcher.output(), "the machine is started", 60)
    name, = host.domains()
    host.virsh("destroy", name)
    wait_for(lambda: "ended before it had an address" in launcher.output(), "the attempt fails", 10)
    tree.wait_request(request, "failed", 30)
    wait_for(lambda: not host.volumes(), "nothing is left", 60)


# LV-29
def test_leaked_domains_are_deleted_with_their_volumes_and_foreign_ones_stay(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    launcher = libvirt_site.launcher()
    request = tree.add_request(["small"])
    name, = wait_for(host.domains, "the machine is started", 60)
    host.virsh("vol-create-as", "nodepool", "np.here.strange", "1M")
    launcher.kill()
    tree.zk.delete(f"/nodepool/requests/{request}")
    for node_id in tree.children("/nodepool/nodes"):
        tree.zk.delete(f"/nodepool/nodes/{node_id}", recursive=True)
    libvirt_site.launcher()
    wait_for(lambda: name not in host.domains(), "the domain is deleted", 60)
    wait_for(lambda: host.volumes() == ["np.here.strange"], "its volumes are deleted", 60)


# LV-30
@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_a_restart_of_libvirtd_disturbs_no_machine(libvirt_site, signal):
    host, tree = libvirt_site.host, libvirt_site.tree()
    launcher = libvirt_site.launcher()
    request = tree.add_request(["small"])
    wait_for(lambda: "waiting for an address" in launcher.output(), "the machine is started", 60)
    host.end_daemon(signal)
    wait_for(lambda: "Host local cannot be used" in launcher.output(), "the launcher notices", 30)
    host.up()
    held = tree.use(request)
    assert "Launch attempt" not in launcher.output(), "no attempt was used up"
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 90)
    assert host.domains() == [] and host.volumes() == []


# LV-4
def test_the_driver_keeps_the_contract(libvirt_site):
    config = libvirt_site.config()
    run(BIN / "nodepool-driver-test", "--drivers-dir", DRIVERS, "-c", config, "--cancellations", "3",
        "--provider", "here")
    assert libvirt_site.host.domains() == [] and libvirt_site.host.volumes() == []
