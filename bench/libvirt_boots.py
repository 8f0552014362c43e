#!/usr/bin/python3
"""How long a node of the driver `libvirt` takes, from the request to the first login: booted, and from saved memory.

Needs a libvirt that `libvirt-up` has started in a folder (tests/libvirt), whose own measurements are the floor.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/libvirt"), str(ROOT / "tools"), str(ROOT / "tests")]

from libvirt_host import LibvirtHost, LibvirtSite  # noqa: E402
from test_libvirt_warm import NETWORK_HOOK  # noqa: E402
from services import ZooKeeper  # noqa: E402

NETWORK = {"name": "nodepool-bench", "subnet": "192.168.217.0/24"}


def measure(site: LibvirtSite, tree) -> tuple[float, float]:
    """Seconds from the request to its fulfilment, and to the end of the first login."""
    begin = time.monotonic()
    held = tree.use(tree.add_request(["small"]))
    fulfilled = time.monotonic() - begin
    site.login(tree.node(held[0][0]), "true")
    logged_in = time.monotonic() - begin
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 120)
    return fulfilled, logged_in


def report(name: str, times: list[tuple[float, float]]):
    fulfilled, logged_in = zip(*times)
    print(f"| {name} | {len(times)} | {statistics.median(fulfilled):.1f} | {min(fulfilled):.1f} | "
          f"{statistics.median(logged_in):.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", type=pathlib.Path, help="folder with libvirt-up and libvirt-down")
    parser.add_argument("state", type=pathlib.Path, help="folder of the libvirt")
    parser.add_argument("--count", type=int, default=5, help="machines of each kind")
    options = parser.parse_args()
    host = LibvirtHost(options.state, options.commands)
    host.up()
    with tempfile.TemporaryDirectory(prefix="nodepool-bench-") as name:
        folder = pathlib.Path(name)
        zookeeper = ZooKeeper(folder / "zookeeper").start()
        site = LibvirtSite(folder, zookeeper.hosts, host)
        print("| machines | count | fulfilled, median s | least | logged in, median s |\n|---|---|---|---|---|")
        try:
            for name, label in (("booted", {}), ("from saved memory", {"warm-start": True, "userdata": NETWORK_HOOK})):
                site.settings["providers"] = [site.provider(label, network=NETWORK)]
                launcher = site.launcher()
                tree = site.tree()
                first = measure(site, tree)
                if label:
                    report("the first one, which is saved", [first])
                report(name, [measure(site, tree) for _ in range(options.count)])
                launcher.stop()
        finally:
            site.stop()
            zookeeper.stop()
            host.clear()
            host.virsh("net-destroy", NETWORK["name"])
            host.virsh("net-undefine", NETWORK["name"])


if __name__ == "__main__":
    main()
