#!/usr/bin/python3
"""Leases that are renewed while the keeper's launcher is killed again and again.

Two launchers with a simulated cloud and a ZooKeeper server of their own. Ends with status 1 if a lease is lost, a node
is given twice or leaks, or expired leases come back late.

    bench/leases.py                       # 2000 leases, 30 kills
    bench/leases.py --leases 200 --kills 5 --lease-seconds 60
"""
import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

from lease_client import LeaseSite, assert_consistent  # noqa: E402
from nodepool_helpers import Installation, fake_provider  # noqa: E402
from services import EmbeddedZooKeeper, wait_for  # noqa: E402

WORKERS = 8


def cloud() -> dict:
    """Each launcher has its own, which ends with it: in use, nodes need no machine here."""
    return fake_provider(simulation={"create-latency": 0, "limits": {"instances": -1, "cores": -1, "ram": -1}})


class Renewals:
    """Renews every lease once in each period, from several threads."""

    def __init__(self, leases, period: float):
        self.leases, self.period = leases, period
        self.failures, self.latencies, self.retries = [], [], 0
        self.is_over = False

    def run(self, client, mine):
        while not self.is_over:
            start = time.monotonic()
            for lease in mine:
                self.renew(client, lease)
                if self.is_over:
                    return
            time.sleep(max(0.0, self.period - (time.monotonic() - start)))

    def renew(self, client, lease):
        begin = time.monotonic()
        while not self.is_over:
            try:
                answer = client.renew(lease)
            except OSError:
                answer = None
            if answer is not None and answer.status == 200:
                self.latencies.append(time.monotonic() - begin)
                return
            if answer is not None and answer.status in (404, 409):
                self.failures.append((lease, answer.status, answer.text))
                return
            self.retries += 1  # no launcher serves
            time.sleep(0.1)


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))] if values else float("nan")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leases", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--lease-seconds", type=int, default=300)
    parser.add_argument("--period", type=float, default=30, help="seconds between renewals of a lease")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        zookeeper = EmbeddedZooKeeper(folder / "zookeeper").start()
        site = Installation(folder, zookeeper.hosts)
        try:
            return measure(site, options)
        finally:
            site.stop()
            zookeeper.stop()


def measure(site, options) -> int:
    leases = LeaseSite(site, providers=[cloud()])
    leases.seconds_between_sweeps = 60
    leases.token("bench", "--scope", "request")
    leases.start()
    leases.start()
    tree = site.observer()
    begin = time.monotonic()
    pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
    names = list(pool.map(lambda _: leases.client("bench").make(lease=options.lease_seconds), range(options.leases)))
    made = time.monotonic() - begin
    renewals = Renewals(names, options.period)
    ports = list(leases.launchers)
    for worker in range(WORKERS):
        client = leases.client("bench")
        client.ports = ports if worker % 2 else ports[::-1]
        pool.submit(renewals.run, client, names[worker::WORKERS])

    def states():
        records = [tree.record(f"/nodepool/leases/{name}") for name in names]
        return [record["state"] if record else "gone" for record in records]

    wait_for(lambda: set(states()) == {"held"}, "every lease is held", 300)
    print(f"{options.leases} leases made in {made:.1f} s, held after {time.monotonic() - begin:.1f} s", flush=True)

    takeovers = []
    for _ in range(options.kills):
        killed = leases.kill_keeper()
        start = time.monotonic()
        leases.start(killed)
        wait_for(lambda: leases.keeper(), "another keeper", 30)
        takeovers.append(time.monotonic() - start)
    renewals_while = len(renewals.latencies)
    assert not renewals.failures, renewals.failures[:3]
    assert set(states()) == {"held"}
    assert_consistent(tree)
    print(f"another launcher keeps {percentile(takeovers, .5):.1f} s after a kill (median)", flush=True)
    print(f"{options.kills} kills: no lease lost, no node given twice, none leaked; {renewals_while} renewals, "
          f"median {percentile(renewals.latencies, .5) * 1000:.1f} ms, 99 % {percentile(renewals.latencies, .99) * 1000:.1f} ms, "
          f"{renewals.retries} repeated", flush=True)

    renewals.is_over = True
    pool.shutdown(wait=True)
    client = leases.client("bench")
    lapsing = client.make(lease=30)
    client.held(lapsing)
    client.renew(lapsing)
    last = time.monotonic()
    wait_for(lambda: tree.record(f"/nodepool/leases/{lapsing}") is None, "a lease expires", 60)
    late = time.monotonic() - last - 30
    print(f"an expired lease is back {late:.2f} s after its end", flush=True)
    begin = time.monotonic()
    for name in names:
        assert client.end(name).status == 204
    ended = time.monotonic() - begin
    wait_for(lambda: not tree.children("/nodepool/leases") and not tree.nodes(), "everything is deleted", 300)
    print(f"all leases ended in {ended:.1f} s; no node is left {time.monotonic() - begin:.1f} s after the first", flush=True)
    return 0 if late < 2 else 1


if __name__ == "__main__":
    sys.exit(main())
