#!/usr/bin/python3
"""The time line of a node from its request to the fulfilment, beside the time that its cloud took.

    bench/boot_to_job.py aws DIR          a counterpart of AWS: DIR holds aws-up and aws-down
    bench/boot_to_job.py kubernetes DIR   a real API server: DIR holds kubernetes-up and kubernetes-down
    bench/boot_to_job.py libvirt DIR      a real libvirt (as root): DIR holds libvirt-up and libvirt-down

The cloud's part lasts from the first call that makes the machine until an observer, who only asks, sees that it can be used: its
sshd greets, or its pod runs. What is before, and what is after until the client knows, is Nodepool's.
"""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("aws", "kubernetes", "libvirt", "")] + [str(ROOT / "tools")]

from services import ZooKeeper, wait_for  # noqa: E402

LOOK_SECONDS = 0.01


def greeting(host: str, port: int) -> float:
    """When its sshd first greets."""
    while True:
        with contextlib.suppress(OSError), socket.create_connection((host, port), 1) as connection:
            connection.settimeout(10)
            if connection.recv(4) == b"SSH-":
                return time.time()
        time.sleep(LOOK_SECONDS)


class Aws:
    """Machines that run 2 s after their creation."""

    label = "small"
    floor = "RunInstances to the greeting of sshd"

    def __init__(self, folder, hosts, commands):
        from aws_account import Account, AwsSite
        self.cloud = Account(folder / "state", commands)
        self.cloud.up()
        self.cloud.set(pending_ms=2000)
        self.site = AwsSite(folder, hosts, self.cloud)

    def begin(self):
        self.cloud.control("/log", method="DELETE")

    def observe(self) -> tuple[float, float]:
        call = wait_for(lambda: self.cloud.calls("RunInstances"), "RunInstances is called")[0]
        instance, = self.cloud.instances("pending", "running")
        address = wait_for(lambda: instance.public_ipv4 or self.cloud.instances("pending", "running")[0].public_ipv4,
                           "it has an address")
        return call["time"], greeting(address, self.cloud.ssh_port)

    def close(self):
        self.cloud.down("--remove")


class Kubernetes:
    """Pods of a cluster whose kubelets start them 0.3 s after they were scheduled."""

    label = "pod-small"
    floor = "first POST to the pod that is ready"

    def __init__(self, folder, hosts, commands):
        from kubernetes_cluster import Cluster, KubernetesSite
        self.cloud = Cluster(folder / "state", commands)
        self.cloud.up()
        self.site = KubernetesSite(folder, hosts, self.cloud)
        self.site.settings["providers"] = [self.site.provider(context="kubernetes-faults")]
        os.environ["KUBECONFIG"] = str(self.cloud.kubeconfig)

    def begin(self):
        columns = r"custom-columns=READY:.status.conditions[?(@.type=='Ready')].status"
        self.watch = subprocess.Popen(
            [self.cloud.settings["kubectl"], "--kubeconfig", self.cloud.state / "admin.kubeconfig", "get", "pods", "-A", "-w",
             "--no-headers", "-o", columns], stdout=subprocess.PIPE, text=True)
        self.cloud.control("DELETE", "/requests", front=True)

    def observe(self) -> tuple[float, float]:
        for line in self.watch.stdout:
            if line.strip() == "True":
                break
        ready = time.time()
        self.watch.kill()
        self.watch.wait()
        return min(call["time"] for call in self.cloud.requests() if call["method"] == "POST"), ready

    def close(self):
        self.cloud.down("--remove")


class Libvirt:
    """Machines that boot."""

    label = "small"
    floor = "start of the domain to the greeting of sshd"

    def __init__(self, folder, hosts, commands):
        from libvirt_host import LibvirtHost, LibvirtSite
        self.cloud = LibvirtHost(folder / "state", commands)
        self.cloud.up()
        self.site = LibvirtSite(folder, hosts, self.cloud)

    def begin(self):
        self.events = subprocess.Popen(["stdbuf", "-oL", "virsh", "-c", self.cloud.uri, "event", "--event", "lifecycle", "--loop"],
                                       stdout=subprocess.PIPE, text=True)
        known = {lease["ip-address"] for lease in self.leases()}
        self.new_lease = lambda: next((lease["ip-address"] for lease in self.leases() if lease["ip-address"] not in known), None)

    def leases(self) -> list[dict]:
        return [lease for path in (self.cloud.state / "lib/dnsmasq").glob("*.status")
                for lease in json.loads(path.read_text() or "[]")]

    def observe(self) -> tuple[float, float]:
        for line in self.events.stdout:
            if "Started" in line:
                break
        started = time.time()
        self.events.kill()
        self.events.wait()
        address = wait_for(self.new_lease, "it has an address", 600, pause=LOOK_SECONDS)
        return started, greeting(address, 22)

    def close(self):
        self.cloud.clear()
        self.cloud.down("--remove")


def measure(cloud, tree) -> dict[str, float]:
    """The parts of one node's time, in seconds."""
    observed: list[tuple[float, float]] = []
    cloud.begin()
    observer = threading.Thread(target=lambda: observed.append(cloud.observe()))
    observer.start()
    states: dict[str, float] = {}
    is_fulfilled = threading.Event()

    def note(data, _stat):
        state = json.loads(data)["state"] if data else "gone"
        states.setdefault(state, time.time())
        if state == "fulfilled":
            is_fulfilled.set()

    begun = time.time()
    request = tree.add_request([cloud.label])
    tree.zk.DataWatch(f"/nodepool/requests/{request}", note)
    assert is_fulfilled.wait(600), f"request {request} is not fulfilled: {states}"
    observer.join(60)
    (called, usable), = observed
    held = tree.use(request)
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 120)
    return {"until the cloud is called": called - begun, "cloud": usable - called,
            "until the client knows": states["fulfilled"] - usable, "all": states["fulfilled"] - begun}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    clouds = {"aws": Aws, "kubernetes": Kubernetes, "libvirt": Libvirt}
    parser.add_argument("cloud", choices=clouds)
    parser.add_argument("commands", type=pathlib.Path, help="folder with its commands")
    parser.add_argument("--count", type=int, default=10, help="nodes, one after the other")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nodepool-bench-") as name:
        folder = pathlib.Path(name)
        zookeeper = ZooKeeper(folder / "zookeeper").start()
        cloud = clouds[options.cloud](folder, zookeeper.hosts, options.commands)
        try:
            cloud.site.launcher(cloud.site.config())
            tree = cloud.site.tree()
            measure(cloud, tree)  # the first one reads what is kept afterwards
            nodes = [measure(cloud, tree) for _ in range(options.count)]
        finally:
            cloud.site.stop()
            zookeeper.stop()
            cloud.close()
    print(f"{options.cloud}; the cloud's part: {cloud.floor}; {options.count} nodes\n\n| ms | median | least | most |\n|---|---|---|---|")
    for part in nodes[0]:
        times = [1000 * node[part] for node in nodes]
        print(f"| {part} | {statistics.median(times):.0f} | {min(times):.0f} | {max(times):.0f} |")


if __name__ == "__main__":
    main()
