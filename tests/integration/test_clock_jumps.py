"""The system's clock jumps and drifts, and processes are suspended: nothing is lost and nothing done twice; the log says
what happened once.

A suspension of ten minutes is a SIGSTOP during which the clock is set forward by ten minutes. It lasts only until the
session has expired, or a client has noticed that nothing answers; with time-outs of seconds that is soon.
"""
import collections
import json
import pathlib
import time
import urllib.request

import pytest

from images import ImageSite, image
from moved_clock import MovedClock
from nodepool_helpers import BIN, Tree, fake_provider
from services import Process, free_port, wait_for
from standalone import Standalone

HOUR = 3600
SUSPENSION = 600
JUMPS = pytest.mark.parametrize("offsets", [[HOUR, 0], [-HOUR, 0], [5, 0, 5, 0], [-5, 0, -5, 0]],
                                ids=["forward", "back", "forth and back", "back and forth"])


@pytest.fixture
def clock(tmp_path):
    return MovedClock(tmp_path)


def provider(folder: pathlib.Path, **simulation):
    """A cloud with room for all, which keeps its machines in a directory."""
    return fake_provider(simulation={"limits": {"instances": 1000, "cores": -1, "ram": -1}, "create-latency": 0.3,
                                     "directory": str(folder / "cloud"), **simulation})


def machines(folder: pathlib.Path) -> int:
    records = [json.loads(path.read_text()) for path in (folder / "cloud").iterdir()]
    return sum(record["kind"] == "server" for record in records)


def said(process: Process, text: str) -> int:
    return sum(text in line for line in process.output().splitlines())


def wait_pause_is_told(process: Process):
    """The watchdog's thread tells that the process stood still, once; all else may go on before it."""
    wait_for(lambda: said(process, "This process did not run for about") == 1, "the pause is told, once")


def jump(clock: MovedClock, process: Process, offset: float):
    """Sets the clock, and waits until the process has said so, which it does once for each jump."""
    before = said(process, "system's clock was set")
    clock.move(offset)
    wait_for(lambda: said(process, "system's clock was set") > before, "the jump is logged")
    assert said(process, "system's clock was set") == before + 1


def assert_served_once(tree: Tree, requests: list[str]):
    """Each request is fulfilled, with nodes that belong to no other."""
    records = [tree.wait_request(request, "fulfilled") for request in requests]
    owners = collections.Counter(node for record in records for node in record["nodes"])
    assert set(owners.values()) == {1}
    for request, record in zip(requests, records):
        assert all(tree.node(node)["allocated_to"] == request for node in record["nodes"])


def serve_through(tree: Tree, process: Process, clock: MovedClock, offsets: list[float]):
    """Requests before, during and after jumps; a node that is in use stays so."""
    held = tree.use(tree.add_request(["small"]))
    requests = []
    for offset in offsets:
        requests.append(tree.add_request(["small"]))
        jump(clock, process, offset)
        requests.append(tree.add_request(["small", "small"]))
    assert_served_once(tree, requests)
    assert [tree.node(node)["state"] for node, _ in held] == ["in-use"]
    for request in requests:
        held += tree.use(request)
    tree.give_back(held)
    for node, _ in held:
        tree.wait_node_gone(node)


@JUMPS
def test_a_launcher_serves_requests(site, clock, offsets):
    config = site.config(labels=[{"name": "small", "min-ready": 1}], providers=[provider(site.folder)])
    launcher = site.launcher(config, env=clock.env)
    tree = site.tree()
    serve_through(tree, launcher, clock, offsets)
    wait_for(lambda: [node["state"] for node in tree.nodes().values()] == ["ready"], "one node is ready")
    assert machines(site.folder) == 1
    assert said(launcher, " ERROR ") == 0


