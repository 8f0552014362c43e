"""Hostile clients of the embedded ZooKeeper server."""
import contextlib
import random
import socket
import time

import pytest

from bounds import scaled
from hostile_clients import (Flood, connect, create_all, frame, is_admitted, is_hung_up, send_all, statistics,
                             wait_answered)
from measure import memory
from services import LOOPBACK, wait_for
from zk_raw import (ADD_WATCH, COUNT, CREATE, EPHEMERALS, EXISTS, GET, MULTI_READ, SET, SET_WATCHES2, Closed, RawClient, create,
                    digest_id, integer, long, multi, text, texts, word)

RECURSIVE = 1
EPHEMERAL = 1
BAD_ARGUMENTS = -8
SMALL_BUFFER = 4096


@pytest.fixture
def client(server):
    client, = connect(server.zookeeper_port, 1)
    yield client
    client.drop()


@pytest.fixture
def large(client):
    """A znode that is as large as znodes may be."""
    assert client.ask(CREATE, create("/large", bytes(900_000)))[1] == 0
    return "/large"


def many_reads(path: str, count: int) -> bytes:
    return multi([(GET, text(path) + b"\0")] * count)


def test_an_answer_that_is_much_larger_than_its_request(server, client, large, measured):
    with measured("multiRead of one large znode, again and again", server):
        client.send(MULTI_READ, many_reads(large, scaled(500, 40_000)))
        assert is_hung_up(client)


def test_large_answers_that_nobody_reads(server, large, measured):
    clients = connect(server.zookeeper_port, scaled(12, 40), SMALL_BUFFER)
    with measured("large answers to clients that do not read", server):
        for client in clients:
            client.send(MULTI_READ, many_reads(large, 40))
        wait_answered(clients)


def test_many_answers_that_nobody_reads(server, large, measured):
    clients = connect(server.zookeeper_port, scaled(200, 1500), SMALL_BUFFER)
    request = frame(GET, text(large) + b"\0")
    with measured("answers to many clients that do not read", server):
        for client in clients:
            send_all(client, request * 10)
        wait_answered(clients)


def test_events_that_nobody_reads(server, client, measured):
    path = "/" + "p" * 60_000
    client.ask(CREATE, create(path))
    watchers = connect(server.zookeeper_port, scaled(20, 100), SMALL_BUFFER)
    for watcher in watchers:
        watcher.ask(ADD_WATCH, text("/") + integer(RECURSIVE))
    with measured("events for clients that do not read", server):
        for _ in range(scaled(300, 600)):
            client.ask(SET, text(path) + text(b"") + integer(-1))


def test_requests_that_take_long(server, client, measured):
    """Counts of descendants, pipelined by several clients, which are still at it when the server is to stop."""
    create_all(client, ["/many"] + [f"/many/{i}" for i in range(scaled(5_000, 100_000))])
    clients = connect(server.zookeeper_port, 4)
    count = frame(COUNT, text("/many"))
    own = scaled(3000, 500)
    with measured("pipelined counts of descendants", server):
        send_all(client, count * own)
        floods = [Flood(each, count * 1000) for each in clients]
        for _ in range(own):
            client.receive()
    assert len(floods) == len(clients)


def test_paths_without_end(server, client, measured):
    with measured("paths of 1 MB", server):
        path = "/" + "x" * 1_000_000
        client.ask(CREATE, create(path))
        for i in range(scaled(300, 1000)):
            client.send(CREATE, create(f"{path}/{i}", flags=EPHEMERAL))
            client.receive()
        assert client.ask(CREATE, create(path))[1] == BAD_ARGUMENTS


def test_long_paths_of_ephemerals(server, client, measured):
    path = "/" + "x" * 60_000
    client.ask(CREATE, create(path))
    with measured("long paths of ephemerals, and their lists", server):
        for i in range(scaled(500, 1500)):
            client.ask(CREATE, create(f"{path}/{i}", flags=EPHEMERAL))
        for _ in range(scaled(5, 50)):
            assert len(word(server.zookeeper_port, "dump")) < 4 << 20
        client.send(EPHEMERALS, text("/"))
        wait_answered([client])


def test_access_lists_count(server, client, measured):
    """They may take what the tree may take, and count."""
    entries = [(31, "digest", digest_id(f"user{i}", "word")) for i in range(18_000)]
    count = scaled(60, 200)
    counted = statistics(server.zookeeper_port)["zk_approximate_data_size"]
    before = memory(server.process.pid, "VmRSS")
    with measured("long access lists", server, memory=256 + 4 * count):
        for i in range(count):
            client.ask(CREATE, create(f"/{i}", access=entries))
        counted = statistics(server.zookeeper_port)["zk_approximate_data_size"] - counted
        taken = (memory(server.process.pid, "VmRSS") - before) * (1 << 20)
        assert counted > taken / 2


