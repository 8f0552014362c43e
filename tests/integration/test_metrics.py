"""Statistics of real launchers, received by a real UDP socket and read by Prometheus' own parser (launcher.md 27)."""
import json
import os
import re
import socket
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nodepool_helpers import fake_provider, static_provider
from services import free_port, wait_for
from web_client import first_answer, get, web_config, web_config_without_zookeeper

HOSTNAME = os.uname().nodename.split(".")[0]
ZONE = {"availability-zones": ["az.1"], "simulation": {"availability-zones": ["az.1"]}}
STATES = "building testing ready in-use used hold deleting failed init aborted deleted".split()


# launcher.27.1, 27.2, 27.3; operations.16.21, 16.22
def test_a_request_is_counted_under_every_key(site, statsd):
    """The lines of a launch, byte by byte, and the gauges after it."""
    site.launcher(site.config(providers=[fake_provider(**ZONE)]))
    tree = site.tree()
    tree.wait_request(tree.add_request(["small"], requestor="zuul.example:org"), "fulfilled")
    for name in ("provider.fake-cloud.ready", "ready", "provider.fake-cloud.az.1.ready",
                 "requestor.zuul_example_org.ready"):
        key = re.escape(f"nodepool.launch.{name}")
        timing, counter = wait_for(lambda: statsd.lines(key + ":") or None, f"{name} is sent")
        assert re.fullmatch(key + r":\d+\.000000\|ms", timing[1])
        assert re.fullmatch(key + r":1\|c", counter[1])
    wait_for(lambda: statsd.last("nodepool.nodes.ready") == "1|g", "the node is counted", 5)
    assert statsd.last("nodepool.provider.fake-cloud.nodes.ready") == "1|g"
    assert statsd.last("nodepool.label.small.nodes.ready") == "1|g"
    assert statsd.last("nodepool.provider.fake-cloud.pool.main.addressable_requests") == "1|g"
    for prefix in ("nodepool.nodes", "nodepool.provider.fake-cloud.nodes", "nodepool.label.small.nodes"):
        for state in STATES:
            assert re.fullmatch(r"\d+\|g", statsd.last(f"{prefix}.{state}"))
    assert all(len(data) < 512 for _, _, data in statsd.packets)

    # A reused node is no launch.
    for request_id in tree.children("/nodepool/requests"):
        tree.zk.delete(f"/nodepool/requests/{request_id}")
    node_id, = tree.nodes()
    tree.wait_node(node_id, allocated_to=None)
    assert tree.wait_request(tree.add_request(["small"]), "fulfilled")["nodes"] == [node_id]
    wait_for(lambda: statsd.last("nodepool.provider.fake-cloud.max_servers"), "something else is sent")
    assert len(statsd.lines(r"nodepool\.launch\.ready:.*c$")) == 1


def test_27_2_static_nodes_are_no_launches(site, sshd, statsd):
    site.launcher(site.config(providers=[static_provider(sshd, "small")]))
    tree = site.tree()
    tree.wait_request(tree.add_request(["small"]), "fulfilled")
    wait_for(lambda: statsd.last("nodepool.nodes.ready") == "1|g", "the node is counted", 5)
    assert statsd.lines(r"nodepool\.launch\.") == []


# BB-33
@pytest.mark.parametrize("max_servers, expected", [(None, ["inf"]), (-1, ["0", "-1"]), (7, ["7"])])
def test_bb_33_max_servers(site, statsd, max_servers, expected):
    settings = {} if max_servers is None else {"max-servers": max_servers}
    limits = [{"tenant-name": "tenant.a", "max-cores": 10, "max-volume-gb": 3}]
    site.launcher(site.config(providers=[fake_provider(**settings)], **{"tenant-resource-limits": limits}))
    key = "nodepool.provider.fake-cloud.max_servers"
    found = wait_for(lambda: statsd.lines(re.escape(key)) or None, "the gauge is sent")
    assert [line for _, line in found][:len(expected)] == [f"{key}:{value}|g" for value in expected]
    # launcher.27.4: three limits always, others if configured.
    wait_for(lambda: statsd.last("nodepool.tenant_limits.tenant_a.cores") == "10|g", "the tenant's limit is sent")
    assert statsd.last("nodepool.tenant_limits.tenant_a.ram") == "inf|g"
    assert statsd.last("nodepool.tenant_limits.tenant_a.instances") == "inf|g"
    assert statsd.last("nodepool.tenant_limits.tenant_a.volume-gb") == "3|g"


