"""How the launcher treats nodes that others left (coordination.md 17.17-17.24, 17.36, 17.37)."""
import pytest

from services import wait_for


# coordination.17.17
def test_17_17_a_locked_node_is_not_deleted(site):
    site.launcher()
    tree = site.tree()
    node_id = tree.add_node(state="ready", allocated_to="200-9999999999")
    lock = tree.lock_node(node_id)
    tree.change_node(node_id, state="used")
    tree.wait_request(tree.add_request(["small"]), "fulfilled")
    assert tree.node(node_id)["state"] == "used"
    lock.release()
    tree.wait_node_gone(node_id)


# coordination.17.18
@pytest.mark.parametrize("state", ["used", "in-use", "failed", "aborted", "building"])
def test_17_18_unlocked_leftovers_are_deleted(site, state):
    site.launcher()
    tree = site.tree()
    tree.wait_node_gone(tree.add_node(state=state), 20)


# coordination.17.19
def test_17_19_a_node_of_a_missing_request_is_freed(site):
    site.launcher()
    tree = site.tree()
    node_id = tree.add_node(state="ready", allocated_to="200-9999999999")
    tree.wait_node(node_id, 20, allocated_to=None, state="ready")


# coordination.17.20
def test_17_20_a_pending_request_without_a_lock_is_taken_up_again(site):
    site.launcher()
    tree = site.tree()
    request_id = tree.add_request(["small"], state="pending")
    tree.add_node(state="init", allocated_to=request_id)
    tree.wait_request(request_id, "fulfilled", 30)


# coordination.17.21
def test_17_21_an_empty_node_is_removed(site):
    site.launcher()
    tree = site.tree()
    node_id = tree.add_raw_node(b"")
    tree.zk.create(f"/nodepool/nodes/{node_id}/lock")
    tree.wait_node_gone(node_id, 60)


# coordination.17.23, 17.24
@pytest.mark.parametrize("limit, is_kept", [("1", False), ("x", True), (None, True), (0, True), (1, False)])
def test_17_23_24_hold_expiration(site, limit, is_kept):
    site.launcher()
    tree = site.tree()
    node_id = tree.add_node(state="hold", state_time=1_600_000_000, hold_expiration=limit)
    reference = tree.add_node(state="hold", state_time=1_600_000_000, hold_expiration=1)
    tree.wait_node_gone(reference, 30)
    if is_kept:
        assert tree.node(node_id)["state"] == "hold"
    else:
        tree.wait_node_gone(node_id, 30)


# coordination.17.36, 17.37
def test_17_36_37_old_records_are_completed_at_the_next_write(site):
    """`ssh_port` beside `connection_port`, `type` as a list, unknown keys kept (D-04)."""
    site.launcher()
    tree = site.tree()
    node_id = tree.add_node(state="ready", type="small", connection_port=8022, jenkins_key=[1])
    request_id = tree.add_request(["small"])
    assert tree.wait_request(request_id, "fulfilled")["nodes"] == [node_id]
    record = tree.node(node_id)
    assert record["type"] == ["small"]
    assert record["connection_port"] == record["ssh_port"] == 8022
    assert record["jenkins_key"] == [1]


def test_a_static_node_returns_after_use(site, sshd):
    from nodepool_helpers import static_provider

    site.launcher(site.config(labels=[{"name": "metal"}], providers=[static_provider(sshd, "metal")]))
    tree = site.tree()
    node_id, = wait_for(lambda: [i for i, node in tree.nodes().items() if node["state"] == "ready"],
                        "the static node is registered")
    node = tree.node(node_id)
    assert node["interface_ip"] == node["hostname"] == "127.0.0.1"
    assert node["host_keys"] == [sshd.host_key]
    assert node["connection_port"] == sshd.port
    held = tree.use(tree.add_request(["metal"]))
    assert [held_id for held_id, _ in held] == [node_id]
    tree.give_back(held)
    tree.wait_node_gone(node_id)
    wait_for(lambda: [i for i, node in tree.nodes().items() if node["state"] == "ready"], "it is registered again")
