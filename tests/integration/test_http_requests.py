"""Requests over HTTP with real processes (docs/spec/http-requests.md)."""
import concurrent.futures
import contextlib
import http.client
import json
import signal
import time

import pytest

from lease_client import REQUESTS, LeaseClient, LeaseSite, assert_consistent, owners
from nodepool_helpers import fake_provider
from services import wait_for
from sse_client import EventStream

LEASES = "/nodepool/leases"


@pytest.fixture
def leases(site):
    """A launcher with a token `ci` for requests, and one for operators."""
    leases = LeaseSite(site, providers=[fake_provider(labels=("small", "large"))], labels=[{"name": "small"}, {"name": "large"}])
    leases.token("ci", "--scope", "request")
    leases.token("ops", "--scope", "operate")
    leases.start()
    return leases


def wait_clean(tree):
    wait_for(lambda: not tree.children(LEASES) and not tree.children("/nodepool/requests") and not tree.nodes(),
             "nothing is left", 30)


# REQ-1, REQ-2, REQ-4
def test_a_request_from_its_creation_to_its_end(site, leases):
    client, tree = leases.client("ci"), site.observer()
    lease = client.make({"small": 2, "large": 1}, requestor="job 7")
    shown = client.held(lease)
    assert shown["labels"] == ["small", "small", "large"] and shown["requestor"] == "job 7"
    for node, label in zip(shown["nodes"], shown["labels"]):
        assert node["labels"] == [label]
        assert node["interface_ip"] and node["connection_port"] == 22 and node["host_keys"] is not None
        record = tree.node(node["id"])
        assert record["state"] == "in-use" and record["user_data"] == {"lease": lease, "client": "ci"}
    record = tree.record(f"{LEASES}/{lease}")
    assert set(record) == {"state", "client", "labels", "requestor", "tenant_name", "request", "nodes", "lease_seconds",
                           "created_time", "renewed_time", "failure", "asked"}
    assert record["request"] is None and record["nodes"] == [node["id"] for node in shown["nodes"]]
    assert set(owners(tree).values()) == {f"lease:{lease}"}
    assert_consistent(tree)
    assert client.end(lease).status == 204
    wait_clean(tree)
    assert client.end(lease).status == 404


# REQ-2
def test_the_request_has_standard_fields_only(site):
    leases = LeaseSite(site, providers=[fake_provider(**{"max-servers": 1})])
    leases.token("ci", "--scope", "request")
    leases.start()
    client, tree = leases.client("ci"), site.observer()
    client.held(client.make())
    client.make()  # which waits

    def waiting():
        found = [(name, tree.request(name)) for name in tree.children("/nodepool/requests")]
        return [entry for entry in found if entry[1]]

    name, record = wait_for(waiting, "the request waits")[-1]
    assert name.startswith("200-")
    assert set(record) <= {"state", "state_time", "declined_by", "node_types", "nodes", "reuse", "requestor",
                           "requestor_data", "provider", "relative_priority", "event_id", "created_time", "tenant_name"}


# REQ-3
@pytest.mark.long
def test_a_lease_that_is_not_renewed_is_back_within_two_seconds(site, leases):
    client, tree = leases.client("ci"), site.observer()
    kept, lapsed = client.make(lease=30), client.make(lease=30)
    client.held(kept), client.held(lapsed)
    assert client.renew(lapsed).status == 200
    last = time.monotonic()
    end = last + 30
    while time.monotonic() < end - 5:
        assert client.renew(kept).status == 200
        wait_for(lambda: time.monotonic() > last + 5, "it is time to renew", 30)
        last = time.monotonic()
    wait_for(lambda: tree.record(f"{LEASES}/{lapsed}") is None, "it expires", 30)
    assert -0.5 < time.monotonic() - end < 2
    assert client.show(kept).json["state"] == "held"
    assert_consistent(tree)


