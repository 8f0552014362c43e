#!/usr/bin/python3
"""One launcher with many static hosts and many slots of metastatic nodes.

Prints how long registering takes, what the launcher needs, and what a change of its configuration
costs (docs/performance.md). Needs Debian's zookeeper.
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(ROOT / "bench")]

from figures import Figures  # noqa: E402
from nodepool_helpers import Installation, fake_provider  # noqa: E402
from services import ZooKeeper, wait_for  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


class Meter:
    """What a process has used."""

    def __init__(self, pid: int):
        self.pid = pid

    def cpu(self) -> float:
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> float:
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Bench:
    def __init__(self, site: Installation, count: int, slots: int):
        self.figures = Figures()
        self.site, self.count, self.slots = site, count, slots
        self.tree = site.tree()
        self.meter = None

    def measure(self, what: str, begin, is_done, seconds: float = 600):
        start, cpu = time.monotonic(), self.meter.cpu() if self.meter else 0.0
        begin()
        wait_for(is_done, what, seconds, pause=0.02)
        took = time.monotonic() - start
        self.figures.add(f"{what}; time", took, "s")
        self.figures.add(f"{what}; launcher's CPU", self.meter.cpu() - cpu, "s")
        self.figures.add(f"{what}; its memory", self.meter.memory(), "MiB")

    def hosts(self, count: int, **more) -> dict:
        nodes = [{"name": f"127.1.{i // 250}.{i % 250 + 1}", "labels": ["metal"], "host-key-checking": False, **more}
                 for i in range(count)]
        return {"name": "hosts", "driver": "static", "pools": [{"name": "main", "nodes": nodes}]}

    def count_nodes(self) -> int:
        return self.tree.zk.get("/nodepool/nodes")[1].children_count if self.tree.zk.exists("/nodepool/nodes") else 0

    def start(self, config):
        launcher = self.site.launcher(config, wait=False)
        self.meter = Meter(launcher.pid)
        return launcher

    def static(self):
        count = self.count
        labels = [{"name": "metal"}]
        config = self.site.config(labels=labels, providers=[self.hosts(count)])
        launcher = None

        def begin():
            nonlocal launcher
            launcher = self.start(config)

        self.measure(f"{count} static hosts registered", begin, lambda: self.count_nodes() >= count)
        self.measure("one host more", lambda: self.site.config(labels=labels, providers=[self.hosts(count + 1)]),
                     lambda: self.count_nodes() >= count + 1)
        last = sorted(self.tree.children("/nodepool/nodes"))[-1]
        self.measure("a setting of every host",
                     lambda: self.site.config(labels=labels, providers=[self.hosts(count + 1, **{"shell-type": "sh"})]),
                     lambda: all(node["shell_type"] == "sh" for node in self.tree.nodes().values()) and last)
        launcher.stop()
        self.meter = None
        self.measure("restart with all of them", lambda: self.start(config),
                     lambda: len(self.tree.components("pool")) == 1 and self.count_nodes() == count + 1)
        self.site.started[-1].stop()
        self.meter = None
        for node in self.tree.children("/nodepool/nodes"):
            self.tree.zk.delete(f"/nodepool/nodes/{node}", recursive=True)

    def metastatic(self):
        count = self.count
        labels = [{"name": "backing"}, {"name": "user"}]
        cloud = fake_provider(labels=["backing"], simulation={"limits": {"cores": -1, "instances": -1, "ram": -1}})
        meta = {"name": "slots", "driver": "metastatic", "pools": [{"name": "main", "labels": [
            {"name": "user", "backing-label": "backing", "max-parallel-jobs": self.slots, "grace-time": 5}]}]}
        config = self.site.config(labels=labels, providers=[cloud, meta])
        self.start(config)
        wait_for(lambda: len(self.tree.components("pool")) == 2, "the launcher is up")
        requests = []

        def ask():
            requests.extend(self.tree.add_request(["user"], ephemeral=False) for _ in range(count))

        def are_fulfilled():
            return self.tree.request(requests[-1])["state"] == "fulfilled" and all(
                self.tree.request(request)["state"] == "fulfilled" for request in requests)

        self.measure(f"{count} requests for slots of {self.slots} fulfilled", ask, are_fulfilled)

        def change():
            meta["pools"][0]["labels"][0]["grace-time"] = 6
            self.site.config(labels=labels, providers=[cloud, meta])

        log = self.site.started[-1]
        self.measure("a setting of the metastatic provider", change,
                     lambda: "The configuration of provider slots changed" in log.output())
        held = {request: self.tree.request(request)["nodes"][0] for request in requests}

        def give_back():
            for request, node in held.items():
                self.tree.change_node(node, state="used")
                self.tree.zk.delete(f"/nodepool/requests/{request}")

        self.measure("all given back, and the backing nodes gone", give_back, lambda: self.count_nodes() == 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="hosts, and slots")
    parser.add_argument("--slots", type=int, default=8, help="of each backing node")
    Figures.add_option(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = ZooKeeper(pathlib.Path(folder) / "zookeeper").start()
        site = Installation(pathlib.Path(folder), server.hosts)
        site.settings["zookeeper-timeout"] = 30.0
        try:
            bench = Bench(site, options.count, options.slots)
            bench.static()
            bench.metastatic()
            bench.figures.write(options.figures)
        finally:
            site.stop()
            server.stop()


main()
