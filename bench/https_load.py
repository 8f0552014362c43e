#!/usr/bin/python3
"""What HTTPS costs the launcher: CPU for a request and for a new connection, and memory for a stream.

The launcher has a simulated cloud and a ZooKeeper of its own. NODEPOOL_BIN chooses the programs, so two builds can be compared.

    bench/https_load.py                   # plain HTTP, and certificates of several kinds
    bench/https_load.py --kinds plain     # the first line alone
"""
import argparse
import http.client
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

from lists_load import cpu_of  # noqa: E402
from nodepool_helpers import BIN, Installation  # noqa: E402
from page_streams import megabytes  # noqa: E402
from services import free_port, new_zookeeper, wait_for  # noqa: E402
from sse_client import EventStream  # noqa: E402
from web_client import first_answer, web_config  # noqa: E402
from web_tls import WebTls  # noqa: E402

KINDS = ["plain", "ec", "rsa:2048", "rsa:4096"]


class Server:
    def __init__(self, site, kind: str, folder: pathlib.Path):
        self.port = free_port()
        tls = None if kind == "plain" else WebTls(folder / kind.replace(":", "-"), kind)
        self.tls = tls and tls.client()
        self.launcher = site.launcher(web_config(site, self.port, tls) if tls else web_config(site, self.port),
                                      seconds_between_sweeps=60, name=kind.replace(":", "-"))
        wait_for(lambda: first_answer(self.port, "/ready", self.tls)[0] == 200, "it is ready")

    @property
    def pid(self) -> int:
        return self.launcher.child.pid

    def connect(self) -> http.client.HTTPConnection:
        if self.tls:
            return http.client.HTTPSConnection("localhost", self.port, context=self.tls, timeout=60)
        return http.client.HTTPConnection("localhost", self.port, timeout=60)

    def cost(self, action, count: int) -> tuple[float, float]:
        """CPU of the launcher in µs, and seconds, for each of so many actions."""
        cpu, begin = cpu_of(self.pid), time.monotonic()
        for _ in range(count):
            action()
        return (cpu_of(self.pid) - cpu) / count * 1e6, (time.monotonic() - begin) / count

    def request_cost(self, count: int) -> float:
        """Of a request on a connection that stays open."""
        connection = self.connect()

        def ask():
            connection.request("GET", "/ready")
            connection.getresponse().read()

        ask()
        cost = self.cost(ask, count)[0]
        connection.close()
        return cost

    def connection_cost(self, count: int) -> tuple[float, float]:
        """Of a connection without a request; the next one begins when the handshake is done."""
        def connect():
            connection = self.connect()
            connection.connect()
            connection.close()

        return self.cost(connect, count)

    def stream_memory(self, count: int) -> float:
        """KiB for each of so many streams of events."""
        before = megabytes(self.pid)
        streams = [EventStream(self.port, "/api/v1/events?topics=samples", tls=self.tls) for _ in range(count)]
        grown = megabytes(self.pid) - before
        for stream in streams:
            stream.close()
        return grown / count * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--connections", type=int, default=300)
    parser.add_argument("--streams", type=int, default=300)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        zookeeper = new_zookeeper(folder / "zookeeper").start()
        print(f"load {os.getloadavg()[0]:.1f}, {BIN}; medians of {options.repetitions} runs")
        print("certificate   CPU for a request   for a connection   connections per second, one after another   memory for a stream")
        try:
            for kind in options.kinds:
                site = Installation(folder, zookeeper.hosts)
                server = Server(site, kind, folder)
                requests = statistics.median(server.request_cost(options.requests) for _ in range(options.repetitions))
                made = [server.connection_cost(options.connections) for _ in range(options.repetitions)]
                cpu, seconds = (statistics.median(column) for column in zip(*made))
                memory = server.stream_memory(options.streams)
                print(f"{kind:13} {requests:14.0f} µs {cpu:15.0f} µs {1 / seconds:40.0f} {memory:21.0f} KiB", flush=True)
                site.stop()
        finally:
            zookeeper.stop()


if __name__ == "__main__":
    main()