def test_a_slow_correction_is_no_jump(site, clock):
    """As NTP slews the clock, but twice as far in each second."""
    launcher = site.launcher(site.config(providers=[provider(site.folder)]), env=clock.env)
    tree = site.tree()
    requests = [tree.add_request(["small"], ephemeral=False) for _ in range(5)]
    offset = 0

    def are_fulfilled():
        nonlocal offset
        offset += 0.001
        clock.move(offset)
        return all(tree.request(request)["state"] == "fulfilled" for request in requests)

    wait_for(are_fulfilled, "all are fulfilled")
    assert said(launcher, "system's clock") == 0


def test_lists_stay_current_after_the_clock_was_set_back(site, clock):
    port = free_port()
    config = site.config(providers=[provider(site.folder)], webapp={"listen_address": "127.0.0.1", "port": port})
    launcher = site.launcher(config, env=clock.env)
    tree = site.tree()

    def listed() -> str:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/node-list").read().decode()

    assert "fake-cloud" not in listed()
    jump(clock, launcher, -HOUR)
    node, = tree.wait_request(tree.add_request(["small"]), "fulfilled")["nodes"]
    wait_for(lambda: node in listed(), "the list shows the node")


def test_a_launcher_whose_session_outlives_a_suspension_goes_on(site, clock):
    launcher = site.launcher(site.config(providers=[provider(site.folder, **{"create-latency": 1.0})]), env=clock.env)
    tree = site.tree()
    request = tree.add_request(["small"], ephemeral=False)
    first = set(wait_for(tree.nodes, "work has begun"))
    launcher.pause()
    clock.move(SUSPENSION)
    launcher.resume()
    wait_for(lambda: said(launcher, f"set forward by {SUSPENSION} s") == 1, "the jump is logged")
    assert set(tree.wait_request(request, "fulfilled")["nodes"]) == first
    assert machines(site.folder) == 1


def test_a_launcher_whose_session_expires_in_a_suspension_starts_over(site, clock):
    config = site.config(providers=[provider(site.folder, **{"create-latency": 1.0})], zookeeper_timeout=2.5)
    launcher = site.launcher(config, env=clock.env)
    tree = site.tree()
    held = tree.use(tree.add_request(["small"]))
    requests = [tree.add_request(["small"], ephemeral=False) for _ in range(3)]
    wait_for(lambda: all(tree.request(request)["state"] == "pending" for request in requests), "work has begun")
    launcher.pause()
    clock.move(SUSPENSION)
    wait_for(lambda: not tree.components("launcher"), "the session expires")
    launcher.resume()
    assert_served_once(tree, requests)
    assert tree.node(held[0][0])["state"] == "in-use"
    wait_for(lambda: len(tree.nodes()) == machines(site.folder) == 4, "nothing is left over")
    wait_pause_is_told(launcher)
    assert said(launcher, f"set forward by {SUSPENSION} s") == 1
    assert said(launcher, "The ZooKeeper session is lost") == 1


# --- Builder --------------------------------------------------------------------------


@pytest.fixture
def images(site):
    return ImageSite(site)


@JUMPS
def test_an_image_is_built_and_uploaded_once(images, clock, offsets):
    """The jumps come while the command runs, and while everything is done."""
    pause = images.folder / "pause"
    pause.touch()
    config = images.config([image(env={"PAUSE_FILE": pause}), image("other", pause=True)], [images.provider()])
    builder = images.builder(config, env=clock.env)
    wait_for((images.folder / "pause.pid").exists, "the command runs")
    jump(clock, builder, offsets[0])
    pause.unlink()
    upload = images.wait_upload()
    for offset in offsets[1:]:
        jump(clock, builder, offset)
    assert list(images.uploads()) == [upload]
    assert list(images.builds()) == [upload[0]]
    assert len(images.cloud_images()) == 1
    assert said(builder, "Building image debian") == 1


def test_a_build_after_the_clock_was_set_back_is_the_current_one(images, clock):
    clock.move(HOUR)
    config = images.config([image()], [images.provider()])
    builder = images.builder(config, env=clock.env)
    known = [images.wait_upload()[0]]
    jump(clock, builder, 0)
    for _ in range(3):
        images.installation.tool("image-build", "debian", config=config, check=True)
        build = images.wait_build(known=known)
        images.wait_upload(build=build)
        known.append(build)
    wait_for(lambda: set(images.builds()) == set(known[-2:]), "the last two builds are retained")
    assert said(builder, "Building image debian") == 4


