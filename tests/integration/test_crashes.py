"""SIGKILL at the moments that matter most; another launcher cleans up (ARCHITECTURE.md, "When something dies")."""
from nodepool_helpers import fake_provider
from services import wait_for

SHORT = {"zookeeper-timeout": 1.5}


def provider(**simulation):
    return fake_provider(simulation={"limits": {"instances": 1000, "cores": -1, "ram": -1}, **simulation})


def successor(site):
    site.launcher(site.config("second", providers=[provider()], **SHORT), wait=False)


# BB-21, coordination.17.39
def test_killed_while_machines_are_built(private_site):
    first = private_site.launcher(private_site.config(providers=[provider(**{"create-latency": 3600.0})], **SHORT))
    tree = private_site.tree()
    request = tree.add_request(["small", "small"], ephemeral=False, declined_by=["somebody"])
    wait_for(lambda: len([1 for node in tree.nodes().values() if node["external_id"]]) == 2, "both are being built")
    stuck = set(tree.nodes())
    first.kill()
    successor(private_site)
    record = tree.wait_request(request, "fulfilled", 30)
    assert record["declined_by"] == ["somebody"]
    assert not stuck & set(record["nodes"])
    for node_id in stuck:
        tree.wait_node_gone(node_id)


# BB-21
def test_killed_while_a_machine_is_deleted(private_site):
    first = private_site.launcher(private_site.config(providers=[provider(**{"delete-latency": 3600.0})], **SHORT))
    tree = private_site.tree()
    held = tree.use(tree.add_request(["small"]))
    tree.give_back(held)
    tree.wait_node(held[0][0], state="deleting")
    assert tree.node_contenders(held[0][0]) != []
    first.kill()
    successor(private_site)
    tree.wait_node_gone(held[0][0])


# BB-21, D-06
def test_killed_while_its_nodes_are_used(private_site):
    """The consumer notices nothing; what it returns is deleted, and the lock directory of its request goes."""
    first = private_site.launcher(private_site.config(providers=[provider()], **SHORT))
    tree = private_site.tree()
    request = tree.add_request(["small"])
    held = tree.use(request)
    first.kill()
    successor(private_site)
    wait_for(lambda: tree.components("pool"), "the second is there")
    assert tree.node(held[0][0])["state"] == "in-use"
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
    wait_for(lambda: request not in tree.children("/nodepool/requests-lock"), "the lock directory is gone")


# BB-22
def test_a_restarted_launcher_is_somebody_else(private_site):
    """Its pools have new ids, so what the former one declined is looked at again."""
    config = private_site.config(providers=[provider()], **SHORT)
    first = private_site.launcher(config)
    tree = private_site.tree()
    former, = [pool["id"] for pool in tree.components("pool").values()]
    first.kill()
    request = tree.add_request(["small"], ephemeral=False, declined_by=[former])
    wait_for(lambda: tree.components("pool") == {}, "its session is over")
    private_site.launcher(config)
    assert tree.wait_request(request, "fulfilled")["declined_by"] == [former]
