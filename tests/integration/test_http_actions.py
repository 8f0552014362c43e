"""Actions over HTTP and paused providers with real processes (docs/spec/http-actions.md)."""
import json

import pytest

from lease_client import LeaseSite
from nodepool_helpers import fake_provider
from services import wait_for

PAUSES = "/nodepool/paused-providers"


@pytest.fixture
def leases(site):
    """Two launchers of two providers, with a token for operators."""
    clouds = {name: {"directory": str(site.folder / name)} for name in ("cloud-a", "cloud-b")}  # the same for both launchers
    leases = LeaseSite(site, labels=[{"name": "small"}, {"name": "large"}],
                       providers=[fake_provider("cloud-a", labels=("small", "large"), simulation=clouds["cloud-a"]),
                                  fake_provider("cloud-b", labels=("small",), simulation=clouds["cloud-b"], priority=200)])
    leases.token("ops", "--scope", "operate")
    leases.token("ci", "--scope", "request")
    leases.start()
    leases.start()
    return leases


def of_each(leases, path: str) -> list[dict]:
    """The answer of each launcher."""
    answers = []
    for port in leases.launchers:
        client = leases.client("ops")
        client.ports = [port]
        answers.append(client.ask("GET", path).json)
    return answers


def is_paused_in_all(leases, provider: str) -> bool:
    return all(any(pause["provider"] == provider for pause in answer["pauses"]) for answer in of_each(leases, "/api/v1/pauses"))


# ACT-1, ACT-3, ACT-7
def test_a_paused_provider_takes_nothing_in_any_launcher(site, leases):
    ops, tree = leases.client("ops"), site.observer()
    paused = ops.ask("POST", "/api/v1/providers/cloud-a/pause", {"reason": "upgrade"})
    assert paused.status == 200 and paused.json["pause"]["paused_by"] == "ops", paused.text
    record = tree.record(f"{PAUSES}/cloud-a")
    assert set(record) == {"reason", "drain", "paused_by", "paused_time"} and record["drain"] is False
    wait_for(lambda: is_paused_in_all(leases, "cloud-a"), "each launcher knows it")
    served = tree.add_request(["small"])
    node = tree.wait_request(served, "fulfilled")["nodes"][0]
    assert tree.node(node)["provider"] == "cloud-b"
    failed = tree.wait_request(tree.add_request(["large"]), "failed")
    assert set(failed["decline_reasons"]) >= {"cloud-a main: the provider is paused by ops: upgrade"}
    for port in leases.launchers:
        client = leases.client("ops")
        client.ports = [port]
        assert 'nodepool_provider_paused{provider="cloud-a"} 1' in client.ask("GET", "/metrics").text
    row, = [row for row in json.loads(site.tool("provider-list", "--json").stdout) if row["name"] == "cloud-a"][:1]
    assert row["state"] == "paused" and row["why"] == "paused by ops: upgrade"
    assert "Provider cloud-a is paused by ops: upgrade" in site.tool("status").stdout
    assert all("Provider cloud-a is paused by ops: upgrade" in process.output() for process in leases.launchers.values())
    for process in leases.launchers.values():
        process.stop()
    leases.launchers.clear()
    leases.start()
    assert is_paused_in_all(leases, "cloud-a"), "it survives a restart"
    assert leases.client("ops").ask("POST", "/api/v1/providers/cloud-a/unpause").status == 200
    wait_for(lambda: not is_paused_in_all(leases, "cloud-a"), "it is used again")
    tree.wait_request(tree.add_request(["large"]), "fulfilled")


# ACT-4, ACT-6, by the command line
def test_a_drain_leaves_what_is_used(site, leases):
    tree = site.observer()
    held = tree.use(tree.add_request(["large"]))
    ready = tree.wait_request(tree.add_request(["small"]), "fulfilled")["nodes"][0]
    config = next(site.folder.glob("launcher-*.yaml"))
    unknown = site.tool("provider-pause", "clod", config=config)
    assert unknown.returncode == 1 and "clod is not one of the configured providers" in unknown.stderr
    site.tool("provider-pause", "cloud-a", "--drain", "--reason", "gone by noon", config=config, check=True)
    assert tree.record(f"{PAUSES}/cloud-a")["drain"] is True
    for request in tree.children("/nodepool/requests"):
        tree.zk.delete(f"/nodepool/requests/{request}")
    tree.wait_node_gone(ready)
    (in_use,) = [node for node, record in tree.nodes().items() if record["state"] == "in-use"]
    assert tree.node(in_use)["provider"] == "cloud-a"
    tree.give_back(held)
    tree.wait_node_gone(in_use)
    site.tool("provider-unpause", "cloud-a", config=config, check=True)
    again = site.tool("provider-unpause", "cloud-a", config=config, check=True)
    assert again.stdout == "Provider cloud-a is not paused\n"


# ACT-9, ACT-11
def test_nodes_by_http(site, leases):
    ops, tree = leases.client("ops"), site.observer()
    nodes = [tree.wait_request(tree.add_request(["small"]), "fulfilled")["nodes"][0] for _ in range(2)]
    for request in tree.children("/nodepool/requests"):
        tree.zk.delete(f"/nodepool/requests/{request}")
    wait_for(lambda: all(tree.node(node)["allocated_to"] is None for node in nodes), "the nodes are free")
    held = ops.ask("POST", f"/api/v1/nodes/{nodes[0]}/hold", {"reason": "bug 7", "seconds": 3600})
    assert held.status == 200 and held.json["comment"] == "bug 7" and held.json["hold_expiration"] == 3600
    assert tree.node(nodes[0])["state"] == "hold"
    assert leases.client("ci").ask("DELETE", f"/api/v1/nodes/{nodes[1]}").status == 403
    lock = tree.lock_node(nodes[1])
    refused = ops.ask("DELETE", f"/api/v1/nodes/{nodes[1]}")
    assert refused.status == 409 and "the node is in use" in refused.text
    lock.release()
    assert ops.ask("DELETE", f"/api/v1/nodes/{nodes[1]}").status in (202, 204)
    tree.wait_node_gone(nodes[1])
    assert ops.ask("POST", f"/api/v1/nodes/{nodes[0]}/unhold").status in (202, 204)
    tree.wait_node_gone(nodes[0])
    log = "".join(process.output() for process in leases.launchers.values())
    assert f"ops from 127.0.0.1: hold node {nodes[0]}: done" in log
    assert f"ops from 127.0.0.1: delete node {nodes[1]}: refused: " in log
    assert f"ci from 127.0.0.1: delete node {nodes[1]}: refused, the scope operate is missing" in log
    assert leases.texts["ops"].split(".")[1] not in log


# ACT-15
def test_a_stranger_does_not_delay_the_owner(leases):
    stranger, owner = leases.client("ops"), leases.client("ops")
    stranger.token = "ops.guess"
    stranger.source = "127.0.0.2"
    statuses = [stranger.ask("GET", "/api/v1/leases").status for _ in range(20)]
    assert statuses[0] == 401 and set(statuses[1:]) <= {401, 429}
    assert statuses.count(429) > 10
    assert owner.ask("GET", "/api/v1/leases").status == 200
    stranger.token = owner.token
    assert stranger.ask("GET", "/api/v1/leases").status == 200, "a verified token is known from anywhere"
