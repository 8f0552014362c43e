#!/usr/bin/python3
"""How long a client waits for a node: over HTTP, and by ZooKeeper as Zuul does (docs/performance.md).

One launcher with a simulated cloud that launches in 0.05 s, and a ZooKeeper server of its own; one request after the
other, each given back before the next. The keeper of leases is elected before.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(ROOT / "bench")]

from figures import Figures  # noqa: E402
from lease_client import LeaseSite  # noqa: E402
from nodepool_helpers import Installation, fake_provider  # noqa: E402
from services import EmbeddedZooKeeper, wait_for  # noqa: E402


def over_http(client, tree) -> tuple[float, float]:
    """Seconds from the creation until the node is held, and from the return until the lease is gone."""
    begin = time.monotonic()
    lease = client.make()
    client.held(lease)
    held = time.monotonic()
    gone = threading.Event()
    there = tree.zk.exists(f"/nodepool/leases/{lease}", watch=lambda event: gone.set())
    assert there is not None
    returned = time.monotonic()
    assert client.end(lease).status == 204
    assert gone.wait(30), "the lease is not gone"
    return held - begin, time.monotonic() - returned


def by_zookeeper(tree) -> float:
    """Seconds from the creation until the node is locked and in use."""
    begin = time.monotonic()
    request = tree.add_request(["small"])
    path = f"/nodepool/requests/{request}"
    while tree.request(request)["state"] != "fulfilled":
        changed = threading.Event()
        tree.zk.get(path, watch=lambda event, changed=changed: changed.set())
        if tree.request(request)["state"] != "fulfilled":
            assert changed.wait(30), "the request is not served"
    held = tree.use(request)
    taken = time.monotonic() - begin
    tree.give_back(held)
    return taken


def measure(site, count: int, figures: Figures):
    leases = LeaseSite(site, providers=[fake_provider()])
    leases.token("bench", "--scope", "request")
    leases.start()
    client, tree = leases.client("bench"), site.observer()
    kept = client.make(lease=3600)
    client.held(kept)
    wait_for(leases.keeper, "there is a keeper", 30)

    def is_quiet():
        return len(tree.nodes()) == 1

    times, returns, direct = [], [], []
    for _ in range(count):  # by turns, so that both meet the same machine
        wait_for(is_quiet, "the other nodes are deleted", 30)
        taken, returned = over_http(client, tree)
        times.append(taken)
        returns.append(returned)
        wait_for(is_quiet, "the other nodes are deleted", 30)
        direct.append(by_zookeeper(tree))
    for name, values in (("created to held over HTTP", times), ("created to in use by ZooKeeper", direct),
                         ("DELETE to the end of the lease", returns)):
        figures.add(f"{name}, p50", statistics.median(values) * 1000, "ms")
        figures.add(f"{name}, longest", max(values) * 1000, "ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50)
    Figures.add_option(parser)
    options = parser.parse_args()
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        zookeeper = EmbeddedZooKeeper(folder / "zookeeper").start()
        site = Installation(folder, zookeeper.hosts)
        try:
            measure(site, options.requests, figures)
        finally:
            site.stop()
            zookeeper.stop()
    figures.write(options.figures)


if __name__ == "__main__":
    main()