def test_millions_of_watches(server, measured):
    clients = connect(server.zookeeper_port, scaled(6, 12))

    def watch(client: RawClient, first: int):
        paths = [f"/{client.session & 0xffff:x}/{number}" for number in range(first, first + 50_000)]
        send_all(client, frame(SET_WATCHES2, long(0) + texts([]) + texts(paths) + texts([]) * 3, xid=-8))
        with contextlib.suppress(Closed):
            client.receive()

    with measured("millions of watches", server):
        for first in range(0, 300_000, 50_000):
            for client in clients:
                watch(client, first)
        for client in clients:
            client.drop()
        wait_for(lambda: statistics(server.zookeeper_port)["zk_watch_count"] < 100, "the watches are gone", 60)


def test_requests_that_are_not_finished(server, measured):
    clients = connect(server.zookeeper_port, scaled(400, 1500))
    with measured("requests of 1 MB without their last byte", server):
        for client in clients:
            send_all(client, integer(1_000_000) + bytes(999_000))
        assert is_admitted(server.zookeeper_port)


def test_greetings_that_are_not_finished(server, measured):
    """A client that has no session yet may send little."""
    with measured("1 MB in place of a greeting", server):
        connections = [socket.create_connection((LOOPBACK, server.zookeeper_port)) for _ in range(scaled(400, 1500))]
        for connection in connections:
            with contextlib.suppress(ConnectionError):
                connection.sendall(integer(1_000_000) + bytes(999_000))
        assert is_admitted(server.zookeeper_port)
    for connection in connections:
        connection.close()


def test_connections_that_once_carried_much(server, large, measured):
    clients = connect(server.zookeeper_port, scaled(300, 1500))
    with measured("connections that have carried 1 MB each", server):
        for client in clients:
            assert client.ask(EXISTS, text("/" + "x" * 900_000) + b"\0")[1] != 0
            client.send(GET, text(large) + b"\0")
            assert len(client.receive()[3].text()) == 900_000


def test_writes_without_end(server, client, measured):
    """A read waits until the writes before it are on disk, so the disk says how long the probe waits."""
    create_all(client, [f"/{i}" for i in range(20)])
    clients = connect(server.zookeeper_port, 4)
    sets = b"".join(frame(SET, text(f"/{i}") + text(bytes(900_000)) + integer(-1)) for i in range(20))
    with measured("writes without end", server, probe=2000):
        floods = [Flood(each, sets) for each in clients]
        for _ in range(scaled(5, 100)):
            client.ask(EXISTS, text("/0") + b"\0")
            time.sleep(0.05)
    assert len(floods) == len(clients)


def test_silent_connections(server, measured):
    """They may take all places; new clients come in again when they are hung up on."""
    with measured("2000 silent connections", server):
        silent = [socket.create_connection((LOOPBACK, server.zookeeper_port)) for _ in range(2000)]
        wait_for(lambda: is_admitted(server.zookeeper_port), "a new client has a session", 20)
    for connection in silent:
        connection.close()


def test_bytes_that_are_no_requests(server, measured):
    dice = random.Random(4711)
    with measured("malformed requests", server):
        for _ in range(scaled(300, 5000)):
            with contextlib.suppress(Closed):
                client = RawClient(server.zookeeper_port)
                send_all(client, malformed(dice))
                client.drop()
        assert is_admitted(server.zookeeper_port)


def malformed(dice: random.Random) -> bytes:
    body = dice.randbytes(dice.randrange(200))
    operation = dice.choice([CREATE, GET, SET, MULTI_READ, SET_WATCHES2, 14, dice.getrandbits(31)])
    return dice.choice([frame(operation, body), integer(dice.getrandbits(31)) + body, integer(-1) + body, body])


def test_requests_byte_by_byte(server, client, measured):
    clients = connect(server.zookeeper_port, 20)
    request = frame(GET, text("/" + "x" * scaled(1000, 20_000)) + b"\0")
    with measured("requests in pieces of one byte", server):
        for value in request:
            for each in clients:
                each.socket.send(bytes([value]))
        for each in clients:
            each.receive()


def test_a_deep_tree(server, client, measured):
    """Nothing recurses over it, least of all the end of the process."""
    levels = scaled(4_000, 10_000)
    paths = ["/a" * depth for depth in range(1, levels)]
    with measured("a tree of many levels", server):
        create_all(client, paths)
        client.ask(COUNT, text("/"))
