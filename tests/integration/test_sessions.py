"""Servers and launchers that stop, hang and die (coordination.md 2.5, 13, 17.39)."""
import collections
import shutil

import pytest

from nodepool_helpers import Installation, fake_provider
from services import wait_for


def wait_all_fulfilled(tree, request_ids, seconds=90):
    def poll():
        records = [tree.request(request_id) for request_id in request_ids]
        assert all(records), "no request vanishes"
        return records if all(record["state"] == "fulfilled" for record in records) else None

    return wait_for(poll, f"{len(request_ids)} requests are fulfilled", seconds, pause=0.3)


def assert_each_node_has_one_owner(tree, records, request_ids):
    owners = collections.Counter(node for record in records for node in record["nodes"])
    assert set(owners.values()) == {1}
    for request_id, record in zip(request_ids, records):
        assert len(record["nodes"]) == len(record["node_types"])
        for node_id in record["nodes"]:
            node = tree.node(node_id)
            assert node["allocated_to"] == request_id
            assert node["state"] == "ready"


def roomy(**simulation):
    return fake_provider(simulation={"limits": {"instances": 1000, "cores": -1, "ram": -1}, **simulation})


def test_zookeeper_killed_and_restarted_amid_requests(private_site):
    private_site.launcher(private_site.config(providers=[roomy(**{"create-latency": 1.0})]))
    tree = private_site.tree()
    requests = [tree.add_request(["small"], ephemeral=False) for _ in range(20)]
    wait_for(lambda: any(tree.request(request)["state"] == "pending" for request in requests), "work has begun")
    private_site.zookeeper.restart()
    wait_for(lambda: tree.zk.connected, "our client is back")
    records = wait_all_fulfilled(tree, requests)
    assert_each_node_has_one_owner(tree, records, requests)


@pytest.mark.long
def test_zookeeper_hangs_for_a_while(private_site):
    """SIGSTOP of the server: the launcher waits and goes on."""
    launcher = private_site.launcher()
    tree = private_site.tree(timeout=60)
    private_site.zookeeper.process.pause()
    wait_for(lambda: not tree.zk.connected, "the connection is noticed as dead", 120)
    private_site.zookeeper.process.resume()
    wait_for(lambda: tree.zk.connected, "our client is back", 60)
    request = tree.add_request(["small"], ephemeral=False)
    wait_all_fulfilled(tree, [request])
    assert launcher.is_running()


def fill_history(site, transactions: int):
    """So many writes that a server without them is behind for longer than the test takes."""
    tree = site.tree()
    tree.zk.create("/history")
    for write in [tree.zk.set_async("/history", str(number).encode()) for number in range(transactions)]:
        write.get(60)


# coordination.md 2.5
def test_zookeeper_that_has_lost_its_data_gets_a_new_session(private_site):
    """It refuses the session of a launcher that has read more, and would do so until it has had as many transactions."""
    server = private_site.zookeeper
    launcher = private_site.launcher(private_site.config(providers=[roomy()], **{"zookeeper-timeout": 2.0}))
    fill_history(private_site, 2000)
    seen = private_site.tree()
    before = seen.add_request(["small"], ephemeral=False)
    wait_all_fulfilled(seen, [before])
    # kazoo would ask for its sessions for ever, and each new session of a client is a transaction.
    for tree in private_site.trees:
        tree.close()
    server.stop()
    shutil.rmtree(server.folder / "data", ignore_errors=True)
    for file in server.folder.glob("state.sqlite*"):
        file.unlink()
    (server.folder / "data").mkdir(exist_ok=True)
    server.start()
    wait_for(lambda: "its locks and ephemeral znodes are gone" in launcher.output(), "the session is lost", 60)
    wait_for(lambda: launcher.output().count("Connected to ZooKeeper at") == 2, "a new one has begun", 30)
    tree = private_site.tree()
    assert tree.request(before) is None
    request = tree.add_request(["small"], ephemeral=False)
    wait_all_fulfilled(tree, [request])
    assert launcher.is_running()


def test_a_launcher_that_sleeps_too_long_gives_its_work_up(private_site):
    """The session expires while machines are being built: what it had is cleaned, the requests are served."""
    launcher = private_site.launcher(
        private_site.config(providers=[roomy(**{"create-latency": 1.0})], **{"zookeeper-timeout": 1.5}))
    tree = private_site.tree()
    requests = [tree.add_request(["small"], ephemeral=False) for _ in range(5)]
    wait_for(lambda: all(tree.request(request)["state"] == "pending" for request in requests), "work has begun")
    launcher.pause()
    wait_for(lambda: not tree.components("launcher"), "the session expires")
    launcher.resume()
    records = wait_all_fulfilled(tree, requests, 120)
    assert_each_node_has_one_owner(tree, records, requests)
    owned = {node for record in records for node in record["nodes"]}
    wait_for(lambda: all(node["state"] == "ready" for node in tree.nodes().values()), "leftovers are cleaned", 60)
    assert owned <= set(tree.nodes())


# coordination.17.39
def test_17_39_another_launcher_takes_over_from_a_killed_one(private_site):
    config = private_site.config(providers=[roomy(**{"create-latency": 3600.0})], **{"zookeeper-timeout": 1.5})
    first = private_site.launcher(config)
    tree = private_site.tree()
    request = tree.add_request(["small"], ephemeral=False)
    stuck, = wait_for(lambda: [i for i, node in tree.nodes().items() if node["state"] == "building"], "building")
    first.kill()
    private_site.launcher(private_site.config("second", providers=[roomy()], **{"zookeeper-timeout": 1.5}),
                          wait=False)
    record = tree.wait_request(request, "fulfilled", 120)
    assert record["nodes"] != [stuck]
    tree.wait_node_gone(stuck, 60)


def test_two_launchers_share_the_work(site):
    """Nothing is served twice; each node has one owner (coordination.md 9.1)."""
    site.launcher(site.config("first", providers=[roomy()]))
    site.launcher(site.config("second", providers=[{**roomy(), "name": "fake-other"}]), wait=False)
    tree = site.tree()
    wait_for(lambda: len(tree.components("pool")) == 2, "both are there")
    requests = [tree.add_request(["small", "small"], ephemeral=False) for _ in range(30)]
    records = wait_all_fulfilled(tree, requests)
    assert_each_node_has_one_owner(tree, records, requests)


def test_the_leader_of_an_ensemble_dies_during_a_hundred_requests(tmp_path, ensemble):
    """Nothing is lost and nothing owned twice."""
    hosts = ",".join(server.hosts for server in ensemble)
    site = Installation(tmp_path, hosts)
    try:
        site.launcher(site.config(providers=[roomy()], **{"zookeeper-timeout": 10.0}))
        tree = site.tree(timeout=20)
        requests = []
        for number in range(100):
            requests.append(tree.zk.retry(tree.add_request, ["small"], ephemeral=False))
            if number == 40:
                leader, = [server for server in ensemble if server.role() == "leader"]
                leader.process.kill()
        # A create whose answer was lost may have made a second request; it counts too.
        requests = sorted(set(requests) | set(tree.zk.retry(tree.children, "/nodepool/requests")))
        assert len(requests) >= 100
        records = tree.zk.retry(wait_all_fulfilled, tree, requests, 120)
        assert_each_node_has_one_owner(tree, records, requests)
    finally:
        site.stop()
