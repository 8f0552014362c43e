#!/usr/bin/python3
"""How long the upload of a large sparse image to AWS takes by each import method, and what it needs of the builder.

Prints lines of a table (docs/performance.md). Needs Debian's zookeeper and a counterpart of AWS (CONTRIBUTING.md), which stores what is
sent: three times the size of the image, beside the build and its source.
"""
import argparse
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/aws"), str(ROOT / "tools"), str(ROOT / "tests")]

from aws_account import Account, AwsSite  # noqa: E402
from aws_images import AwsImages, make_file  # noqa: E402
from services import ZooKeeper, wait_for  # noqa: E402

STRETCHES = 10  # of data, spread over the file


def status(pid: int, name: str) -> float:
    """A line of the process's status, in MiB."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split(f"{name}:")[1].split()[0]) / 1024


def measure(folder: pathlib.Path, hosts: str, account: Account, file: pathlib.Path, method: str):
    account.reset()
    folder.mkdir()
    site = AwsSite(folder, hosts, account)
    images = AwsImages(site, file, {"import-method": method}, **{"image-import-timeout": 3600})
    builder = images.builder()
    try:
        wait_for(lambda: "Uploading build" in builder.output(), "the image is built", 1200)
        before, begin = status(builder.pid, "VmRSS"), time.monotonic()
        image_id, _ = images.ready(3600)
        seconds, peak = time.monotonic() - begin, status(builder.pid, "VmHWM")
        counts = account.control("/counts")
        images.assert_equal(images.image(image_id).snapshot)
        calls = ", ".join(f"{count} {name.split('.')[1]}" for name, count in sorted(counts.items(), key=lambda entry: -entry[1])[:3])
        print(f"| {method} | {seconds:.0f} s | {peak:.0f} MiB ({before:.0f} before) | {sum(counts.values())}: {calls} |", flush=True)
    finally:
        site.stop()
        account.reset()


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("counterpart", type=pathlib.Path, help="the folder with aws-up and aws-down")
    words.add_argument("--gibibytes", type=int, default=4)
    words.add_argument("--data", type=int, default=300, help="MiB of data in the file")
    words.add_argument("--methods", nargs="+", default=["snapshot", "image", "ebs-direct"])
    options = words.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        size = options.gibibytes << 30
        data = {number * (size // STRETCHES): (options.data << 20) // STRETCHES for number in range(STRETCHES)}
        file = make_file(folder / "image", size, data)
        account = Account(folder / "aws", options.counterpart)
        account.up()
        zookeeper = ZooKeeper(folder / "zookeeper").start()
        try:
            print("| method | upload | peak memory | calls |")
            for method in options.methods:
                measure(folder / f"by-{method}", zookeeper.hosts, account, file, method)
        finally:
            zookeeper.stop()
            account.down("--remove")


main()
