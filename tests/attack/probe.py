#!/usr/bin/python3
"""probe.py ZOOKEEPER_PORT WEB_PORT [AUTHORITY]: asks both every 20 ms, over connections of its own (port 0: there is none).
The web server has TLS, with a certificate for localhost, if the authority that signed it is given.

Prints a line after the first answers, and when its input ends the longest time in ms that an answer took. A
connection that ends is replaced; the time until the next answer counts.
"""
import pathlib
import socket
import ssl
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from zk_raw import EXISTS, Closed, RawClient, text  # noqa: E402

INTERVAL = 0.02
LONGEST_WAIT = 120


class ZooKeeperProbe:
    def __init__(self, port: int):
        self.port = port
        self.client = None

    def ask(self):
        try:
            if self.client is None:
                self.client = RawClient(self.port)
                self.client.socket.settimeout(LONGEST_WAIT)
            self.client.ask(EXISTS, text("/") + b"\0")
        except (Closed, OSError):
            self.client = None
            raise


class WebProbe:
    def __init__(self, port: int, authority: str | None):
        self.port = port
        self.tls = ssl.create_default_context(cafile=authority) if authority else None

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=LONGEST_WAIT)
        return self.tls.wrap_socket(connection, server_hostname="localhost") if self.tls else connection

    def ask(self):
        with self.connect() as connection:
            connection.sendall(b"GET /ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
            if not answer.startswith(b"HTTP/1.1 "):
                raise ConnectionError("no answer")


class Rounds(threading.Thread):
    """Asks until it is to end; an answer that is due then is waited for."""

    def __init__(self, probe):
        super().__init__()
        self.probe = probe
        self.is_to_end = threading.Event()
        self.was_answered = threading.Event()
        self.longest = 0.0

    def run(self):
        since = time.monotonic()
        while True:
            try:
                self.probe.ask()
                self.was_answered.set()
                is_answered = True
            except (Closed, OSError):
                is_answered = False
            self.longest = max(self.longest, time.monotonic() - since)
            if self.is_to_end.wait(INTERVAL):
                return
            if is_answered:
                since = time.monotonic()


def main():
    zookeeper, web = map(int, sys.argv[1:3])
    authority = sys.argv[3] if len(sys.argv) > 3 else None
    probes = [ZooKeeperProbe(zookeeper)] if zookeeper else []
    probes += [WebProbe(web, authority)] if web else []
    rounds = [Rounds(probe) for probe in probes]
    for each in rounds:
        each.start()
    for each in rounds:
        each.was_answered.wait()
    print("begun", flush=True)
    sys.stdin.read()
    for each in rounds:
        each.is_to_end.set()
    for each in rounds:
        each.join()
    print(max(each.longest for each in rounds) * 1000, flush=True)


main()
