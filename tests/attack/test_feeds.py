"""What comes over ZeroMQ, and what goes to statsd."""
import contextlib
import json
import random
import socket
import threading

import pytest

from bounds import scaled
from publisher import Publisher
from services import LOOPBACK, wait_for


@pytest.fixture
def publisher():
    publisher = Publisher()
    yield publisher
    publisher.close()


def hostile_events(dice: random.Random) -> list[bytes]:
    names = ["..", "0" * 5000, "/nodepool/nodes", "\x1b[31mOWNED", "-1", "9" * 30]
    return [
        dice.randbytes(1000), b"onFinalized", b"onFinalized {", b"onFinalized " + b"[" * 100_000,
        b"onFinalized " + json.dumps({"name": "j" * 100_000, "build": {"node_name": dice.choice(names)}}).encode(),
        b"onFinalized " + json.dumps({"name": "unit", "build": [1], "url": None}).encode(),
        b"onFinalized " + json.dumps({"name": "unit", "build": {"node_name": dice.choice(names), "status": "FAILURE"}}).encode(),
    ]


def test_hostile_events(site, publisher, measured):
    launcher = site.start(zmq_publishers=[publisher.endpoint])
    site.tool("job-create", "unit", "--hold-on-failure", "5", check=True)
    tree = site.observer()
    held = tree.use(tree.add_request(["small"]))
    node_id = held[0][0]
    dice = random.Random(4711)
    with measured("hostile events", launcher):
        for _ in range(scaled(1500, 40_000)):
            for event in hostile_events(dice):
                publisher.raw(event)
        publisher.raw(bytes(20_000_000))
        wait_for(lambda: tree.children("/nodepool/jobs/holds") == [node_id] or publisher.send(
            "onFinalized", "unit", node_id, status="FAILURE"), "a real event is heard")


class HostilePublisher:
    """Accepts subscribers, and sends what is no ZeroMQ, or a frame of 2^62 bytes."""

    GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)

    def __init__(self):
        self.listener = socket.create_server((LOOPBACK, 0))
        self.port = self.listener.getsockname()[1]
        self.accepted = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self.listener.accept()[0]
                self.accepted += 1
                threading.Thread(target=self._answer, args=(connection, self.accepted), daemon=True).start()

    def _answer(self, connection: socket.socket, number: int):
        with connection, contextlib.suppress(OSError):
            ready = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"
            start = [self.GREETING + ready + b"\x02" + (1 << 62).to_bytes(8), b"HTTP/1.1 200 OK\r\n\r\n" * 100][number % 2]
            connection.sendall(start)
            for _ in range(20):
                connection.sendall(bytes(1_000_000))

    def close(self):
        self.listener.close()


def test_publishers_that_are_none(site, measured):
    publisher = HostilePublisher()
    try:
        launcher = site.start(zmq_publishers=[f"tcp://{LOOPBACK}:{publisher.port}"])
        with measured("ZeroMQ frames of 2^62 bytes", launcher):
            wait_for(lambda: publisher.accepted >= 4, "the launcher connects again", 60)
            tree = site.observer()
            tree.use(tree.add_request(["small"]))
    finally:
        publisher.close()


def test_names_in_metrics(site, statsd, measured):
    launcher = site.start()
    tree = site.observer()
    with measured("names made for statsd", launcher):
        for number in range(scaled(15, 100)):
            request = tree.add_request(["small"], requestor=f"r{number}\nevil:1|c\nevil" + "x" * 2000)
            tree.wait_request(request, "fulfilled")
            tree.zk.delete(f"/nodepool/requests/{request}")
        wait_for(lambda: statsd.lines("nodepool"), "metrics are sent")
        assert not statsd.lines("evil")
