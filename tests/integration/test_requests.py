"""The life of a request, with kazoo as its client (coordination.md 17.6-17.16, 17.25, 17.35, 17.38)."""
import json

import pytest

from nodepool_helpers import fake_provider
from services import wait_for


def assert_fulfilled(tree, request_id, labels):
    record = tree.wait_request(request_id, "fulfilled")
    assert len(record["nodes"]) == len(labels)
    for node_id, label in zip(record["nodes"], labels):
        node = tree.node(node_id)
        assert node["state"] == "ready"
        assert node["allocated_to"] == request_id
        assert label in node["type"]
        assert tree.node_contenders(node_id) == []
    return record


# coordination.17.6
def test_17_06_one_node(site):
    site.launcher()
    tree = site.tree()
    request_id = tree.add_request(["small"])
    assert_fulfilled(tree, request_id, ["small"])
    lock = f"/nodepool/requests-lock/{request_id}"
    wait_for(lambda: tree.zk.exists(lock) is None or tree.children(lock) == [], "the request is unlocked")


# coordination.17.7
def test_17_07_nodes_stand_in_the_order_of_the_labels(site):
    labels = ["small", "medium", "large"]
    provider = fake_provider(labels=labels, simulation={"create-latency": 0.02})
    site.launcher(site.config(providers=[provider], labels=[{"name": name} for name in labels]))
    tree = site.tree()
    for wanted in (["small", "medium", "large"], ["large", "small", "large"], ["medium", "medium", "small"]):
        request_id = tree.add_request(wanted)
        assert_fulfilled(tree, request_id, wanted)


# coordination.17.8
def test_17_08_nodes_are_unlocked_before_the_request_is_fulfilled(site):
    """Whoever sees `fulfilled` can lock the nodes at once."""
    site.launcher()
    tree = site.tree()
    for _ in range(5):
        request_id = tree.add_request(["small"])
        record = tree.wait_request(request_id, "fulfilled")
        assert tree.node_contenders(record["nodes"][0]) == []
        assert tree.zk.Lock(f"/nodepool/nodes/{record['nodes'][0]}/lock").acquire(blocking=False)


# coordination.17.9
def test_17_09_reuse_decides_whether_a_ready_node_is_taken(site):
    site.launcher()
    tree = site.tree()
    request_id = tree.add_request(["small"])
    free = tree.wait_request(request_id, "fulfilled")["nodes"][0]
    tree.zk.delete(f"/nodepool/requests/{request_id}")
    tree.wait_node(free, allocated_to=None)

    fresh = tree.add_request(["small"], reuse=False)
    assert assert_fulfilled(tree, fresh, ["small"])["nodes"] != [free]
    again = tree.add_request(["small"], reuse=True)
    assert assert_fulfilled(tree, again, ["small"])["nodes"] == [free]


# coordination.17.10
def test_17_10_an_unknown_label_fails(site):
    provider = fake_provider()
    provider["pools"].append({**provider["pools"][0], "name": "second"})
    site.launcher(site.config(providers=[provider]))
    tree = site.tree()
    record = tree.wait_request(tree.add_request(["no-such-label"]), "failed")
    assert sorted(record["declined_by"]) == sorted(pool["id"] for pool in tree.components("pool").values())


def add_foreign_pool(tree, **fields):
    record = {"hostname": "elsewhere", "id": "elsewhere-PoolWorker.other-main-0", "kind": "pool", "model_api": 0,
              "name": "main", "paused": False, "priority": 100, "provider_name": "other", "state": "running",
              "supported_labels": [], "version": "11.0.0", **fields}
    return tree.zk.create("/nodepool/components/pool/elsewhere", json.dumps(record, sort_keys=True).encode(),
                          ephemeral=True, sequence=True, makepath=True), record


def assert_served_after(tree, untouched, marker_labels=("small",)):
    """A request made later is served while `untouched` stays as it was."""
    tree.wait_request(tree.add_request(marker_labels), "fulfilled")
    record = tree.request(untouched)
    assert record["state"] == "requested"
    assert record.get("declined_by", []) == []


# coordination.17.11
def test_17_11_a_label_of_another_launcher_is_left_to_it(site):
    site.launcher()
    tree = site.tree()
    add_foreign_pool(tree, supported_labels=["exotic"])
    request_id = tree.add_request(["exotic"])
    assert_served_after(tree, request_id)


# coordination.17.12
def test_17_12_a_preferred_pool_goes_first_unless_it_is_paused(site):
    site.launcher(site.config(providers=[fake_provider(labels=["small", "other"])],
                              labels=[{"name": "small"}, {"name": "other"}]))
    tree = site.tree()
    path, record = add_foreign_pool(tree, supported_labels=["other"], priority=1)
    request_id = tree.add_request(["other"])
    assert_served_after(tree, request_id)
    tree.write(path, {**record, "paused": True})
    tree.wait_request(request_id, "fulfilled")


# coordination.17.13
def test_17_13_a_requested_provider(site):
    site.launcher(site.config(providers=[fake_provider(labels=["small", "other"])],
                              labels=[{"name": "small"}, {"name": "other"}]))
    tree = site.tree()
    add_foreign_pool(tree, supported_labels=["other"], provider_name="other")
    request_id = tree.add_request(["other"], provider="other")
    assert_served_after(tree, request_id)
    assert_fulfilled(tree, tree.add_request(["other"], provider="nobody"), ["other"])


