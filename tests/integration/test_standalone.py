"""Everything in one process, with the embedded ZooKeeper server."""
import contextlib
import json
import os
import re
import signal
import sqlite3

import pytest

from images import image
from nodepool_helpers import BIN, Tree, fake_provider
from services import Process, free_port, wait_for
from standalone import Standalone
from web_client import get


@pytest.fixture
def standalone(tmp_path):
    running = Standalone(tmp_path).start()
    yield running
    running.process.stop()


def test_serves_requests_and_other_clients(standalone):
    standalone.wait_ready()
    tree = Tree(f"127.0.0.1:{standalone.port}")
    try:
        request = tree.add_request(["small", "small"])
        held = tree.use(request)
        tree.give_back(held)
        for node_id, _ in held:
            tree.wait_node_gone(node_id)
    finally:
        tree.close()
    assert "standalone" in standalone.tool("--help").stdout


# operations.md 2.4: the server has a loop of its own, and its tasks are shown, too.
def test_the_stack_dump_shows_both_loops(tmp_path):
    running = Standalone(tmp_path).start("-d")
    try:
        running.wait_ready()
        os.kill(running.process.pid, signal.SIGUSR2)
        wait_for(lambda: "End debug handler" in running.process.output(), "the dump is complete")
        output = running.process.output()
        assert "The embedded ZooKeeper server's loop has" in output and "keep the ZooKeeper tree on disk" in output
        assert "The loop has" in output and "wait for a signal" in output
        assert re.search(r"Thread: \d+ zookeeper d: True", output)
    finally:
        running.process.stop()


def test_builds_images_too(tmp_path):
    (tmp_path / "images").mkdir()
    provider = fake_provider()
    provider["diskimages"] = [{"name": "debian"}]
    provider["pools"][0]["labels"] = [{"name": "small", "diskimage": "debian", "flavor-name": "Fake Flavor"}]
    running = Standalone(tmp_path, providers=[provider], diskimages=[image()],
                         **{"images-dir": str(tmp_path / "images"), "build-log-dir": str(tmp_path / "logs")}).start()
    try:
        running.wait_ready()  # its image was built and uploaded
        uploads = json.loads(running.tool("image-list", "--json").stdout)
        assert [upload["state"] for upload in uploads] == ["ready"]
        assert list((tmp_path / "images").glob("debian-*.qcow2"))
    finally:
        running.process.stop()


def test_killed_and_started_again_it_goes_on(standalone):
    node = standalone.wait_ready()
    standalone.process.kill()
    standalone.start()
    # The simulated cloud is gone with the process; the record has stayed.
    assert node["id"] in [found["id"] for found in standalone.nodes()]
    assert standalone.wait_ready()


def test_killed_it_takes_up_a_request_at_once(tmp_path):
    running = Standalone(tmp_path, providers=[fake_provider(simulation={"create-latency": 2.0})],
                         labels=[{"name": "small"}], **{"zookeeper-timeout": 60.0}).start()
    tree = None
    try:
        wait_for(lambda: running.tool("list", "--wait-for-server").returncode == 0, "the server answers")
        tree = Tree(f"127.0.0.1:{running.port}")
        request = tree.add_request(["small"])
        tree.wait_request(request, "pending")
        running.process.kill()
        running.start()
        # Far less than the time-out of the session that had the locks.
        tree.wait_request(request, "fulfilled", seconds=30)
        assert "of the process that served" in running.process.output()
    finally:
        if tree:
            tree.close()
        running.process.stop()


def test_ready_says_that_the_state_cannot_be_written(standalone):
    standalone.wait_ready()
    tree = Tree(f"127.0.0.1:{standalone.port}")
    try:
        # As on a full disk: nothing can be written to the database until the transaction ends.
        with contextlib.closing(sqlite3.connect(standalone.folder / "state/zookeeper.sqlite")) as database:
            database.execute("BEGIN IMMEDIATE")
            tree.zk.create_async("/a")
            wait_for(lambda: get(standalone.web_port, "/ready")[0] == 503, "it is not ready")
            assert "cannot write its state: database is locked" in get(standalone.web_port, "/ready")[2]
        wait_for(lambda: get(standalone.web_port, "/ready")[0] == 200, "it is ready again")
    finally:
        tree.close()
    assert standalone.process.output().count("is written again") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stops(standalone, number):
    standalone.wait_ready()
    standalone.process.send(number)
    assert standalone.process.wait(20) == 0
    assert oct(os.stat(standalone.folder / "state/zookeeper.sqlite").st_mode & 0o777) == "0o600"


def test_state_that_cannot_be_used_ends_it(standalone, tmp_path):
    standalone.wait_ready()
    other = tmp_path / "other"
    other.mkdir()
    second = Standalone(other, **{"embedded-zookeeper": {"state-dir": str(tmp_path / "state"), "port": free_port()}})
    second.start()
    assert second.process.wait(20) == 1
    assert f"is in use by process {standalone.process.pid}\n" in second.process.output()


def test_runs_on_an_ensemble_when_there_is_one(site):
    config = site.config()
    process = Process([BIN / "nodepool", "standalone", "-c", config], site.folder / "standalone.log")
    site.started.append(process)
    site.observer()
    wait_for(lambda: site.observer().components("pool"), "the pool is registered")
    request = site.observer().add_request(["small"])
    site.observer().wait_request(request, "fulfilled")
    assert "embedded" not in process.output()
