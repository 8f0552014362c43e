"""Nodes of jobs that fail are held (operations.md 13.5 to 13.7), with a real publisher."""
import json
import urllib.error
import urllib.request

import pytest

from publisher import Publisher
from services import free_port, wait_for
from web_client import web_config

HOLDS = "/nodepool/jobs/holds"


@pytest.fixture
def publisher():
    publisher = Publisher()
    yield publisher
    publisher.close()


def until(condition, action, what):
    """Repeats `action`, since what is sent before a launcher has subscribed is lost."""
    return wait_for(lambda: condition() or action(), what)


def a_job(site, tree):
    return tree.use(tree.add_request(["small"]))


# D-67, operations.13.6, 13.7
def test_a_failed_job_holds_its_node(site, publisher):
    site.launcher(site.config(zmq_publishers=[publisher.endpoint]))
    tree = site.tree()
    site.tool("job-create", "unit", "--hold-on-failure", "5", check=True)
    held = a_job(site, tree)
    node_id = held[0][0]
    until(lambda: tree.children(HOLDS) == [node_id],
          lambda: publisher.send("onFinalized", "unit", f"small-fake-cloud-{int(node_id)}", status="FAILURE"),
          "the launcher has heard of it")
    assert tree.node(node_id)["state"] == "in-use", "its client has the lock"
    # Another one, whose job is good, and one whose end is not told.
    good = a_job(site, tree)
    for topic, status in [("onStarted", None), ("onCompleted", "FAILURE"), ("onFinalized", "SUCCESS")]:
        publisher.send(topic, "unit", good[0][0], status=status)
    tree.give_back(good)
    tree.give_back(held)
    record = tree.wait_node(node_id, state="hold")
    assert record["hold_job"] == "unit"
    assert record["comment"] == "Automatically held after failing unit"
    tree.wait_node_gone(good[0][0])
    wait_for(lambda: tree.children(HOLDS) == [], "no hold note is left")
    assert tree.node(node_id)["state"] == "hold"
    shown = json.loads(site.tool("list", "--detail", "--json").stdout)
    assert [(node["hold_job"], node["state"]) for node in shown] == [("unit", "hold")]


# operations.16.24
def test_a_rule_holds_so_many_nodes_whose_job_failed(site, publisher):
    site.launcher(site.config(zmq_publishers=[publisher.endpoint]))
    tree = site.tree()
    site.tool("job-create", "j", "--hold-on-failure", "1", check=True)
    good, failed, failed_too = (a_job(site, tree) for _ in range(3))
    until(lambda: tree.children(HOLDS) == [failed[0][0]],
          lambda: publisher.send("onFinalized", "j", failed[0][0], status="FAILURE"), "it is to be held")
    publisher.send("onFinalized", "j", failed_too[0][0], status="FAILURE")
    publisher.send("onFinalized", "j", good[0][0], status="SUCCESS")
    for held in (failed, failed_too, good):
        tree.give_back(held)
    record = tree.wait_node(failed[0][0], state="hold")
    assert record["comment"] == "Automatically held after failing j"
    for held in (failed_too, good):
        tree.wait_node_gone(held[0][0])
    assert [node["state"] for node in tree.nodes().values()] == ["hold"]


# D-67
def test_two_launchers_hold_once(site, publisher):
    config = site.config(zmq_publishers=[publisher.endpoint])
    site.tool("job-create", "^unit", "--hold-on-failure", "1", check=True)
    site.launcher(config, name="one")
    site.launcher(config, name="two")
    tree = site.tree()
    jobs = [a_job(site, tree) for _ in range(3)]
    ids = [held[0][0] for held in jobs]

    def fail():
        for node_id in ids:
            publisher.send("onFinalized", "unit-a", node_id, status="FAILURE")

    until(lambda: tree.children(HOLDS), fail, "one is to be held")
    fail()
    for held in jobs:
        tree.give_back(held)
    wait_for(lambda: [node["state"] for node in tree.nodes().values()] == ["hold"], "one of three is left")


def test_malformed_messages_are_reported_and_ignored(site, publisher):
    launcher = site.launcher(site.config(zmq_publishers=[publisher.endpoint, "nonsense"]))
    tree = site.tree()
    site.tool("job-create", "unit", "--hold-on-failure", "1", check=True)
    until(lambda: "Exception handling job:" in launcher.output(), lambda: publisher.raw(b"onFinalized"),
          "the launcher listens")
    for message in [b"", b"\xff\xfe", b"onFinalized {", b"onUnheard {}", b"x" * 10_000, b"onFinalized []",
                    b'onFinalized {"name": "unit"}', b"onFinalized " + b"[" * 20_000] * 50:
        publisher.raw(message)
    publisher.raw(b"onFinalized " + b" " * 1_000_000)  # hung up on, and heard again
    held = a_job(site, tree)
    until(lambda: tree.children(HOLDS),
          lambda: publisher.send("onFinalized", "unit", held[0][0], status="FAILURE"), "it is heard all the same")
    assert launcher.output().count("Exception handling job:") <= 3, "one a minute"
    assert "listen to job events of nonsense failed: it is not tcp://host:port or ipc://path" in launcher.output()
    tree.give_back(held)
    tree.wait_node(held[0][0], state="hold")


# D-52: compared at each reload.
def test_publishers_change_while_the_launcher_runs(site, publisher):
    launcher = site.launcher()
    tree = site.tree()
    site.tool("job-create", "unit", "--hold-on-failure", "2", check=True)
    held = a_job(site, tree)
    site.config(zmq_publishers=[publisher.endpoint])
    until(lambda: tree.children(HOLDS),
          lambda: publisher.send("onFinalized", "unit", held[0][0]), "the publisher is heard")
    site.config()
    wait_for(lambda: tree.children("/nodepool/locks/job-events") == [], "nobody is elected any more")
    tree.give_back(held)
    tree.wait_node(held[0][0], state="hold")
    assert launcher.is_running()


def post(port, body, **headers):
    headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/job-events", body.encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


# D-67
def test_over_http(site):
    port = free_port()
    site.launcher(web_config(site, port))
    tree = site.tree()
    site.tool("job-create", "unit", "--hold-on-failure", "1", check=True)
    held = a_job(site, tree)
    event = json.dumps({"name": "unit", "build": {"node_name": held[0][0], "status": "ABORTED"}})
    assert post(port, event, **{"Content-Type": "text/plain"})[0] == 415
    assert post(port, "{")[0] == 400
    assert post(port, event + " " * 100_000)[0] == 413
    answer = wait_for(lambda: next((answer for answer in [post(port, event)[1]] if answer["is_kept"]), None),
                      "the launcher knows the rule")
    assert answer["node"] == held[0][0]
    tree.give_back(held)
    tree.wait_node(held[0][0], state="hold")


# operations.13.5
def test_the_commands(site):
    tree = site.tree()
    tree.zk.ensure_path("/nodepool/jobs")
    assert "| 0  | unit | 2               |" in site.tool("job-create", "unit", "--hold-on-failure", "2").stdout
    bad = site.tool("job-create", "^(")
    assert bad.returncode == 2 and "not a regular expression" in bad.stderr
    assert site.tool("job-create", "unit", "--hold-on-failure", "many").returncode == 2
    assert tree.record("/nodepool/jobs/0000000000") == {"name": "unit", "hold_on_failure": 2}
    done = site.tool("job-delete", "5")
    assert (done.returncode, done.stderr) == (1, "nodepool: Job 5 not found\n")
    assert site.tool("job-delete", "0").stdout == ""
    assert json.loads(site.tool("job-list", "--json").stdout) == []
