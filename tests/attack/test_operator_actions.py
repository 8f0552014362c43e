"""Hostile clients of operators' actions over HTTP (docs/spec/http-actions.md)."""
import json
import threading

import pytest

from bounds import scaled
from lease_client import LeaseClient, LeaseSite
from nodepool_helpers import BIN
from targets import Target
from test_tokens import raw, status
from web_client import connect, exchange

ACTIONS = [("POST", "/api/v1/nodes/{node}/hold"), ("POST", "/api/v1/nodes/{node}/unhold"), ("DELETE", "/api/v1/nodes/{node}"),
           ("POST", "/api/v1/images/debian/build"), ("POST", "/api/v1/images/debian/pause"),
           ("POST", "/api/v1/images/debian/unpause"), ("DELETE", "/api/v1/images/debian/builds/b1"),
           ("DELETE", "/api/v1/images/debian/builds/b1/uploads/fake-cloud/0000000001"),
           ("POST", "/api/v1/images/debian/uploads/fake-cloud/retry"),
           ("POST", "/api/v1/providers/fake-cloud/pause"), ("POST", "/api/v1/providers/fake-cloud/unpause")]


@pytest.fixture
def leases(site):
    leases = LeaseSite(site)
    leases.token("ops", "--scope", "operate")
    leases.token("ci", "--scope", "request")
    leases.token("reader", "--scope", "read")
    port = leases.start()
    leases.target = Target(BIN / "nodepool-launcher", leases.launchers[port], web_port=port)
    tree = site.observer()
    leases.tree = tree
    leases.node = tree.add_node(state="ready", provider="elsewhere", pool="main", type=["small"])
    base = "/nodepool/images/debian/builds/b1"
    tree.zk.create(base, makepath=True, value=b'{"state": "ready", "state_time": 1700000000, "formats": "qcow2"}')
    tree.zk.create(f"{base}/providers/fake-cloud/images/0000000001", makepath=True,
                   value=b'{"state": "failed", "state_time": 1700000000}')
    return leases


def assert_nothing_changed(leases):
    tree = leases.tree
    assert tree.node(leases.node)["state"] == "ready"
    assert tree.children("/nodepool/paused-providers") == []
    assert sorted(tree.children("/nodepool/images/debian")) == ["builds"]
    assert tree.record("/nodepool/images/debian/builds/b1")["state"] == "ready"
    assert tree.record("/nodepool/images/debian/builds/b1/providers/fake-cloud/images/0000000001")["state"] == "failed"
    assert tree.zk.exists("/nodepool/images/debian/builds/b1/providers/fake-cloud").version == 0


# ACT-11
def test_other_scopes(leases, measured):
    with measured("actions without their scope", leases.target):
        for method, path in ACTIONS:
            start = f"{method} {path.format(node=leases.node)}"
            for token in ("ci", "reader"):
                assert status(raw(leases, start, token=token)) == 403, start
            assert status(raw(leases, start, token=None)) == 401, start
            assert status(raw(leases, start, f"Cookie: token={leases.texts['ops']}", token=None)) == 401, start
        assert_nothing_changed(leases)


# ACT-11
def test_pages_of_other_sites(leases, measured):
    port = leases.target.web_port
    with measured("actions by other sites", leases.target):
        for method, path in ACTIONS:
            start = f"{method} {path.format(node=leases.node)}"
            for origin in ("http://evil.example.com", "null", f"http://localhost.evil.example.com:{port}"):
                assert status(raw(leases, start, f"Origin: {origin}", token="ops")) == 403, (start, origin)
            for host in ("evil.example.com", f"evil.example.com:{port}", "127.0.0.1.evil.example.com"):
                request = (f"{start} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n"
                           f"Authorization: Bearer {leases.texts['ops']}\r\n\r\n").encode()
                assert status(exchange(port, request)) == 403, (start, host)
            for preflight in ("OPTIONS", "GET", "HEAD", "PUT", "PATCH"):
                target = path.format(node=leases.node)
                assert status(raw(leases, f"{preflight} {target}", token="ops")) == 405, (preflight, target)
        form = raw(leases, "POST /api/v1/providers/fake-cloud/pause", token="ops", body=b"reason=x").lower()
        assert status(form) == 400 and b"access-control" not in form
        assert_nothing_changed(leases)


# ACT-12
@pytest.mark.parametrize("name", ["..", ".", "%2e%2e", "..%2f..%2fnodes", "%2f", "x%2f..%2fdebian", "debian%00", "%00", "%0d%0aX-Evil:%201",
                                  "%ff%fe", "a" * 8000, "{image}", "%7Bimage%7D", "lock"])
