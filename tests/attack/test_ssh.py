"""Hosts whose SSH servers stop in the middle of the key exchange."""
import contextlib
import os
import selectors
import socket
import struct
import threading

import pytest

from bounds import scaled
from nodepool_helpers import fake_provider
from services import free_port, wait_for

GREETING = b"SSH-2.0-OpenSSH_9.2\r\n"


def key_exchange_offer() -> bytes:
    """SSH_MSG_KEXINIT as OpenSSH sends it, in short."""
    lists = ["curve25519-sha256", "ssh-ed25519,rsa-sha2-512", *["aes128-ctr"] * 2, *["hmac-sha2-256"] * 2, *["none"] * 2, "", ""]
    payload = bytes([20]) + os.urandom(16)
    payload += b"".join(struct.pack(">I", len(names)) + names.encode() for names in lists) + bytes(5)
    padding = 8 - (5 + len(payload)) % 8 + 8
    return struct.pack(">IB", 1 + len(payload) + padding, padding) + payload + bytes(padding)


class HostileHosts:
    """One port at many loopback addresses. Each connection gets the same bytes, and nothing more."""

    def __init__(self, count: int, greeting: bytes):
        self.greeting = greeting
        self.port = free_port()
        self.addresses = [f"127.0.1.{number}" for number in range(1, count + 1)]
        self.listeners = [socket.create_server((address, self.port)) for address in self.addresses]
        self.connections = []
        self.is_to_end = threading.Event()
        self.thread = threading.Thread(target=self._accept)
        self.thread.start()

    def _accept(self):
        with selectors.DefaultSelector() as ready:
            for listener in self.listeners:
                ready.register(listener, selectors.EVENT_READ)
            while not self.is_to_end.is_set():
                for key, _ in ready.select(timeout=0.05):
                    connection, _ = key.fileobj.accept()
                    with contextlib.suppress(OSError):
                        connection.sendall(self.greeting)
                    self.connections.append(connection)

    def close(self):
        self.is_to_end.set()
        self.thread.join()
        for each in self.listeners + self.connections:
            each.close()


@pytest.mark.parametrize("name, greeting", [
    ("nothing", b""),
    ("a greeting", GREETING),
    ("a greeting and an offer", GREETING + key_exchange_offer()),
    ("lines before a greeting", b"no greeting yet\r\n" * 5000),
], ids=["silent", "greeting", "offer", "lines"])
def test_hosts_that_stop_talking(site, measured, name, greeting):
    hosts = HostileHosts(scaled(40, 100), greeting)
    try:
        nodes = [{"name": address, "connection-port": hosts.port, "labels": "metal", "username": "zuul"}
                 for address in hosts.addresses]
        metal = {"name": "metal", "driver": "static", "pools": [{"name": "main", "nodes": nodes}]}
        launcher = site.start(labels=[{"name": "small"}, {"name": "metal"}], providers=[fake_provider(), metal])
        with measured(f"SSH servers that send {name}, then no more", launcher):
            wait_for(lambda: len(hosts.connections) >= 8, "hosts are asked for their keys")
            tree = site.observer()
            tree.use(tree.add_request(["small"]))
    finally:
        hosts.close()
