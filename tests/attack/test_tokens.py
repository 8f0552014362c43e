"""Hostile clients of requests over HTTP (docs/spec/http-requests.md)."""
import json
import secrets
import threading

import pytest

from bounds import scaled
from lease_client import REQUESTS, LeaseClient, LeaseSite
from nodepool_helpers import BIN
from targets import Target
from web_client import connect, exchange


@pytest.fixture
def leases(site):
    leases = LeaseSite(site)
    leases.token("ci", "--scope", "request", "--max-nodes", "5")
    leases.token("other", "--scope", "request")
    leases.token("reader", "--scope", "read")
    port = leases.start()
    leases.target = Target(BIN / "nodepool-launcher", leases.launchers[port], web_port=port)
    return leases


def raw(leases, start: str, *headers: str, body: bytes = b"", token: str | None = "ci") -> bytes:
    lines = [start + " HTTP/1.1", "Host: localhost", "Connection: close", "Accept: application/json",
             "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    if token:
        lines.append(f"Authorization: Bearer {leases.texts[token]}")
    return exchange(leases.target.web_port, "\r\n".join([*lines, "", ""]).encode() + body)


def status(received: bytes) -> int:
    return int(received.split(b" ", 2)[1])


def a_held_request(leases) -> str:
    client = leases.client("ci")
    lease = client.make()
    client.held(lease)
    return lease


# REQ-18
def test_scopes_and_requests_of_others(leases, measured):
    lease = a_held_request(leases)
    path = f"{REQUESTS}/{lease}"
    with measured("requests of other tokens", leases.target):
        for token in ("other", "reader"):
            client = leases.client(token)
            unknown = client.show("0" * 32)
            for answer in (client.show(lease), client.show(lease, wait=1), client.renew(lease), client.end(lease),
                           client.ask("POST", path + "/hold", {"node": "0000000000"})):
                assert (answer.status, answer.text) == (404, unknown.text)
            assert client.list() == []
        assert leases.client("reader").ask("POST", REQUESTS, {"labels": ["small"]}).status == 403
        for token in (None, ""):
            assert LeaseClient([leases.target.web_port], token).end(lease).status == 401
        assert leases.client("ci").show(lease).json["state"] == "held"


# REQ-18
def test_guessing_ids(leases, measured):
    a_held_request(leases)
    client = leases.client("other")
    with measured("guessed ids", leases.target):
        for _ in range(scaled(300, 3000)):
            assert client.show(secrets.token_hex(16)).status == 404


# REQ-17
def test_guessing_tokens(leases, measured):
    lease = a_held_request(leases)
    statuses = []

    def guess(number: int):
        client = LeaseClient([leases.target.web_port], None)
        for _ in range(scaled(30, 300)):
            client.token = f"{'ci' if number % 2 else secrets.token_hex(4)}.{secrets.token_hex(16)}"
            statuses.append(client.show(lease).status)

    with measured("guessed tokens", leases.target):
        guessers = [threading.Thread(target=guess, args=(number,)) for number in range(16)]
        for guesser in guessers:
            guesser.start()
        for _ in range(5):
            assert leases.client("ci").renew(lease).status == 200
        for guesser in guessers:
            guesser.join()
    assert set(statuses) <= {401, 429, 503}
    assert statuses.count(401) < 60, "most attempts are not even read"


# REQ-15
@pytest.mark.parametrize("body", [b"{" * 60_000, b"[" * 60_000, b'{"labels":' * 6_000, b'{"labels": {"small": 1e999}}',
                                  b'{"labels": {"small": 9223372036854775807}}', b"\xff" * 60_000, b"null", b"",
                                  b'{"labels": ["' + b"x" * 60_000 + b'"]}',
                                  b'{"labels": [' + b",".join([b'"small"'] * 7_000) + b"]}"],
                         ids=lambda body: body[:12].decode(errors="replace"))
def test_malformed_bodies(leases, measured, body):
    with measured("malformed bodies", leases.target):
        for _ in range(scaled(10, 100)):
            assert status(raw(leases, f"POST {REQUESTS}", body=body)) == 400
        assert leases.client("ci").list() == []


# REQ-15
def test_oversized_and_slow_bodies(leases, measured):
    port = leases.target.web_port
    head = (f"POST {REQUESTS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {leases.texts['ci']}\r\n")
    with measured("oversized and slow bodies", leases.target):
        assert status(exchange(port, (head + "Content-Length: 100000000\r\n\r\n").encode())) == 413
        slow = [connect(port, (head + "Content-Length: 1000\r\n\r\n{").encode()) for _ in range(100)]
        assert leases.client("ci").list() == []
        for connection in slow:
            connection.close()
        assert leases.client("ci").list() == []


def test_headers_are_not_injected(leases, measured):
    body = json.dumps({"labels": ["small"], "requestor": "x\r\nX-Evil: 1", "tenant": "\x1b[31m\nnodepool.audit: root"}).encode()
    with measured("texts with line breaks", leases.target):
        made = raw(leases, f"POST {REQUESTS}", "Idempotency-Key: a\tb", body=body)
        assert status(made) == 400
        made = raw(leases, f"POST {REQUESTS}", body=body)
        assert status(made) == 201
        assert b"\r\nx-evil" not in made.lower()
        missing = raw(leases, "GET /api/v1/requests/%0d%0aX-Evil:%201")
        assert status(missing) == 404 and b"\r\nx-evil" not in missing.lower()
    log = leases.target.process.output()
    assert "X-Evil" not in log and "\x1b[31m" not in log


# REQ-18
@pytest.mark.parametrize("trick", ["/../nodes", "/./", "/%2e%2e/nodes", "/..%2f..%2fnode-list", "/%2f", "//", "/%00", "/{id}",
                                   "/{id}/renew", "/%7Bid%7D"])
def test_path_tricks(leases, measured, trick):
    lease = a_held_request(leases)
    with measured("path tricks", leases.target):
        for method in ("GET", "POST", "DELETE"):
            assert status(raw(leases, f"{method} {REQUESTS}{trick}")) in (404, 405)
            assert status(raw(leases, f"{method} {REQUESTS}/{lease}{trick}")) in (404, 405)
        assert leases.client("ci").show(lease).json["state"] == "held"


# REQ-20
def test_other_sites_and_rebound_names(leases, measured):
    body = b'{"labels": ["small"]}'
    port = leases.target.web_port
    with measured("pages of other sites", leases.target):
        for origin in ("http://evil.example.com", "null", f"http://localhost.evil.example.com:{port}"):
            assert status(raw(leases, f"POST {REQUESTS}", f"Origin: {origin}", body=body)) == 403, origin
        for host in ("evil.example.com", f"evil.example.com:{port}", "127.0.0.1.evil.example.com"):
            request = (f"POST {REQUESTS} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n"
                       f"Authorization: Bearer {leases.texts['ci']}\r\nContent-Length: {len(body)}\r\n\r\n").encode()
            assert status(exchange(port, request + body)) == 403, host
        cookie = raw(leases, f"POST {REQUESTS}", f"Cookie: token={leases.texts['ci']}", body=body, token=None)
        assert status(cookie) == 401
        assert leases.client("ci").list() == []


# REQ-21
def test_a_token_never_reaches_a_log(leases, measured):
    secret = leases.texts["ci"].split(".")[1]
    with measured("tokens in wrong places", leases.target):
        raw(leases, f"GET {REQUESTS}/{secret}")
        raw(leases, f"GET /{secret}?token={secret}")
        for header in (secret, f"{secret}.ci", f"ci.{secret}x", f"Basic {secret}"):
            raw(leases, "GET /api/v1/leases", f"Authorization: Bearer {header}", token=None)
        raw(leases, f"POST {REQUESTS}", body=json.dumps({secret: 1}).encode())
    assert secret not in leases.target.process.output()


# REQ-14
def test_long_polls_of_many(leases, measured):
    client = leases.client("ci")
    lease = client.make()
    waiting = leases.client("ci").make(["small"], provider="no-such-provider")
    with measured("long polls", leases.target):
        polls = [threading.Thread(target=lambda: leases.client("ci").show(waiting, wait=5)) for _ in range(150)]
        for poll in polls:
            poll.start()
        assert client.show(lease, wait=10).json["state"] in ("held", "waiting")
        for poll in polls:
            poll.join()
