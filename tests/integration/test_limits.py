"""Processes that run out of descriptors or memory (prlimit): they go on with what they have, say what is missing, and
when there is enough again nothing is lost."""
import contextlib
import json
import os
import resource
import socket
import urllib.error
import urllib.request

import pytest

from images import ImageSite, image
from nodepool_helpers import Installation, Tree, fake_provider
from services import EmbeddedZooKeeper, Process, free_port, wait_for
from standalone import Standalone

EXHAUSTED = "Too many open files"
MIB = 2 ** 20


def provider(**simulation):
    return fake_provider(simulation={"limits": {"instances": 1000, "cores": -1, "ram": -1}, **simulation})


@contextlib.contextmanager
def limited(process: Process, kind: int, limit: int):
    """Sets the soft limit of a running process."""
    before = resource.prlimit(process.pid, kind)
    resource.prlimit(process.pid, kind, (limit, before[1]))
    yield
    resource.prlimit(process.pid, kind, before)


def no_descriptors(process: Process):
    """The process cannot open anything."""
    used = {int(name) for name in os.listdir(f"/proc/{process.pid}/fd")}
    return limited(process, resource.RLIMIT_NOFILE, min(set(range(len(used) + 1)) - used))


def little_memory(process: Process, more: int):
    """The process's address space can grow by so many bytes."""
    with open(f"/proc/{process.pid}/statm") as file:
        pages = int(file.read().split()[0])
    return limited(process, resource.RLIMIT_AS, pages * resource.getpagesize() + more)


def said(process: Process, *texts: str) -> int:
    return sum(all(text in line for text in texts) for line in process.output().splitlines())


def serves_one_more(tree: Tree):
    tree.wait_request(tree.add_request(["small"]), "fulfilled")


def get(port: int, path: str) -> bytes:
    return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20).read()


@pytest.fixture
def connections():
    """Opens connections that the test forgets."""
    with contextlib.ExitStack() as stack:
        def connect(port: int, count: int = 3):
            for _ in range(count):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        yield connect


# --- Descriptors ----------------------------------------------------------------------


def test_a_launcher_without_descriptors(site, connections):
    """It serves requests on the connection that it has; what came meanwhile is done later."""
    port = free_port()
    web = {"listen_address": "127.0.0.1", "port": port}
    launcher = site.launcher(site.config(providers=[provider()], webapp=web))
    tree = site.tree()
    with no_descriptors(launcher):
        connections(port)
        wait_for(lambda: said(launcher, "Web connections cannot be accepted", EXHAUSTED), "it is logged")
        serves_one_more(tree)
        site.config(providers=[provider(), fake_provider("second")], webapp=web)
        wait_for(lambda: said(launcher, "cannot be read", EXHAUSTED), "the configuration cannot be read")
        serves_one_more(tree)
    assert get(port, "/ready")
    wait_for(lambda: len(tree.components("pool")) == 2, "the changed configuration is in force")
    assert said(launcher, "Web connections cannot be accepted") == 1
    assert said(launcher, "cannot be read") == 1


def test_a_builder_without_descriptors(site):
    """A build that cannot begin leaves nothing behind, and is made when circumstances change."""
    images = ImageSite(site)
    providers = [images.provider()]
    config = images.config([image()], providers)
    builder = images.builder(config)
    first, _ = images.wait_upload()
    with no_descriptors(builder):
        site.tool("image-build", "debian", config=config, check=True)
        wait_for(lambda: said(builder, "Building image debian", EXHAUSTED), "the build fails")
        assert list(images.builds()) == [first]
    images.config([image(env={"CHANGED": 1})], providers)
    second = images.wait_build(known=[first])
    images.wait_upload(build=second)
    assert said(builder, "BuildWorker", EXHAUSTED) == 1
    assert set(images.builds()) == {first, second}


