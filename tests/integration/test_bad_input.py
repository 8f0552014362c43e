"""Whatever stands in a record, it is reported and everything else works (coordination.17.22, D-08)."""
import json
import time

import pytest

from services import wait_for

GOOD = {"node_types": ["small"], "requestor": "tests", "requestor_data": None, "provider": None,
        "state": "requested", "state_time": 1.0, "event_id": None}


def request(**fields):
    return json.dumps({**GOOD, **fields}).encode()


BAD_REQUESTS = {
    "no JSON": b"{not json",
    "no object": b"[1, 2]",
    "empty": b"",
    "invalid UTF-8": b'{"state": "requested", "node_types": ["\xff\xfe"]}',
    "deep": b"[" * 100_000,
    "labels are numbers": request(node_types=[1, 2]),
    "labels are text": request(node_types="small"),
    "unknown state": request(state="bogus"),
    "null state": request(state=None),
    "priority is text": request(relative_priority="high"),
    "huge priority": request(relative_priority=10**40),
    "declined by numbers": request(declined_by=[1]),
    "almost a megabyte": request(requestor_data="x" * 1_000_000),
}

BAD_NODES = {
    "no JSON": b"{not json",
    "invalid UTF-8": b'{"state": "ready", "provider": "\xff"}',
    "unknown state": json.dumps({"state": "bogus", "provider": "fake-cloud"}).encode(),
    "labels are numbers": json.dumps({"state": "ready", "provider": "fake-cloud", "type": [1]}).encode(),
    "time is text": json.dumps({"state": "ready", "provider": "fake-cloud", "state_time": "now"}).encode(),
    "huge slot": json.dumps({"state": "ready", "provider": "fake-cloud", "slot": 10**40}).encode(),
    "negative resources": json.dumps({"state": "ready", "provider": "fake-cloud", "pool": "main",
                                      "type": ["small"], "resources": {"cores": -10**9}}).encode(),
    "provider unknown": json.dumps({"state": "used", "provider": "nobody"}).encode(),
}


def assert_still_serves(tree):
    tree.wait_request(tree.add_request(["small"]), "fulfilled")


# coordination.17.22
@pytest.mark.parametrize("when", ["before the start", "while it runs"])
def test_17_22_bad_records_stop_nobody(site, when):
    tree = site.tree()
    if when == "while it runs":
        launcher = site.launcher()
    requests = {name: tree.add_raw_request(data) for name, data in BAD_REQUESTS.items()}
    nodes = {name: tree.add_raw_node(data) for name, data in BAD_NODES.items()}
    tree.zk.create("/nodepool/requests/no-number-at-all", b"{}")
    tree.zk.create("/nodepool/nodes/nonsense", b"{}")
    tree.zk.create("/nodepool/components/pool/garbage", b"\xff\x00", makepath=True)
    tree.zk.create("/nodepool/components/launcher/garbage", b"[]", makepath=True)
    if when == "before the start":
        launcher = site.launcher()
    for _ in range(3):
        assert_still_serves(tree)
    assert launcher.is_running()
    # Each record that cannot be read is named in the log, once.
    for name in ("no JSON", "invalid UTF-8", "unknown state", "labels are numbers"):
        wait_for(lambda: requests[name] in launcher.output(), f"the log names the request: {name}")
        wait_for(lambda: nodes[name] in launcher.output(), f"the log names the node: {name}")


def test_labels_nobody_knows(site):
    site.launcher()
    tree = site.tree()
    for labels in (["nobody"], ["small", "nobody"], ["x" * 10_000], ["ä\n\0"]):
        assert tree.wait_request(tree.add_request(labels), "failed")["declined_by"]
    assert_still_serves(tree)


def test_a_request_for_more_than_the_cloud_has(site):
    """A thousand nodes can never be given: declined, and nobody behind it waits."""
    site.launcher()
    tree = site.tree()
    request_id = tree.add_request(["small"] * 1000)
    assert_still_serves(tree)
    tree.wait_request(request_id, "failed")


def test_a_request_without_labels(site):
    launcher = site.launcher()
    tree = site.tree()
    request_id = tree.add_request([])
    assert_still_serves(tree)
    assert launcher.is_running()
    assert tree.request(request_id)["state"] in ("fulfilled", "failed", "requested")


def test_nodes_and_requests_that_vanish(site):
    """Records deleted under the launcher's hands, again and again."""
    launcher = site.launcher()
    tree = site.tree()
    for _ in range(20):
        request_id = tree.add_request(["small"])
        tree.zk.delete(f"/nodepool/requests/{request_id}")
        node_id = tree.add_node(state="used")
        try:
            tree.zk.delete(f"/nodepool/nodes/{node_id}", recursive=True)
        except Exception:  # noqa: BLE001  the launcher was quicker
            pass
    assert_still_serves(tree)
    assert launcher.is_running()


def test_the_tool_skips_what_it_cannot_read(site):
    """operations.5.10."""
    tree = site.tree()
    good = tree.add_node(state="ready", state_time=time.time())
    bad = [tree.add_raw_node(data) for name, data in BAD_NODES.items() if name in ("no JSON", "unknown state")]
    tree.add_raw_node(b"")
    done = site.tool("list", "--json")
    assert done.returncode == 0
    assert [node["id"] for node in json.loads(done.stdout)] == [good]
    for node_id in bad:
        assert node_id in done.stderr
    good_request = tree.add_request(["small"])
    bad_request = tree.add_raw_request(b"{not json")
    done = site.tool("request-list", "--json")
    assert [entry["id"] for entry in json.loads(done.stdout)] == [good_request]
    assert bad_request in done.stderr
    assert site.tool("info", "fake-cloud").returncode == 0
