"""Hostile clients of the web server, and records that make its answers large."""
import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import subprocess
import sys
import time

import pytest

from bounds import scaled, slowness
from lease_client import LeaseClient, LeaseSite
from nodepool_helpers import BIN
from services import wait_for
from targets import Target
from web_client import connect, exchange, get
from web_tls import WebTls

SMALL_BUFFER = 4096


def asking(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", *headers, "", ""]).encode()


def answers(received: bytes) -> int:
    return received.count(b"HTTP/1.1 ")


@pytest.fixture
def launcher(site):
    return site.start()


def plant_nodes(site, port: int, count: int, comment: str = ""):
    """Nodes on hold of another provider, with comments that differ, since equal ones would be in memory once; ends when the
    web server knows them."""
    tree = site.observer()
    before = get(port, "/node-list")[2].count("elsewhere")
    for number in range(count):
        fields = {"comment": f"{number} {comment}"} if comment else {}
        tree.add_node(state="hold", provider="elsewhere", **fields)
    wait_for(lambda: get(port, "/node-list")[2].count("elsewhere") >= before + count, "the nodes are known", 60)


def test_one_long_field(site, launcher, measured):
    port = launcher.web_port
    plant_nodes(site, port, scaled(300, 600))
    with measured("tables with one field of 900 kB", launcher):
        site.observer().add_node(state="hold", provider="elsewhere", comment="x" * 900_000)
        wait_for(lambda: b"xxx" in exchange(port, asking("/node-list", "Host: x", "Connection: close")), "it is shown")
        for _ in range(scaled(3, 50)):
            assert len(exchange(port, asking("/node-list", "Host: x", "Connection: close"))) < 4 << 20


def test_more_than_an_answer_holds(site, launcher, measured):
    port = launcher.web_port
    plant_nodes(site, port, 80, comment="x" * 900_000)
    with measured("lists of 72 MB", launcher):
        for number in range(scaled(3, 20)):
            # Different queries: none is answered from the cache.
            for query in (f"limit={1000 - number}", f"provider=elsewhere&limit={1000 - number}"):
                answer = exchange(port, asking(f"/api/v1/nodes?{query}", "Host: x", "Connection: close"))
                assert answer.endswith(b'"is_complete":false}')


def test_more_than_a_list_without_pages_holds(site, launcher, measured):
    port = launcher.web_port
    plant_nodes(site, port, 80, comment="x" * 900_000)
    with measured("lists of 72 MB without pages", launcher):
        for number in range(scaled(3, 20)):
            for accept, status in [("application/json", b"503"), ("text/plain", b"200")]:
                headers = ["Host: x", "Connection: close", f"Accept: {accept}"]
                answer = exchange(port, asking(f"/node-list?fields=id,{number}", *headers))
                assert answer.startswith(b"HTTP/1.1 " + status), answer[:400]


# HTTP-9
def test_compressed_lists_for_many(site, launcher, measured):
    port = launcher.web_port
    tree = site.observer()
    before = get(port, "/node-list")[2].count("elsewhere")
    for _ in range(20):
        tree.add_node(state="hold", provider="elsewhere", comment=os.urandom(50_000).hex())
    wait_for(lambda: get(port, "/node-list")[2].count("elsewhere") >= before + 20, "the nodes are known", 60)
    with measured("compressed lists of 2 MB for many", launcher):
        # Different queries: each is made and compressed for itself.
        greedy = [connect(port, asking(f"/api/v1/nodes?limit={1000 - number}", "Host: x", "Accept-Encoding: gzip"), SMALL_BUFFER)
                  for number in range(scaled(60, 190))]
        for number in range(10):
            answer = exchange(port, asking(f"/api/v1/nodes?limit={700 - number}", "Host: x", "Accept-Encoding: gzip",
                                           "Connection: close"))
            assert b"Content-Encoding: gzip" in answer
    for connection in greedy:
        connection.close()


def test_large_answers_that_nobody_reads(site, launcher, measured):
    port = launcher.web_port
    plant_nodes(site, port, 20, comment="x" * 400_000)
    with measured("answers of 8 MB that nobody reads", launcher):
        greedy = [connect(port, asking("/api/v1/nodes", "Host: x"), SMALL_BUFFER) for _ in range(150)]
        assert answers(exchange(port, asking("/ready", "Host: x", "Connection: close"))) == 1
    for connection in greedy:
        connection.close()


# PAGE-4
def test_streams_that_nobody_reads(site, launcher, measured):
    port = launcher.web_port
    tree = site.observer()
    node = tree.add_node(state="hold", provider="elsewhere", hold_expiration=0)
    wait_for(lambda: node in get(port, "/api/v1/nodes")[2], "the node is known")
    with measured("streams of events that nobody reads", launcher):
        deaf = [connect(port, asking("/api/v1/events", "Host: x"), SMALL_BUFFER) for _ in range(scaled(400, 2100))]
        for number in range(scaled(100, 500)):
            tree.change_node(node, comment=str(number) + "x" * 400_000)
    for connection in deaf:
        connection.close()


def test_requests_without_end(launcher, measured):
    port = launcher.web_port
    with measured("requests that never end", launcher):
        slow = [connect(port, b"GET /ready HTTP/1.1\r\nX: ") for _ in range(scaled(400, 2000))]
        for _ in range(20):
            for connection in slow:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(b"x")
    for connection in slow:
        connection.close()


def test_pipelined_requests(site, launcher, measured):
    port = launcher.web_port
    plant_nodes(site, port, 100)
    request = asking("/node-list", "Host: x")
    with measured("pipelined requests whose answers nobody reads", launcher):
        clients = [connect(port, b"", SMALL_BUFFER) for _ in range(scaled(50, 190))]
        for client in clients:
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                client.send(request * 1000)
        for _ in range(10):
            assert answers(exchange(port, asking("/ready", "Host: x", "Connection: close"))) == 1
    for client in clients:
        client.close()


@contextlib.contextmanager
def deaf_clients(port: int, count: int, networks: int, tls: WebTls | None):
    words = [pathlib.Path(__file__).with_name("deaf_clients.py"), port, count, networks, *([tls.authority] if tls else [])]
    child = subprocess.Popen([sys.executable, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    yield
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()


def share_in_time(ask, rounds: int, limit: float) -> float:
    """Of the rounds, one each 20 ms at most, in how many `ask` says within so many seconds that it was answered."""
    good = 0
    for _ in range(rounds):
        begin = time.monotonic()
        with contextlib.suppress(OSError, http.client.HTTPException):
            good += ask() and time.monotonic() - begin <= limit
        time.sleep(max(0, begin + 0.02 - time.monotonic()))
    return good / rounds


# HTTP-4
@pytest.mark.parametrize("networks", [1, 400])
@pytest.mark.parametrize("has_tls", [False, True], ids=["http", "https"])
def test_clients_that_read_nothing(site, tmp_path, measured, has_tls, networks):
    tls = WebTls(tmp_path / "tls", "ec") if has_tls else None
    leases = LeaseSite(site, **({"tls": tls} if tls else {}))
    leases.token("ci", "--scope", "request")
    port = leases.start()
    target = Target(BIN / "nodepool-launcher", leases.launchers[port], web_port=port, authority=tls and tls.authority)
    client = LeaseClient([port], leases.texts["ci"], tls and tls.client())
    lease = client.make()
    limit = 0.25 * slowness(target.program)
    # The probe's handshakes wait behind those of the clients that come back to the same address.
    name = f"clients that read nothing, {networks} networks{', TLS' if tls else ''}"
    with contextlib.ExitStack() as attack, measured(name, target, probe=1000 if tls else 250):
        attack.enter_context(deaf_clients(port, scaled(220, 1000), networks, tls))
        stranger = LeaseClient([port], None, tls and tls.client())
        ready = share_in_time(lambda: stranger.ask("GET", "/ready").status == 200, scaled(100, 500), limit)
        known = share_in_time(lambda: client.renew(lease).status in (200, 409), scaled(100, 500), limit)
        print(f"in time: {ready:.1%} of /ready, {known:.1%} of renewals")
    assert ready >= 0.99
    assert known >= 0.99


AMBIGUOUS = [["Content-Length: 4", "Transfer-Encoding: chunked"], ["Content-Length: 4", "Content-Length: 40"],
             ["Content-Length: 010", "Content-Length: 10"],
             ["Content-Length: 010, 10"], ["Transfer-Encoding: xchunked"]]


def test_a_hidden_request_is_not_answered(launcher, measured):
    hidden = asking("/node-list", "Host: x", "Connection: close")
    with measured("requests hidden behind an ambiguous length", launcher):
        for headers in AMBIGUOUS:
            received = exchange(launcher.web_port, asking("/ready", "Host: x", *headers) + b"0\r\n\r\n" + hidden)
            assert answers(received) <= 1, headers
            assert received == b"" or b" 400 " in received[:20], headers


def test_pages_of_others_change_nothing(launcher, measured):
    body = '{"name": "j", "build": {"node_name": "1", "status": "FAILURE"}}'
    headers = ["Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close"]
    with measured("requests of other sites' pages", launcher):
        for foreign in (["Host: evil.example.com"], ["Host: localhost", "Origin: http://evil.example.com"]):
            request = asking("/api/v1/job-events", *foreign, *headers, method="POST") + body.encode()
            assert exchange(launcher.web_port, request).startswith(b"HTTP/1.1 403 "), foreign


# TLS-7
@pytest.mark.parametrize("kind", ["ec", "rsa:4096"])
def test_handshakes_without_end(site, tmp_path, measured, kind):
    tls = WebTls(tmp_path / "tls", kind)
    target = site.start(tls)
    begun = bytes.fromhex("1603010200010001fc0303")
    # The probe's own handshakes wait for their turns, and some of its connections are dropped for newer ones.
    with measured(f"TLS handshakes that never end, {kind}", target, probe=1000):
        slow = [connect(target.web_port, begun[:number % len(begun)]) for number in range(scaled(1000, 4000))]
        for _ in range(20):
            for connection in slow:
                with contextlib.suppress(OSError):
                    connection.sendall(b"x")
    for connection in slow:
        connection.close()


# TLS-7
@pytest.mark.parametrize("kind", ["ec", "rsa:4096"])
def test_a_flood_of_whole_handshakes(site, tmp_path, measured, kind):
    tls = WebTls(tmp_path / "tls", kind)
    target = site.start(tls)
    client = tls.client()

    def shake(seconds: float) -> int:
        made, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(OSError), connect(target.web_port) as connection:
                client.wrap_socket(connection, server_hostname="localhost").close()
                made += 1
        return made

    with measured(f"whole TLS handshakes, {kind}", target, probe=1000):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            made = sum(pool.map(shake, [scaled(3, 10)] * 16))
    assert made > 20