# BB-32, launcher.27.5; operations.16.21
def test_bb_32_one_of_two_launchers_reports_the_cluster(site, statsd):
    """Also launcher.27.5. Which launcher sent a line is told by the port it came from."""
    first = site.launcher(name="first")
    tree = site.tree()
    wait_for(lambda: "Won stats reporter election" in first.output(), "the first launcher leads")
    second = site.launcher(name="second")
    tree.add_node(state="hold")
    leader = wait_for(lambda: statsd.lines(r"nodepool\.nodes\.hold:1\|g"), "the node is reported", 5)[0][0]
    both = wait_for(lambda: senders if len(senders := {sender for sender, _ in statsd.lines(
        r"nodepool\.provider\.fake-cloud\.max_servers")}) == 2 else None, "both send their configuration")
    assert {sender for sender, _ in statsd.lines(r"nodepool\.nodes\.")} == {leader}
    assert {state for state in STATES if statsd.last(f"nodepool.nodes.{state}") != "0|g"} == {"hold"}
    for queue in ("client.connection_queue", "node_cache.event_queue", "node_cache.playback_queue",
                  "request_cache.event_queue", "request_cache.playback_queue", "image_cache.event_queue",
                  "image_cache.playback_queue"):
        key = re.escape(f"nodepool.launcher.{HOSTNAME}.zk.{queue}:0|g")
        assert {sender for sender, _ in statsd.lines(key)} == both
    assert [entry["hostname"] for entry in tree.components("launcher").values()] == [os.uname().nodename] * 2
    election = "/nodepool/elections/stats"
    wait_for(lambda: len(tree.children(election)) == 2, "both stand for election")
    assert {tree.zk.get(f"{election}/{contender}")[0].decode() for contender in tree.children(election)} == {
        f"{HOSTNAME}-{first.pid}", f"{HOSTNAME}-{second.pid}"}

    first.kill()  # its session ends with the timeout
    wait_for(lambda: "Won stats reporter election" in second.output(), "the other takes over", 30)
    tree.add_node(state="hold")
    taken_over = wait_for(lambda: statsd.lines(r"nodepool\.nodes\.hold:2\|g"), "it reports", 5)
    assert {sender for sender, _ in taken_over} == both - {leader}


# launcher.27.6, LA-54
def test_27_6_leaks_are_counted(site, statsd):
    site.launcher()
    tree = site.tree()
    # A machine whose record is removed behind the launcher's back.
    node_id = tree.wait_request(tree.add_request(["small"]), "fulfilled")["nodes"][0]
    tree.zk.delete(f"/nodepool/nodes/{node_id}", recursive=True)
    wait_for(lambda: statsd.last("nodepool.provider.fake-cloud.leaked.instances") == "1|c", "the leak is counted", 20)


def test_an_unknown_statsd_host_is_fatal(site, monkeypatch):
    monkeypatch.setenv("STATSD_HOST", "no-such-host.invalid")
    process = site.launcher(wait=False)
    wait_for(lambda: not process.is_running(), "the launcher ends")
    assert process.child.returncode == 1
    assert "the statsd server no-such-host.invalid:8125 (STATSD_HOST, STATSD_PORT) cannot be used" in process.output()


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_prometheus_reads_our_metrics(site):
    """operations.md 10, without statsd: names, labels and types."""
    port = free_port()
    process = site.launcher(web_config(site, port, providers=[fake_provider(**ZONE)]))
    wait_for(lambda: "Statsd not configured" in process.output(), "the launcher says that there is no statsd")
    tree = site.tree()
    tree.add_raw_node(b"{")
    tree.wait_request(tree.add_request(["small"], requestor='odd "name"\n'), "fulfilled")

    def counted():
        status, headers, text = get(port, "/metrics")
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
        found = families(text)
        return found if "nodepool_malformed_records" in found and "nodepool_launch" in found else None

    found = wait_for(counted, "everything is counted", 20)

    def value(family, name=None, **labels):
        return [sample.value for sample in found[family].samples
                if sample.labels == labels and sample.name in ((name,) if name else (family, f"{family}_total"))]

    assert value("nodepool_nodes", state="ready") == [1]
    assert value("nodepool_nodes_by_provider", provider="fake-cloud", state="ready") == [1]
    assert value("nodepool_nodes_by_label", label="small", state="hold") == [0]
    assert value("nodepool_provider_max_servers", provider="fake-cloud") == [float("inf")]
    assert value("nodepool_provider_up", provider="fake-cloud") == [1]
    assert value("nodepool_launch", result="ready") == [1]
    assert value("nodepool_launch_by_provider", provider="fake-cloud", result="ready") == [1]
    assert value("nodepool_launch_by_provider_az", provider="fake-cloud", az="az.1", result="ready") == [1]
    assert value("nodepool_launch_by_requestor", requestor='odd "name"\n', result="ready") == [1]
    assert found["nodepool_launch_by_provider_timer"].type == "histogram"
    assert value("nodepool_launch_by_provider_timer", "nodepool_launch_by_provider_timer_bucket",
                 provider="fake-cloud", result="ready", le="+Inf") == [1]
    assert value("nodepool_malformed_records", kind="node") == [1]
    assert tree.children("/nodepool/elections") == []


