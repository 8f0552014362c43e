"""Slots of backing nodes with real launchers: several beside each other, killed ones, and static backing nodes."""
import json

from nodepool_helpers import fake_provider, static_provider
from services import wait_for

OWNER = "NodePool:metastatic:slots"


def slots_provider(backing="backing", **label):
    return {"name": "slots", "driver": "metastatic", "pools": [{"name": "main", "labels": [
        {"name": "user", "backing-label": backing, "max-parallel-jobs": 4, "grace-time": 1, **label}]}]}


def configure(site, *providers):
    return site.config(labels=[{"name": "backing"}, {"name": "user"}], providers=list(providers))


def cloud(**simulation):
    return fake_provider(labels=["backing"], simulation={"limits": {"cores": -1, "instances": -1}, **simulation})


def backing_nodes(tree):
    return {node_id: node for node_id, node in tree.nodes().items() if node["provider"] != "slots"}


# M-basic, D-84
def test_two_launchers_and_a_killed_one(site):
    config = configure(site, cloud(), slots_provider())
    first = site.launcher(config, name="first", wait=False)
    site.launcher(config, name="second", wait=False)
    tree = site.tree()
    wait_for(lambda: len(tree.components("pool")) == 4, "both are there")
    for round_number in range(3):
        requests = [tree.add_request(["user"]) for _ in range(12)]
        if round_number == 1:
            first.kill()
        nodes = [tree.node(tree.wait_request(request, "fulfilled", 60)["nodes"][0]) for request in requests]
        places = {(node["driver_data"]["backing_node"], node["slot"]) for node in nodes}
        assert len(places) == 12, "no slot is given out twice"
        for backing in {backing for backing, _ in places}:
            record = tree.node(backing)
            assert record["state"] == "in-use" and json.loads(record["user_data"])["owner"] == OWNER
            name, = tree.node_contenders(backing)
            assert tree.zk.get(f"/nodepool/nodes/{backing}/lock/{name}")[0].decode() == OWNER
        for request in requests:
            tree.give_back(tree.use(request))
    wait_for(lambda: not tree.nodes(), "everything is gone", 60)
    assert not tree.children("/nodepool/requests")


# M-restart
def test_slots_survive_a_restart(site):
    config = configure(site, cloud(directory=str(site.folder / "cloud")), slots_provider())
    launcher = site.launcher(config)
    tree = site.tree()
    held = tree.use(tree.add_request(["user"]))
    launcher.kill()
    site.launcher(config, name="again", wait=False)
    second = tree.use(tree.add_request(["user"]))
    first_node, second_node = tree.node(held[0][0]), tree.node(second[0][0])
    assert first_node["driver_data"]["backing_node"] == second_node["driver_data"]["backing_node"]
    assert [first_node["slot"], second_node["slot"]] == [0, 1]
    tree.give_back(held + second)
    wait_for(lambda: not tree.nodes(), "everything is gone", 60)


def test_a_static_host_as_backing_node(site, sshd):
    site.launcher(configure(site, static_provider(sshd, "backing"), slots_provider(**{"host-key-checking": True})))
    tree = site.tree()
    wait_for(lambda: [node for node in backing_nodes(tree).values() if node["state"] == "ready"], "the host is there")
    held = tree.use(tree.add_request(["user"]))
    node = tree.node(held[0][0])
    assert node["host_keys"] == [sshd.host_key] and node["connection_port"] == sshd.port
    assert node["interface_ip"] == "127.0.0.1"
    tree.give_back(held)
    wait_for(lambda: [node["state"] for node in tree.nodes().values()] == ["ready"], "the host is free again", 60)


# M-validate
def test_contradicting_labels_are_refused_at_load(site):
    provider = slots_provider()
    labels = provider["pools"][0]["labels"]
    labels.append({**labels[0], "name": "backing", "max-parallel-jobs": 5})
    launcher = site.launcher(configure(site, cloud(), provider), wait=False)
    assert launcher.wait() == 1
    assert "Multiple label definitions for the same backing label must be identical" in launcher.output()
