#!/usr/bin/python3
"""What streams of events cost the launcher: CPU, memory and delay with many clients and many changes.

The nodes are in a private ZooKeeper, held, so that no launcher works on them; each change writes the time into one.
"""
import argparse
import json
import pathlib
import re
import resource
import selectors
import socket
import statistics
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

from lists_load import cpu_of  # noqa: E402
from nodepool_helpers import Installation  # noqa: E402
from services import free_port, new_zookeeper, wait_for  # noqa: E402
from web_client import get  # noqa: E402

WATCHED = 20  # clients whose events are read; of the others only the bytes are counted
WRITTEN = re.compile(rb'"comment":"at ([\d.]+)"')


def megabytes(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


class Clients:
    """Streams that a thread reads."""

    def __init__(self, port: int, count: int):
        self.selector = selectors.DefaultSelector()
        self.delays: list[float] = []
        self.bytes = 0
        self.lost = 0
        self.is_ended = False
        for number in range(count):
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(b"GET /api/v1/events?topics=nodes HTTP/1.1\r\nHost: x\r\n\r\n")
            client.setblocking(False)
            self.selector.register(client, selectors.EVENT_READ, number < WATCHED)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        while not self.is_ended:
            for key, _ in self.selector.select(0.5):
                part = key.fileobj.recv(1 << 16)
                now = time.time()
                self.bytes += len(part)
                if not part:
                    self.lost += 1
                    self.selector.unregister(key.fileobj)
                elif key.data:
                    self.delays += [now - float(written) for written in WRITTEN.findall(part)]

    def close(self):
        self.is_ended = True
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()


def change(tree, ids: list[str], rate: int, seconds: float) -> int:
    """Changes nodes in turn, so many in a second; returns how many."""
    records = {node: tree.node(node) for node in ids}
    begin = time.monotonic()
    count = 0
    while (passed := time.monotonic() - begin) < seconds:
        while count < passed * rate:
            node = ids[count % len(ids)]
            record = {**records[node], "comment": f"at {time.time():.6f}"}
            tree.zk.set_async(f"/nodepool/nodes/{node}", json.dumps(record).encode())
            count += 1
        time.sleep(0.002)
    return count


def measure(site, port: int, pid: int, count: int, rate: int, seconds: float):
    tree = site.tree()
    ids = sorted(tree.nodes())
    change(tree, ids, rate, 1)
    clients = Clients(port, count)
    time.sleep(2)
    clients.delays.clear()
    clients.bytes = 0
    before = cpu_of(pid)
    begin = time.monotonic()
    changes = change(tree, ids, rate, seconds)
    passed = time.monotonic() - begin
    cpu = (cpu_of(pid) - before) / passed
    memory = megabytes(pid)
    wait_for(lambda: len(clients.delays) >= min(count, WATCHED) * changes * 0.9 or count == 0, "events arrive", 30)
    delays = sorted(clients.delays) or [0]
    print(f"{count:5} clients, {changes / passed:4.0f} changes/s: launcher {100 * cpu:5.1f} % CPU, {memory:4.0f} MB; "
          f"{clients.bytes / passed / 1e6:5.1f} MB/s; delay ms median {1000 * statistics.median(delays):4.0f}, "
          f"p99 {1000 * delays[int(len(delays) * 0.99)]:4.0f}, max {1000 * delays[-1]:4.0f}; lost {clients.lost}", flush=True)
    clients.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, nargs="+", default=[0, 100, 1000])
    parser.add_argument("--changes", type=int, default=200, help="in a second")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--nodes", type=int, default=1000)
    options = parser.parse_args()
    limit = max(options.clients) + 1000
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, max(limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        zookeeper = new_zookeeper(folder / "zookeeper").start()
        site = Installation(folder, zookeeper.hosts)
        try:
            port = free_port()
            launcher = site.launcher(site.config(webapp={"listen_address": "127.0.0.1", "port": port}))
            tree = site.tree()
            for _ in range(options.nodes):
                tree.add_node(state="hold", provider="elsewhere", hold_expiration=0, hostname="host", comment="")
            wait_for(lambda: get(port, "/api/v1/nodes")[2].count('"id"') >= options.nodes, "the nodes are known", 60)
            for count in options.clients:
                measure(site, port, launcher.pid, count, options.changes, options.seconds)
        finally:
            site.stop()
            zookeeper.stop()


if __name__ == "__main__":
    main()