# coordination.17.14, 17.15, 17.16
@pytest.mark.parametrize("name, excludes", [
    ("0123456789abcdef0123456789abcdef__lock__", True),  # coordination.17.14: kazoo
    ("01234567-89ab-cdef-0123-456789abcdef__lock__", True),  # coordination.17.15: the Jenkins plugin
    ("0123456789abcdef0123456789abcdef__rlock__", False),  # coordination.17.16: a read lock is nothing to us
])
def test_17_14_15_16_a_locked_request_is_left_alone(site, name, excludes):
    site.launcher()
    tree = site.tree()
    request_id = tree.add_request(["small"], state="failed")
    lock = f"/nodepool/requests-lock/{request_id}"
    contender = tree.zk.create(f"{lock}/{name}", ephemeral=True, sequence=True, makepath=True)
    tree.change_request(request_id, state="requested")
    if excludes:
        assert_served_after(tree, request_id)
        assert tree.children(lock) == [contender.rsplit("/", 1)[1]]
        tree.zk.delete(contender)
    tree.wait_request(request_id, "fulfilled")


# coordination.17.25
def test_17_25_a_request_deleted_while_pending_frees_its_nodes(site):
    site.launcher(site.config(providers=[fake_provider(simulation={"create-latency": 2.0})]))
    tree = site.tree()
    request_id = tree.add_request(["small"])
    tree.wait_request(request_id, "pending")
    node_id, = wait_for(lambda: list(tree.nodes()), "a node is being built")
    tree.zk.delete(f"/nodepool/requests/{request_id}")
    tree.wait_node(node_id, state="ready", allocated_to=None)
    wait_for(lambda: tree.node_contenders(node_id) == [], "the node is unlocked")
    wait_for(lambda: tree.children(f"/nodepool/requests-lock/{request_id}") == [], "the request is unlocked")


# coordination.17.35
def test_17_35_missing_and_unknown_keys(site):
    """A request with only the keys that must be there is served; all 13 are written, unknown ones kept (D-04)."""
    site.launcher()
    tree = site.tree()
    data = {"span_info": {"trace_id": 214933908099603316458134831733103562640}, "half": "\udc80", "n": [1.5, -0.0]}
    request_id = tree.add_request(["small"], build_id="b-17", jenkins_label={"any": [1, None]}, requestor_data=data,
                                  created_time=1726605880)
    record = assert_fulfilled(tree, request_id, ["small"])
    for key in ("state", "state_time", "declined_by", "node_types", "nodes", "reuse", "requestor", "requestor_data",
                "provider", "relative_priority", "event_id", "created_time", "tenant_name"):
        assert key in record
    assert repr(record["requestor_data"]) == repr(data)
    assert repr(record["created_time"]) == "1726605880"
    assert record["build_id"] == "b-17"
    assert record["jenkins_label"] == {"any": [1, None]}


# coordination.17.38
def test_17_38_min_ready(site):
    site.launcher(site.config(providers=[fake_provider(labels=["small", "large"])],
                              labels=[{"name": "small", "min-ready": 1}, {"name": "large", "min-ready": 1}]))
    tree = site.tree()

    def all_free():
        free = [node["type"][0] for node in tree.nodes().values()
                if node["state"] == "ready" and node["allocated_to"] is None]
        return sorted(free) == ["large", "small"]

    wait_for(all_free, "one node of each label is ready and free")
    wait_for(lambda: tree.children("/nodepool/requests") == [], "the min-ready requests are removed")
    for node in tree.nodes().values():
        assert node["requestor"] in (None, "NodePool:min-ready")
    # Something else is done meanwhile, and still there are no more than asked for.
    held = tree.use(tree.add_request(["small"], reuse=False))
    assert len(tree.nodes()) == 3
    tree.give_back(held)


def test_a_whole_round(site):
    """coordination.md 12.1, from the request to the deletion."""
    site.launcher()
    tree = site.tree()
    held = tree.use(tree.add_request(["small", "small"]))
    assert len(held) == 2
    tree.give_back(held)
    for node_id, _ in held:
        tree.wait_node_gone(node_id)


def test_requests_are_served_by_priority(site):
    """coordination.md 4.3: the path's priority, then relative_priority. One node at a time fits."""
    site.launcher(site.config(providers=[fake_provider(**{"max-servers": 1})]))
    tree = site.tree()
    held = tree.use(tree.add_request(["small"]))
    # The first to wait has been accepted and keeps its place.
    waiting = [tree.add_request(["small"])]
    tree.wait_request(waiting[0], "pending")
    low = tree.add_request(["small"], priority="300")
    later = tree.add_request(["small"], relative_priority=5)
    soon = tree.add_request(["small"], relative_priority=1)
    high = tree.add_request(["small"], priority="100", relative_priority=9)
    waiting += [high, soon, later, low]
    for expected in waiting:
        tree.give_back(held)
        tree.wait_request(expected, "fulfilled")
        others = [request for request in waiting if tree.request(request) and request != expected]
        assert all(tree.request(request)["state"] != "fulfilled" for request in others)
        held = tree.use(expected)
