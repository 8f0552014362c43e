#!/usr/bin/python3
"""A steady load on `nodepool standalone`: prints a line of a table for each minute, with what the process needs.

Memory, descriptors and threads should be flat after the first minutes.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

from nodepool_helpers import BIN  # noqa: E402
from services import Process, free_port, wait_for  # noqa: E402

LABEL = "small"


def configuration(folder: pathlib.Path, zookeeper: int, web: int) -> dict:
    label = {"name": LABEL, "cloud-image": "image", "flavor-name": "Fake Flavor"}
    cloud = {"name": "fake", "driver": "fake", "cloud": "simulated", "pools": [{"name": "main", "labels": [label]}],
             "cloud-images": [{"name": "image", "image-name": "Fake Precise"}],
             "simulation": {"create-latency": 0.1, "delete-latency": 0.1,
                            "limits": {"cores": -1, "instances": -1, "ram": -1}}}
    return {"embedded-zookeeper": {"state-dir": str(folder / "state"), "port": zookeeper},
            "webapp": {"listen_address": "127.0.0.1", "port": web},
            "labels": [{"name": LABEL, "min-ready": 2}], "providers": [cloud]}


def use(pid: int) -> tuple[float, int, int]:
    """Resident MiB, descriptors and threads of a process."""
    process = pathlib.Path(f"/proc/{pid}")
    status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024, len(list((process / "fd").iterdir())), int(status["Threads"])


def is_ready(port: int) -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5).status == 200
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--rate", type=float, default=40, help="requests a second")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nodepool-soak-") as name:
        folder, zookeeper, web = pathlib.Path(name), free_port(), free_port()
        config = folder / "nodepool.yaml"
        config.write_text(yaml.safe_dump(configuration(folder, zookeeper, web)))
        standalone = Process([BIN / "nodepool", "standalone", "-c", config], folder / "log")
        try:
            wait_for(lambda: is_ready(web), "nodepool standalone is ready")
            print("| second | requests | failed | median, ms | 99 %, ms | longest, ms | RSS, MiB | descriptors | threads |")
            print("|---|---|---|---|---|---|---|---|---|", flush=True)
            client = subprocess.Popen([BIN / "soak_client", "--port", str(zookeeper), "--seconds", str(options.seconds),
                                       "--rate", str(options.rate), "--label", LABEL], stdout=subprocess.PIPE, text=True)
            for line in client.stdout:
                memory, descriptors, threads = use(standalone.pid)
                print("|", " | ".join(line.split()), f"| {memory:.1f} | {descriptors} | {threads} |", flush=True)
            with open(standalone.log) as log:
                faults = [line for line in log if " ERROR " in line or " WARNING " in line]
            print(f"\n{len(faults)} errors and warnings in the log\n", *faults[:10], sep="")
            sys.exit(client.wait())
        finally:
            standalone.stop()


if __name__ == "__main__":
    main()