# REQ-32
def test_answers_are_right_beside_renewals(leases):
    client = leases.client("ci")
    lease = client.make(["small", "large"], lease=3600)
    nodes = [node["id"] for node in client.held(lease)["nodes"]]
    headers = {"Authorization": f"Bearer {client.token}"}
    readers_left = 30

    def ask(method, path, count):
        """One answer after the other on one connection."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", client.ports[0], timeout=30)) as connection:
            for _ in range(count):
                connection.request(method, path, headers=headers)
                answer = connection.getresponse()
                text = answer.read()
                assert answer.status == 200, text
                shown = json.loads(text)
                assert (shown["id"], shown["client"]) == (lease, "ci"), text
                assert [node["id"] for node in shown["nodes"]] == nodes, text
                if method == "POST" and not readers_left:
                    return

    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        renewing = [pool.submit(ask, "POST", f"{REQUESTS}/{lease}/renew", 900) for _ in range(10)]
        reading = [pool.submit(ask, "GET", f"{REQUESTS}/{lease}", 150) for _ in range(readers_left)]
        concurrent.futures.wait(reading)
        readers_left = 0
        for done in (*reading, *renewing):
            done.result()
    assert client.end(lease).status == 204


# REQ-5
def test_a_failed_request(site):
    leases = LeaseSite(site, providers=[fake_provider(**{"max-servers": 1})])
    leases.token("ci", "--scope", "request")
    leases.start()
    client = leases.client("ci")
    lease = client.make({"small": 2})
    answer = client.show(lease, wait=30)
    assert answer.json["state"] == "failed" and "max-servers is 1" in answer.json["failure"]
    assert client.renew(lease).status == 409
    assert client.end(lease).status == 204


# WHY-5
def test_a_label_that_no_launcher_offers(leases):
    client = leases.client("ci")
    launchers = leases.site.tree().components
    wait_for(lambda: {launcher["state"] for launcher in launchers("launcher").values()} == {"running"},
             "no launcher is starting, which might offer it")
    refused = client.ask("POST", REQUESTS, {"labels": ["small", "smal"]})
    assert refused.status == 409 and "no launcher offers label smal; did you mean small?" in refused.text
    assert leases.site.tree().children("/nodepool/requests") == []


# REQ-6
def test_an_idempotency_key(site, leases):
    client = leases.client("ci")

    def post(labels):
        return client.ask("POST", REQUESTS, {"labels": labels}, Idempotency_Key="build-7")

    first, second = post(["small"]), post({"small": 1})
    assert (first.status, second.status) == (201, 200)
    assert first.id == second.id
    assert post(["large"]).status == 409
    assert site.observer().children(LEASES) == [first.id]


# REQ-7, REQ-8
def test_holding_a_node(site, leases):
    client, tree = leases.client("ci"), site.observer()
    lease = client.make(["small", "small"])
    first, second = [node["id"] for node in client.held(lease)["nodes"]]
    answer = client.ask("POST", f"{REQUESTS}/{lease}/hold", {"node": first, "reason": "bug 7", "seconds": 600})
    assert answer.status == 200 and [node["id"] for node in answer.json["nodes"]] == [second]
    record = tree.node(first)
    assert (record["state"], record["comment"], record["hold_expiration"]) == ("hold", "bug 7", 600)
    assert tree.node_contenders(first) == []
    tree.change_node(second, state="hold", state_time=time.time())
    wait_for(lambda: tree.record(f"{LEASES}/{lease}")["nodes"] == [], "the node is dropped")
    client.end(lease)
    wait_for(lambda: not tree.children(LEASES), "the lease ends")
    assert {node["state"] for node in tree.nodes().values()} == {"hold"}
    site.tool("delete", first, check=True)


# REQ-10
def test_the_keeper_is_killed_again_and_again(site):
    cloud = {"directory": str(site.folder / "cloud")}  # which the launchers share, and which outlives them
    leases = LeaseSite(site, providers=[fake_provider(simulation=cloud)])
    leases.token("ci", "--scope", "request")
    leases.start()
    tree = site.observer()
    second = leases.start()
    client = leases.client("ci")
    held = [client.make(lease=60) for _ in range(10)]
    nodes = {lease: [node["id"] for node in client.held(lease)["nodes"]] for lease in held}
    for _ in range(4):
        killed = leases.kill_keeper()
        late = client.make(lease=60)
        ended = held.pop()
        assert client.end(ended).status == 204
        held.append(late)
        leases.start(killed)
        nodes[late] = [node["id"] for node in client.held(late)["nodes"]]
        for lease in held:
            assert client.renew(lease).status == 200
        wait_for(lambda: tree.record(f"{LEASES}/{ended}") is None, "the lease has ended", 30)
    for lease in held:
        shown = client.show(lease).json
        assert shown["state"] == "held" and [node["id"] for node in shown["nodes"]] == nodes[lease]
    assert second in leases.launchers
    assert_consistent(tree)
    for lease in held:
        client.end(lease)
    wait_clean(tree)


# REQ-11
def test_a_node_whose_lease_record_is_gone(site, leases):
    client, tree = leases.client("ci"), site.observer()
    lease = client.make()
    client.held(lease)
    tree.zk.delete(f"{LEASES}/{lease}")
    wait_clean(tree)


# REQ-16
def test_without_tokens_nothing_can_be_changed(site):
    leases = LeaseSite(site)
    leases.secure.write_text("{}")
    leases.start()
    client = LeaseClient(list(leases.launchers), "ci.0123")
    answer = client.ask("POST", REQUESTS, {"labels": ["small"]}, Accept="text/plain")
    assert answer.status == 403 and "nodepool token" in answer.text
    client.token = None
    assert client.ask("GET", REQUESTS).json["requests"] == []
    assert client.ask("GET", "/node-list").status == 200


# REQ-17, REQ-18, REQ-21
def test_tokens(site, leases):
    client = leases.client("ci")
    lease = client.make()
    client.held(lease)
    wrong = LeaseClient(client.ports, "ci.0123456789")
    first = wrong.ask("GET", f"{REQUESTS}/{lease}")
    assert first.status == 401 and first.headers["WWW-Authenticate"] == "Bearer"
    assert wrong.ask("GET", f"{REQUESTS}/{lease}").status == 429
    assert client.show(lease).status == 200, "a token that was verified is not slowed down"
    operator = leases.client("ops")
    wait_for(lambda: operator.ask("GET", "/api/v1/leases").status == 200, "the address may try again")
    assert [entry["id"] for entry in operator.list()] == [lease]
    assert operator.ask("POST", REQUESTS, {"labels": ["small"]}).status == 403
    assert operator.end(lease).status == 204
    log = next(iter(leases.launchers.values())).output()
    for text in leases.texts.values():
        assert text.split(".")[1] not in log
    assert "0123456789" not in log
    assert f"nodepool.audit: ops from 127.0.0.1: end request {lease}: done" in log


# REQ-17
def test_tokens_follow_the_configuration(leases):
    client = leases.client("ci")
    assert client.ask("GET", "/api/v1/leases").status == 200
    leases.token("new")
    for process in leases.launchers.values():
        process.send(signal.SIGHUP)
    added = leases.client("new")
    wait_for(lambda: added.ask("GET", "/api/v1/leases").status == 200, "the new token is known", 60)
    leases.entries[:] = [entry for entry in leases.entries if entry["name"] != "ci"]
    leases.secure.write_text(json.dumps({"webapp-tokens": leases.entries}))
    for process in leases.launchers.values():
        process.send(signal.SIGHUP)
    wait_for(lambda: client.ask("GET", "/api/v1/leases").status in (401, 429), "the old token is refused", 30)


def stream_of(leases, name):
    return EventStream(next(iter(leases.launchers)), "/api/v1/events?topics=leases", Authorization=f"Bearer {leases.texts[name]}")


# REQ-24, REQ-25, REQ-28
def test_a_stream_of_leases(leases):
    client = leases.client("ci")
    leases.token("new")
    with stream_of(leases, "ci") as own, stream_of(leases, "ops") as all_leases:
        assert own.next().name == all_leases.next().name == "hello"
        lease = client.make()
        for stream in (own, all_leases):
            event = stream.until(lambda event: event.name == "leases" and event.data["state"] == "held")
            assert event.data["id"] == lease and event.data["nodes"][0]["interface_ip"]
        assert client.end(lease).status == 204
        own.until(lambda event: event.data == {"id": lease, "is_gone": True})
        leases.entries[:] = [entry for entry in leases.entries if entry["name"] != "ci"]
        leases.secure.write_text(json.dumps({"webapp-tokens": leases.entries}))
        for process in leases.launchers.values():
            process.send(signal.SIGHUP)
        new = leases.client("new")
        wait_for(lambda: new.ask("GET", "/api/v1/leases").status == 200, "the new token is known", 60)
        # Attempts before it was known count as wrong ones, which slow their network down.
        new.end(wait_for(lambda: made_by(new), "the new token makes a request", 60))
        with pytest.raises(AssertionError, match="the stream has ended"):
            own.until(lambda event: False)
    for _ in range(20):
        with stream_of(leases, "ci") as refused:
            assert refused.head.split()[1] == "401", "it is known to be withdrawn, and no guess"


def made_by(client):
    """The id of a new request; None while its token is refused."""
    with contextlib.suppress(AssertionError):
        return client.make()


# REQ-23
def test_the_command_token(site):
    done = site.tool("token", "ci", "--scope", "request", "--max-nodes", "20", "--label", "small", "--tenant", "it's")
    assert done.returncode == 0
    assert "webapp-tokens:\n  - name: 'ci'\n" in done.stdout and "tenant: 'it''s'" in done.stdout
    assert site.tool("token", "a.b").returncode != 0
    assert site.tool("token", "ci", "--scope", "root").returncode != 0
