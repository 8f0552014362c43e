#!/usr/bin/python3
"""How long lists of many nodes take: the launcher's web server and `nodepool list` (docs/performance.md).

Nodes stand in a private ZooKeeper as a launcher would have made them, held, so that nobody works on them.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(ROOT / "bench")]

from figures import Figures  # noqa: E402
from nodepool_helpers import BIN, Installation  # noqa: E402
from services import free_port, new_zookeeper, wait_for  # noqa: E402

STATES = ["hold"] * 9 + ["testing"]


def node(number: int) -> bytes:
    return json.dumps({
        "state": STATES[number % len(STATES)], "state_time": time.time() - number, "created_time": time.time() - number,
        "provider": f"cloud-{number % 20}", "pool": "main", "type": [f"label-{number % 7}"], "allocated_to": None,
        "external_id": f"6f1c0f4e-5a1d-4b60-9d7f-{number:012d}", "hostname": f"np{number:010d}", "az": "nova",
        "public_ipv4": f"203.0.{number // 250}.{number % 250}", "interface_ip": f"203.0.{number // 250}.{number % 250}",
        "connection_port": 22, "connection_type": "ssh", "username": "zuul", "launcher": "bench", "region": "one",
        "host_keys": ["ssh-ed25519 " + "A" * 68], "resources": {"cores": 8, "instances": 1, "ram": 8192},
        "user_data": None, "driver_data": None}).encode()


def add_nodes(tree, count: int):
    tree.zk.ensure_path("/nodepool/nodes")
    for first in range(0, count, 500):
        transaction = tree.zk.transaction()
        for number in range(first, min(first + 500, count)):
            transaction.create(f"/nodepool/nodes/{number:010d}", node(number))
        transaction.commit()


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has taken, with a resolution of nanoseconds."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(figures: Figures, what: str, action, cpu, repetitions: int):
    """What it takes, in time and in CPU as `cpu` reports it, and how much is answered."""
    times, cpus = [], []
    for _ in range(repetitions):
        time.sleep(1.1)  # an answer is given again for a second
        before, start = cpu(), time.monotonic()
        size = len(action())
        times.append((time.monotonic() - start) * 1000)
        cpus.append((cpu() - before) * 1000)
    figures.add(f"{what}; median", statistics.median(times), "ms")
    figures.add(f"{what}; least", min(times), "ms")
    figures.add(f"{what}; CPU, least", min(cpus), "ms")
    figures.add(f"{what}; answer", size / 1e6, "MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=15)
    Figures.add_option(parser)
    options = parser.parse_args()
    figures = Figures()
    folder = pathlib.Path(tempfile.mkdtemp())
    zookeeper = new_zookeeper(folder / "zookeeper").start()
    site = Installation(folder, zookeeper.hosts)
    try:
        port = free_port()
        config = site.config(webapp={"listen_address": "127.0.0.1", "port": port})
        add_nodes(site.observer(), options.nodes)
        launcher = site.launcher(config, seconds_between_sweeps=60)

        def fetch(path, accept):
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": accept})
            return urllib.request.urlopen(request, timeout=60).read()

        wait_for(lambda: len(json.loads(fetch("/api/v1/nodes", "*/*"))["nodes"]) == options.nodes, "all nodes", 60)
        print(f"{options.nodes} nodes, load {os.getloadavg()[0]:.1f}, {BIN}")
        for path, accept in [("/api/v1/nodes", "application/json"), ("/api/v1/nodes?provider=cloud-3", "application/json"),
                             ("/api/v1/providers", "application/json"), ("/node-list", "application/json"),
                             ("/node-list", "text/plain")]:
            measure(figures, f"{path} {accept.split('/')[1]}", lambda: fetch(path, accept), lambda: cpu_of(launcher.child.pid),
                    options.repetitions)
        for words in (["list"], ["list", "--detail"], ["list", "--json"], ["list", "--provider", "cloud-3"]):
            command = [BIN / "nodepool", "-c", config, *words]
            measure(figures, "nodepool " + " ".join(words), lambda: subprocess.run(command, check=True, capture_output=True).stdout,
                    cpu_of_children, options.repetitions)
        print(f"load {os.getloadavg()[0]:.1f} at the end")
        figures.write(options.figures)
    finally:
        site.stop()
        zookeeper.stop()


if __name__ == "__main__":
    main()
