#!/usr/bin/python3
"""One launcher, then several, in an installation of 100,000 nodes and 20,000 waiting requests over 200 pools (docs/scale.md).

Measures start-up, memory, what an event costs and what lists cost, beside the same launcher in an empty tree. Needs Debian's
zookeeper, a quarter of an hour, and 4 GB of memory, 10 with --servers 3.
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

import yaml
from kazoo.client import KazooClient

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(ROOT / "bench")]

import scale_site  # noqa: E402
from figures import Figures  # noqa: E402
from services import BIN, Process, ZooKeeper, free_port, start_ensemble, wait_for  # noqa: E402

RATE = 20  # requests a second, of the steady load
REPETITIONS = 5
SWEEP = 10  # seconds between sweeps, when they are measured
NEVER = 3600
HEAP = "3g"
LISTS = [("/api/v1/nodes", "*/*"), ("/api/v1/nodes?limit=100", "*/*"), ("/api/v1/nodes?limit=100&after=0000050000", "*/*"),
         ("/api/v1/nodes?provider=cloud-3", "*/*"), ("/api/v1/nodes?state=hold&limit=100", "*/*"),
         ("/api/v1/requests?limit=100", "*/*"), ("/api/v1/requests", "*/*"), ("/api/v1/providers", "*/*"),
         ("/node-list", "application/json"), ("/node-list", "text/plain"), ("/node-list?limit=100", "text/plain"), ("/metrics", "*/*")]
COMPRESSED = ["/api/v1/nodes", "/api/v1/requests", "/node-list"]
COMMANDS = [["list"], ["list", "--json"], ["list", "--provider", "cloud-3"], ["request-list"], ["status"]]


def megabytes(pid: int, key: str = "VmRSS") -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{key}:")[1].split()[0]) / 1024


class Launcher:
    """A launcher with its web server."""

    def __init__(self, folder: pathlib.Path, hosts: str, pools: int, name: str, sweep: float = NEVER):
        self.port = free_port()
        self.config = folder / f"{name}.yaml"
        self.config.write_text(yaml.safe_dump(scale_site.configuration(hosts, pools, self.port)))
        self.begun = time.monotonic()
        self.process = Process([BIN / "nodepool-launcher", "-d", "-c", self.config, "--cleanup-interval", sweep],
                               folder / f"{name}.log")

    def fetch(self, path: str, accept: str = "*/*", coding: str = "identity") -> bytes:
        headers = {"Accept": accept, "Accept-Encoding": coding}
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        return urllib.request.urlopen(asked, timeout=120).read()

    def is_ready(self) -> bool:
        """Every provider can be used, and the records are read."""
        if not self.process.is_running():
            raise AssertionError(f"the launcher ended:\n{self.process.output()[-4000:]}")
        try:
            self.fetch("/ready")
            return bool(self.fetch("/api/v1/nodes?limit=1"))
        except OSError:
            return False

    def wait_ready(self) -> float:
        """Seconds since its start."""
        wait_for(self.is_ready, "the launcher is ready", 600, pause=0.02)
        return time.monotonic() - self.begun

    def cpu(self) -> float:
        """Seconds, of all its threads."""
        return sum(int(task.read_text().split()[0]) for task in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")) / 1e9

    def megabytes(self, key: str = "VmRSS") -> float:
        return megabytes(self.process.pid, key)


class Scale:
    def __init__(self, folder: pathlib.Path, options, figures: Figures):
        self.folder, self.options, self.figures = folder, options, figures
        self.servers = start_ensemble(folder, options.servers, HEAP) if options.servers > 1 else \
            [ZooKeeper(folder / "zookeeper", heap=HEAP).start()]
        self.hosts = ",".join(server.hosts for server in self.servers)
        self.zk = KazooClient(self.hosts, timeout=60)
        self.zk.start(30)
        self.launchers: list[Launcher] = []

    def stop(self):
        self.stop_launchers()
        self.zk.stop()
        self.zk.close()
        for server in self.servers:
            server.stop()

    def launcher(self, name: str, chroot: str = "", sweep: float = NEVER) -> Launcher:
        self.launchers.append(Launcher(self.folder, self.hosts + chroot, self.options.pools, name, sweep))
        return self.launchers[-1]

    def stop_launchers(self):
        for launcher in self.launchers:
            launcher.process.stop()
        self.launchers.clear()

    def empty_megabytes(self) -> float:
        self.zk.ensure_path("/empty")
        launcher = self.launcher("empty", "/empty")
        self.figures.add("an empty launcher; start-up", launcher.wait_ready(), "s")
        self.figures.add("an empty launcher; memory", launcher.megabytes(), "MB")
        found = launcher.megabytes()
        self.stop_launchers()
        return found

    def furnish(self):
        begin = time.monotonic()
        scale_site.furnish(self.zk, self.options.nodes, self.options.requests, self.options.pools)
        print(f"{self.options.nodes} nodes and {self.options.requests} requests written in {time.monotonic() - begin:.0f} s", flush=True)
        self.figures.add("ZooKeeper; memory of a server", max(megabytes(server.process.pid) for server in self.servers), "MB")

    def start(self, number: int, empty: float):
        what = f"launcher {number}"
        launcher = self.launcher(f"launcher-{number}")
        self.figures.add(f"{what}; start-up", launcher.wait_ready(), "s")
        self.figures.add(f"{what}; start-up, CPU", launcher.cpu(), "s")
        self.figures.add(f"{what}; memory", launcher.megabytes(), "MB")
        self.figures.add(f"{what}; memory, peak", launcher.megabytes("VmHWM"), "MB")
        records = self.options.nodes + self.options.requests / 3  # a request is a third of a node
        self.figures.add(f"{what}; memory per node", (launcher.megabytes() - empty) * 1024 / records, "KiB")

    def cpu(self) -> float:
        return sum(launcher.cpu() for launcher in self.launchers)

    def sweeps(self):
        """After the second one, which logs the machines that it misses: here all that nodes are in use on."""
        launcher = self.launcher("sweeping", sweep=SWEEP)
        launcher.wait_ready()
        time.sleep(3 * SWEEP)
        before, begin = launcher.cpu(), time.monotonic()
        time.sleep(4 * SWEEP)
        passed = time.monotonic() - begin
        self.figures.add("launcher 1; CPU of a sweep", (launcher.cpu() - before) / passed * SWEEP, "s")
        self.stop_launchers()

    def used(self, action) -> float:
        """CPU of all launchers during the action, without what they use when idle."""
        before, begin = self.cpu(), time.monotonic()
        action()
        passed = time.monotonic() - begin
        return self.cpu() - before - self.idle_share * passed

    def idle(self):
        """Between sweeps."""
        time.sleep(5)  # of work after the start
        before, begin = self.cpu(), time.monotonic()
        time.sleep(self.options.seconds)
        self.idle_share = (self.cpu() - before) / (time.monotonic() - begin)
        self.figures.add(f"{len(self.launchers)} launchers, idle; CPU of each", 100 * self.idle_share / len(self.launchers), "%")

    def steady(self):
        """Requests for one node, used and given back."""
        seconds = self.options.seconds
        lines = []

        def load():
            words = [BIN / "soak_client", "--port", self.servers[0].port, "--seconds", seconds, "--rate", RATE,
                     "--label", scale_site.LOAD_LABEL]
            lines.append(subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout)

        used = self.used(load)
        _, count, failed, median, high, _ = (float(word) for word in lines[0].split())
        what = f"{len(self.launchers)} launchers, {RATE} requests per second"
        self.figures.add(f"{what}; failed", failed)
        self.figures.add(f"{what}; fulfilled, p50", median, "ms")
        self.figures.add(f"{what}; fulfilled, p99", high, "ms")
        self.figures.add(f"{what}; CPU per request, of all launchers", 1e3 * used / count, "ms")

    def changes(self):
        """A held node's record is written again and again."""
        held = [number for number in range(self.options.nodes) if number % 10 == 9][:1000]
        count = self.options.seconds * 100

        def change():
            begin = time.monotonic()
            for index in range(count):
                number = held[index % len(held)]
                record = {**scale_site.node(number, self.options.pools)[0], "comment": f"change {index}"}
                self.zk.set_async(f"/nodepool/nodes/{number:010d}", json.dumps(record).encode())
                if (ahead := index / 100 - (time.monotonic() - begin)) > 0:
                    time.sleep(ahead)
            time.sleep(1)  # until all have heard of it

        used = self.used(change)
        what = f"{len(self.launchers)} launchers, 100 changes per second"
        self.figures.add(f"{what}; CPU per change and launcher", 1e6 * used / count / len(self.launchers), "µs")

    def measure_list(self, what: str, action, cpu):
        times, cpus, size = [], [], 0
        for _ in range(self.options.repetitions):
            time.sleep(1.1)  # an answer is given again for a second
            before, begin = cpu(), time.monotonic()
            size = len(action())
            times.append(1e3 * (time.monotonic() - begin))
            cpus.append(1e3 * (cpu() - before))
        self.figures.add(f"{what}; median", statistics.median(times), "ms")
        self.figures.add(f"{what}; CPU, least", min(cpus), "ms")
        self.figures.add(f"{what}; answer", size / 1e6, "MB")

    def lists(self):
        first = self.launchers[0]
        for path, accept in LISTS:
            name = path + ("" if accept == "*/*" else f" as {accept.split('/')[1]}")
            self.measure_list(name, lambda: first.fetch(path, accept), first.cpu)
        for path in COMPRESSED:
            self.measure_list(f"{path}, compressed", lambda: first.fetch(path, "application/json", "gzip"), first.cpu)
        self.figures.add("after the lists; memory", first.megabytes(), "MB")

        def of_children() -> float:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime

        for words in COMMANDS:
            command = [str(BIN / "nodepool"), "-c", str(first.config), *words]
            self.measure_list("nodepool " + " ".join(words),
                              lambda: subprocess.run(command, check=True, capture_output=True).stdout, of_children)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--pools", type=int, default=200, help="a multiple of 20")
    parser.add_argument("--launchers", type=int, default=3)
    parser.add_argument("--servers", type=int, default=1, help="of ZooKeeper; several are an ensemble")
    parser.add_argument("--seconds", type=int, default=20, help="of each load")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="of each list")
    Figures.add_option(parser)
    options = parser.parse_args()
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="nodepool-scale-") as name:
        scale = Scale(pathlib.Path(name), options, figures)
        try:
            print(f"load {os.getloadavg()[0]:.1f}, {BIN}", flush=True)
            empty = scale.empty_megabytes()
            scale.furnish()
            scale.sweeps()
            for number in range(1, options.launchers + 1):
                scale.start(number, empty)
                if number in (1, options.launchers):
                    scale.idle()
                    scale.steady()
                    scale.changes()
                if number == 1:
                    scale.lists()
            print(f"load {os.getloadavg()[0]:.1f} at the end")
            figures.write(options.figures)
        finally:
            scale.stop()


if __name__ == "__main__":
    main()
