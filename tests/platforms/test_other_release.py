"""README.md's commands on other releases of Debian, from a clone of HEAD in a fresh root (./test --platforms).

Only packages of Debian are fetched. What is mounted and started in the root ends with its namespaces, and the root is removed.
"""
import os
import pathlib
import subprocess
import time

import pytest

from debian_tree import CHECKOUT, MISSING, OTHER_RELEASES, Debian
from nodepool_helpers import ROOT, run

# NODEPOOL_TEST_PLATFORMS names releases, such as bookworm,trixie; 1: all but this machine's.
WANTED = os.environ.get("NODEPOOL_TEST_PLATFORMS", "1")
RELEASES = OTHER_RELEASES if WANTED == "1" else WANTED.split(",")

pytestmark = [pytest.mark.skipif(not os.environ.get("NODEPOOL_TEST_PLATFORMS"), reason="only with ./test --platforms"),
              pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]

# The tests make namespaces with a /proc of their own, which the kernel refuses below one that bwrap has covered in part.
PLAIN_PROC = "mount -t proc proc /proc"
# Tests of image builds use loop devices and mounts.
AS_A_COMPUTER = ["--dev-bind", "/dev", "/dev", "--bind", "/sys", "/sys", "--unshare-uts", "--hostname", "localhost"]


@pytest.fixture
def newcomer(release, tmp_path):
    """A fresh Debian of the release with a clone; results of its compiler are kept in our ccache."""
    machine = Debian(tmp_path / release)
    try:
        Debian.bootstrap(machine.folder, release)
        cache = pathlib.Path(run("ccache", "--get-config", "cache_dir").strip())
        cache.mkdir(parents=True, exist_ok=True)
        machine.mounts += [*AS_A_COMPUTER, "--bind", cache, "/root/.cache/ccache"]
        machine.environment["CCACHE_MAXSIZE"] = run("ccache", "--get-config", "max_size").strip()
        machine.upgrade()
        run("git", "clone", "-q", "--no-hardlinks", ROOT, machine.path(CHECKOUT))
        yield machine
    finally:
        machine.remove()


@pytest.mark.parametrize("release", RELEASES)
def test_the_commands_of_the_readme(newcomer, release, capsys):
    for command in ("./run demo", "./test"):
        log = ROOT / f"build/platforms/{release}-{command.split()[-1].strip('./')}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        with log.open("wb") as output:
            done = subprocess.run([*newcomer.enter("--chdir", CHECKOUT), "sh", "-c", f"{PLAIN_PROC} && {command}"], stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT)
        last = log.read_text(errors="replace").strip().splitlines()[-40:]
        with capsys.disabled():
            print(f"\n{release}: {command} took {time.monotonic() - begin:.0f} s; output: {log}\n  {last[-1] if last else ''}", flush=True)
        assert done.returncode == 0, "\n".join(last)