def test_a_builder_whose_session_expires_in_a_suspension_starts_over(images, clock):
    pause = images.folder / "pause"
    pause.touch()
    config = images.config([image(env={"PAUSE_FILE": pause})], [images.provider()], zookeeper_timeout=2.5)
    builder = images.builder(config, env=clock.env)
    abandoned = images.wait_build(state="building")
    wait_for((images.folder / "pause.pid").exists, "the command runs")
    builder.pause()
    clock.move(SUSPENSION)
    path = "/nodepool/images/debian/builds/lock"
    wait_for(lambda: not images.tree.children(path), "the session expires")
    pause.unlink()
    builder.resume()
    build, _ = images.wait_upload()
    assert build != abandoned
    wait_for(lambda: list(images.builds()) == [build], "what was abandoned is removed")
    assert len(images.cloud_images()) == 1
    wait_pause_is_told(builder)


# --- Everything in one process --------------------------------------------------------


class MovedStandalone(Standalone):
    """One whose clock is moved."""

    def __init__(self, folder, clock):
        super().__init__(folder, providers=[provider(folder)])
        self.clock = clock
        self.trees = []

    def start(self):
        self.process = Process([BIN / "nodepool", "standalone", "-c", self.config], self.folder / "standalone.log",
                               self.clock.env)
        return self

    def tree(self, **kazoo_options) -> Tree:
        self.trees.append(Tree(f"127.0.0.1:{self.port}", **kazoo_options))
        return self.trees[-1]

    def stop(self):
        for tree in self.trees:
            tree.close()
        self.process.stop()


@pytest.fixture
def standalone(tmp_path, clock):
    running = MovedStandalone(tmp_path, clock).start()
    running.wait_ready()
    yield running
    running.stop()


@JUMPS
def test_standalone_serves_requests(standalone, clock, offsets):
    tree = standalone.tree()
    serve_through(tree, standalone.process, clock, offsets)
    wait_for(lambda: [node["state"] for node in tree.nodes().values()] == ["ready"], "one node is ready")
    assert machines(standalone.folder) == 1


def test_standalone_starts_again_before_its_last_start(standalone, clock):
    """The clock has gone back when a killed process is replaced: records, sessions and numbers go on."""
    tree = standalone.tree()
    held = tree.use(tree.add_request(["small"]))
    session, last_zxid = tree.zk.client_id, tree.zk.last_zxid
    standalone.process.kill()
    wait_for(lambda: not tree.zk.connected, "our client notices it")
    clock.move(-HOUR)
    standalone.start()
    wait_for(lambda: tree.zk.connected, "our client is back")
    assert tree.zk.client_id == session
    assert tree.node(held[0][0])["state"] == "in-use"
    assert_served_once(tree, [tree.add_request(["small"])])
    assert tree.zk.last_zxid > last_zxid


def test_sessions_outlive_a_suspension_of_standalone(standalone, clock):
    """The server read nothing meanwhile, so nobody was silent."""
    tree = standalone.tree(timeout=4)
    session = tree.zk.client_id
    request = tree.add_request(["small"])
    lock = tree.lock_node(next(iter(tree.nodes())))
    standalone.process.pause()
    stopped = time.monotonic()
    clock.move(SUSPENSION)
    wait_for(lambda: not tree.zk.connected, "our client notices that nobody answers")
    wait_for(lambda: time.monotonic() > stopped + 6, "every session's time-out of 4 s is over")
    standalone.process.resume()
    wait_for(lambda: tree.zk.connected, "our client is back")
    tree.wait_request(request, "fulfilled")
    assert tree.zk.client_id == session
    assert lock.is_acquired
    assert said(standalone.process, "session is lost") == 0
    wait_pause_is_told(standalone.process)