# OT-8
def test_ready(site):
    """operations.16.12, D-64, D-30: 503 with the reason until every provider runs, then 200 OK."""
    port = free_port()
    site.launcher(web_config(site, port))

    def ready():
        status, headers, body = get(port, "/ready")
        return (headers, body) if status == 200 else None

    headers, body = wait_for(ready, "the launcher is ready")
    assert body == "OK"
    assert headers["Content-Type"] == "text/plain; charset=UTF-8"
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert headers["Cache-Control"] == "max-age=1, public"
    assert "Last-Modified" in headers and "Expires" in headers
    assert get(port, "/ready", Accept="application/json")[2] == "OK"
    assert get(port, "/ready/")[0] == 404
    assert get(port, "/none")[0] == 404
    assert json.loads(get(port, "/none", Accept="application/json")[2])["code"] == "404 Not Found"


def test_not_ready_before_zookeeper_is_reached(site):
    """operations.16.12. The web server answers before there is a session."""
    port = free_port()
    site.launcher(web_config_without_zookeeper(site, port), wait=False)
    status, _, body = first_answer(port, "/ready")
    assert status == 503
    assert "The launcher is starting or stopping." in body


def test_no_webapp_and_a_port_in_use(site):
    """operations.md 3.2."""
    port = free_port()
    site.launcher(web_config(site, port), name="first")
    second = site.launcher(web_config(site, port), wait=False, name="second")
    wait_for(lambda: not second.is_running(), "the second launcher ends")
    assert second.child.returncode == 1
    assert f"the web server cannot listen on 127.0.0.1 port {port}: Address already in use" in second.output()
    third = site.launcher(web_config(site, port), name="third", options=["--no-webapp", "--repl"])
    wait_for(lambda: "Serving 1 pools" in third.output(), "the third launcher serves")
    assert "Serving on http" not in third.output()
    assert "--repl is ignored" in third.output()  # D-61


def test_why_a_request_waits(site):
    """GET /api/v1/requests, the log and `nodepool request-list --detail` say the same."""
    port = free_port()
    config = web_config(site, port, providers=[fake_provider(**{"max-servers": 1})])
    process = site.launcher(config)
    tree = site.tree()
    held = tree.use(tree.add_request(["small"]))
    waiting = tree.add_request(["small"])
    tree.wait_request(waiting, "pending")
    reserved = tree.add_request(["small"], tenant_name="t1")

    def waits():
        status, headers, body = get(port, "/api/v1/requests")
        assert status == 200 and headers["Content-Type"] == "application/json"
        found = {request["id"]: request for request in json.loads(body)["requests"]}
        is_told = reserved in found and found[reserved]["waits"] and found[waiting]["waits"]
        return found if is_told else None

    found = wait_for(waits, "the reasons are known")
    assert found[waiting]["accepted_by"] == {"provider": "fake-cloud", "pool": "main"}
    assert found[waiting]["waits"][0]["reason"] == "capacity"
    assert found[waiting]["waits"][0]["missing"]["pool"] == {"instances": 1}
    assert found[reserved]["waits"] == [{
        "provider": "fake-cloud", "pool": "main", "reason": "capacity-reserved",
        "text": "uses 1 of 1 instances; raise its max-servers, or wait for nodes"}]
    assert found[reserved]["reason"] == {
        "code": "capacity-reserved", "provider": "fake-cloud", "pool": "main", "launcher": HOSTNAME,
        "text": "fake-cloud main uses 1 of 1 instances; raise its max-servers, or wait for nodes"}
    assert found[waiting]["reason"]["text"] == found[reserved]["reason"]["text"]
    assert [request["id"] for request in json.loads(get(port, "/api/v1/requests?state=requested")[2])["requests"]] == [
        reserved]
    assert get(port, "/api/v1/requests?state=waiting")[0] == 400
    assert get(port, "/api/v1/requests?limit=many")[0] == 400
    assert not json.loads(get(port, "/api/v1/requests?limit=1")[2])["is_complete"]

    line = (f"[node_request: {reserved}] The request for small of tenant t1 waits: "
            "fake-cloud main uses 1 of 1 instances; raise its max-servers, or wait for nodes")
    assert process.output().count(line) == 1

    done = site.tool("request-list", "--detail", config=config)
    assert done.returncode == 0
    row, = [row for row in done.stdout.splitlines() if reserved in row]
    assert found[reserved]["reason"]["text"] in row
    tree.give_back(held)


def test_a_launcher_that_is_not_reachable_is_named(site):
    tree = site.tree()
    record = {"hostname": "127.0.0.1", "kind": "launcher", "model_api": 0, "state": "running", "version": "1"}
    tree.zk.create("/nodepool/components/launcher/elsewhere", json.dumps(record).encode(), sequence=True,
                   makepath=True)
    request_id = tree.add_request(["small"])
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        config = web_config(site, silent.getsockname()[1])
        begin = time.monotonic()
        done = site.tool("request-list", "--detail", config=config)
        assert time.monotonic() - begin < 10
    assert done.returncode == 0
    assert request_id in done.stdout
    assert "launcher 127.0.0.1 does not answer: " in done.stderr
