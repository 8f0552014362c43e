"""What operators do with nodes on a real libvirt, and slots on its machines."""
import json

from services import wait_for

from libvirt_host import DRIVERS


def tool(site, *words):
    done = site.tool("--drivers-dir", DRIVERS, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


# LV-51
def test_slots_of_one_machine(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    slots = {"name": "slots", "driver": "metastatic", "pools": [{"name": "main", "labels": [
        {"name": "slot", "backing-label": "small", "max-parallel-jobs": 2, "grace-time": 1}]}]}
    libvirt_site.launcher(libvirt_site.config(labels=[{"name": "small"}, {"name": "slot"}],
                                              providers=[libvirt_site.provider(), slots]))
    held = tree.use(tree.add_request(["slot", "slot"]))
    first, second = (tree.node(node_id) for node_id, _ in held)
    assert first["interface_ip"] == second["interface_ip"] and {first["slot"], second["slot"]} == {0, 1}
    assert first["host_keys"] == second["host_keys"]
    assert len(host.domains()) == 1
    backing = first["driver_data"]["backing_node"]
    assert libvirt_site.login(first, "hostname") == f"np{backing}"
    tree.give_back(held)
    tree.wait_node_gone(backing, 90)
    assert host.domains() == [] and host.volumes() == []


# LV-52
def test_operators_find_hold_and_delete_nodes(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    libvirt_site.launcher()
    request = tree.add_request(["small"])
    node_id, = tree.wait_request(request, "fulfilled", 400)["nodes"]
    external_id = tree.node(node_id)["external_id"]
    assert external_id.startswith("local/"), "the name of the host"
    nodes = json.loads(tool(libvirt_site, "info", "--json", "here"))["nodes"]
    assert {"id": node_id, "server_id": external_id} in nodes
    assert json.loads(tool(libvirt_site, "alien-list", "--json")) == []
    tree.zk.delete(f"/nodepool/requests/{request}")
    tool(libvirt_site, "hold", node_id, "--reason", "to look at")
    tree.wait_node(node_id, state="hold")
    assert libvirt_site.login(tree.node(node_id), "hostname") == f"np{node_id}"
    tool(libvirt_site, "delete", node_id)
    tree.wait_node_gone(node_id, 60)
    assert host.domains() == [] and host.volumes() == []


# LV-52
def test_machines_that_nobody_knows_are_listed(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    launcher = libvirt_site.launcher()
    request = tree.add_request(["small"])
    name, = wait_for(host.domains, "the machine is started", 60)
    launcher.kill()
    tree.zk.delete(f"/nodepool/requests/{request}")
    for node_id in tree.children("/nodepool/nodes"):
        tree.zk.delete(f"/nodepool/nodes/{node_id}", recursive=True)
    alien, = json.loads(tool(libvirt_site, "alien-list", "--json"))
    assert alien["hostname"] == name
