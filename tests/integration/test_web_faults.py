"""Clients of the web server that misbehave: each is told so, or hung up on, and nobody else notices."""
import resource
import time

import pytest

from services import free_port, wait_for
from web_client import connect, exchange, get, web_config

END = b"Host: x\r\nConnection: close\r\n\r\n"


@pytest.fixture
def web(site):
    port = free_port()
    site.web_launcher = site.launcher(web_config(site, port))
    return port


@pytest.fixture
def many_files():
    """Room for thousands of connections of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def assert_serves(port: int):
    start = time.monotonic()
    assert get(port, "/ready")[2] == "OK"
    assert time.monotonic() - start < 3


@pytest.mark.parametrize("sent, status, says", [
    (b"GET /ready HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431, b""),
    (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n" + END, 431, b""),
    (b"POST /ready HTTP/1.1\r\nContent-Length: 10000000\r\n" + END, 413, b""),
    (b"GET /ready HTTP/1.1\r\nContent-Length: -1\r\n" + END, 400, b"Bad Request: "),
    (b"nonsense\r\n\r\n", 400, b"Bad Request: "),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, b"Bad Request: "),
    (b"GET ready HTTP/1.1\r\n" + END, 400, b"the target is not a path"),
    (b"GET /%zz HTTP/1.1\r\n" + END, 400, b"the target is not a path"),
    (b"GET /ready?a=%f HTTP/1.1\r\n" + END, 400, b"the target is not a path"),
    (b"DELETE /api/v1/nodes HTTP/1.1\r\n" + END, 405, b"/api/v1/nodes takes GET, HEAD."),
    (b"BREW /api/v1/nodes HTTP/1.1\r\n" + END, 405, b"takes GET, HEAD."),
    (b"POST /node-list HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n" + END + b"a=%",
     400, b"The form is malformed."),
    (b"GET /../etc/passwd HTTP/1.1\r\n" + END, 404, b"There is nothing at "),
    (b"GET /api/v1/nodes?colour=red HTTP/1.1\r\n" + END, 400, b'There is no parameter "colour" here'),
], ids=lambda value: str(value)[:30] if isinstance(value, bytes) else str(value))
def test_what_cannot_be_served_is_refused(web, sent, status, says):
    answer = exchange(web, sent)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert says in answer
    assert_serves(web)


def test_slow_clients_hold_up_nobody(web):
    slow = [connect(web, b"GET /ready HTTP/1.1\r\nX: ") for _ in range(50)]
    for _ in range(5):
        for connection in slow:
            connection.sendall(b"x")
        assert_serves(web)
    wait_for(lambda: slow[0].recv(1) == b"", "the first is hung up on")
    for connection in slow:
        connection.close()


def test_thousands_of_idle_connections_hold_up_nobody(site, web, many_files):
    idle = [connect(web) for _ in range(1000)]
    assert_serves(web)
    idle += [connect(web, b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(1000)]
    for _ in range(3):
        assert_serves(web)
    assert "The loop has been blocked" not in site.web_launcher.output()
    for connection in idle:
        connection.close()


def test_answers_that_nobody_takes_are_bounded(site, web):
    tree = site.tree()
    for _ in range(40):
        tree.add_node(state="hold", provider="elsewhere", comment="x" * 100_000)
    wait_for(lambda: len(get(web, "/api/v1/nodes")[2]) > 4_000_000, "the nodes are known")
    before = resident_megabytes(site.web_launcher)
    greedy = [connect(web, b"GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\n\r\n", 4096) for _ in range(150)]
    wait_for(lambda: b" 503 " in exchange(web, b"GET /api/v1/nodes HTTP/1.1\r\n" + END)[:20], "there is no more room")
    assert b"Others do not take their answers" in exchange(web, b"GET /api/v1/nodes HTTP/1.1\r\n" + END)
    assert_serves(web)
    assert resident_megabytes(site.web_launcher) - before < 150
    for connection in greedy:
        connection.close()
    wait_for(lambda: get(web, "/api/v1/nodes")[0] == 200, "there is room again")


def resident_megabytes(process) -> float:
    with open(f"/proc/{process.child.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024