def test_path_tricks(leases, measured, name):
    with measured("path tricks in actions", leases.target):
        for method, path in [("DELETE", f"/api/v1/nodes/{name}"), ("POST", f"/api/v1/nodes/{name}/hold"),
                             ("POST", f"/api/v1/images/{name}/build"), ("POST", f"/api/v1/images/{name}/pause"),
                             ("POST", f"/api/v1/images/{name}/unpause"),
                             ("DELETE", f"/api/v1/images/{name}/builds/b1"), ("DELETE", f"/api/v1/images/debian/builds/{name}"),
                             ("DELETE", f"/api/v1/images/debian/builds/b1/uploads/{name}/0000000001?force=true"),
                             ("DELETE", f"/api/v1/images/debian/builds/b1/uploads/fake-cloud/{name}?force=true"),
                             ("POST", f"/api/v1/images/debian/uploads/{name}/retry"),
                             ("POST", f"/api/v1/providers/{name}/pause"), ("POST", f"/api/v1/providers/{name}/unpause")]:
            answer = raw(leases, f"{method} {path}", token="ops")
            assert status(answer) in (404, 405, 409), (method, path[:100], answer[:300])
            assert status(answer) == 404 or name not in ("..", ".", "%2e%2e"), (method, path, answer[:300])
            assert b"\r\nx-evil" not in answer.lower()
        assert_nothing_changed(leases)
    assert "X-Evil" not in [line.split(":")[0] for line in leases.target.process.output().splitlines()]


# ACT-12
def test_bodies(leases, measured):
    hold, pause = f"POST /api/v1/nodes/{leases.node}/hold", "POST /api/v1/providers/fake-cloud/pause"
    bodies = [b"{" * 60_000, b"[" * 60_000, b"\xff" * 60_000, b"null", b"[]", b'{"reason": 1}', b'{"reason": "' + b"x" * 1001 + b'"}',
              b'{"seconds": 1e999}', b'{"drain": "yes"}', b'{"__proto__": {}}', b'{"reason": "a", "reason": "b"}', b'{"reason": "\xff"}',
              b'{"reason":' * 6_000]
    with measured("malformed bodies of actions", leases.target):
        for body in bodies:
            for start in (hold, pause):
                for _ in range(scaled(2, 20)):
                    assert status(raw(leases, start, token="ops", body=body)) == 400, body[:40]
        port = leases.target.web_port
        head = f"{pause} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {leases.texts['ops']}\r\n"
        assert status(exchange(port, (head + "Content-Length: 100000000\r\n\r\n").encode())) == 413
        slow = [connect(port, (head + "Content-Length: 1000\r\n\r\n{").encode()) for _ in range(100)]
        assert leases.client("ops").ask("GET", "/api/v1/pauses").json["pauses"] == []
        for connection in slow:
            connection.close()
        assert_nothing_changed(leases)


# ACT-13
def test_a_reason_is_only_text(leases, measured):
    reason = "x\r\nX-Evil: 1\n\x1b[31m nodepool.audit: root <script>alert(1)</script> \u202e"
    with measured("hostile reasons", leases.target):
        body = json.dumps({"reason": reason}).encode()
        for start in (f"POST /api/v1/nodes/{leases.node}/hold", "POST /api/v1/providers/fake-cloud/pause"):
            answer = raw(leases, start, token="ops", body=body)
            assert status(answer) == 200 and b"\r\nx-evil" not in answer.lower()
        assert leases.tree.record("/nodepool/paused-providers/fake-cloud")["reason"] == reason
        assert leases.tree.node(leases.node)["comment"] == reason
        changes = raw(leases, "GET /api/v1/changes", token=None)
        assert b"\r\nx-evil" not in changes.lower() and b"\x1b" not in changes
        request = leases.tree.wait_request(leases.tree.add_request(["small"]), "failed")
        assert all("\n" not in why and "\x1b" not in why for why in request["decline_reasons"])
    log = leases.target.process.output()
    assert "\x1b[31m" not in log and "\u202e" not in log
    assert not any(line.startswith("X-Evil") or "nodepool.audit: root" in line.split(" ", 3)[-1][:30] for line in log.splitlines())


# ACT-15
def test_strangers_with_the_owners_name(leases, measured):
    statuses = []

    def guess(number: int):
        client = LeaseClient([leases.target.web_port], f"ops.guess{number}")
        client.source = f"127.0.0.{number}"
        for _ in range(scaled(10, 100)):
            statuses.append(client.ask("GET", "/api/v1/leases").status)

    with measured("strangers with a token's name", leases.target):
        guessers = [threading.Thread(target=guess, args=(number,)) for number in range(2, 18)]
        for guesser in guessers:
            guesser.start()
        owner = leases.client("ops")
        answered = [owner.ask("GET", "/api/v1/leases").status for _ in range(5)]
        for guesser in guessers:
            guesser.join()
    assert set(answered) == {200}
    assert set(statuses) <= {401, 429, 503} and statuses.count(429) > len(statuses) / 2