def test_standalone_without_descriptors(tmp_path, connections):
    """No client can come, those that are there are served."""
    running = Standalone(tmp_path, providers=[provider()]).start()
    running.wait_ready()
    tree = Tree(f"127.0.0.1:{running.port}")
    try:
        with no_descriptors(running.process):
            connections(running.port)
            connections(running.web_port)
            for text in ("ZooKeeper clients cannot be accepted", "Web connections cannot be accepted"):
                wait_for(lambda: said(running.process, text, EXHAUSTED), "it is logged")
            serves_one_more(tree)
        running.wait_ready()
        assert get(running.web_port, "/ready")
        assert said(running.process, "cannot be accepted") == 2
        assert said(running.process, "session is lost") == 0
    finally:
        tree.close()
        running.process.stop()


# --- Memory ---------------------------------------------------------------------------


@pytest.fixture
def roomy_site(tmp_path):
    """An installation on a server that holds large records."""
    server = EmbeddedZooKeeper(tmp_path / "zookeeper").start()
    installation = Installation(tmp_path, server.hosts)
    yield installation
    installation.stop()
    server.stop()


def all_nodes(port: int, cloud: str) -> list[dict]:
    """Of all pages: an answer ends at 16 MiB. Empty while the launcher has no connection to ZooKeeper."""
    nodes, after, is_complete = [], "", False
    while not is_complete:
        try:
            answer = json.loads(get(port, f"/api/v1/nodes?provider={cloud}&after={after}"))
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            return []
        nodes, is_complete = nodes + answer["nodes"], answer["is_complete"]
        after = nodes[-1]["id"] if nodes else ""
    return nodes


def test_a_launcher_without_memory(roomy_site):
    """It cannot hold all records, tries again and again, and has all of them in the end."""
    port = free_port()
    web = {"listen_address": "127.0.0.1", "port": port}
    launcher = roomy_site.launcher(roomy_site.config(providers=[provider()], webapp=web))
    tree = roomy_site.tree()
    clouds = ["one", "two"]
    with little_memory(launcher, 8 * MIB):
        # Equal comments would be in memory once.
        held = {cloud: {tree.add_node(state="hold", provider=cloud, comment=f"{cloud} {number} " + "x" * 900_000)
                        for number in range(60)} for cloud in clouds}
        wait_for(lambda: said(launcher, "std::bad_alloc"), "it runs out of memory")
        assert launcher.is_running()
    serves_one_more(tree)
    for cloud in clouds:
        wait_for(lambda: len(all_nodes(port, cloud)) == len(held[cloud]), "all are listed")


def test_standalone_without_memory(tmp_path):
    """A client whose writes do not fit is disconnected; what was acknowledged is there, also after a kill."""
    running = Standalone(tmp_path, providers=[provider()]).start()
    running.wait_ready()
    tree = Tree(f"127.0.0.1:{running.port}")
    acknowledged = set()
    try:
        tree.zk.create("/large")
        with little_memory(running.process, 8 * MIB):
            wait_for(lambda: fill(tree, acknowledged) and said(running.process, "std::bad_alloc"), "memory is used up",
                     seconds=120, pause=0)
            assert running.process.is_running()
        wait_for(lambda: tree.zk.connected, "our client is back")
        serves_one_more(tree)
        assert acknowledged <= set(tree.children("/large"))
        running.process.kill()
        wait_for(lambda: not tree.zk.connected, "our client notices it")
        running.start()
        wait_for(lambda: tree.zk.connected, "our client is back")
        assert acknowledged <= set(tree.children("/large"))
        serves_one_more(tree)
    finally:
        tree.close()
        running.process.stop()


def fill(tree: Tree, acknowledged: set[str]) -> bool:
    """Writes a large znode; whether it was refused."""
    name = str(len(acknowledged))
    try:
        tree.zk.create(f"/large/{name}", b"x" * 900_000)
    except Exception:  # kazoo's, of a lost connection
        return True
    acknowledged.add(name)
    return False
