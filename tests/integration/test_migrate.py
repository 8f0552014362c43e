"""`nodepool migrate` between the embedded server's store and an Apache ZooKeeper."""
import json
import subprocess

import pytest
import yaml
from kazoo.client import KazooClient

from nodepool_helpers import BIN, Tree
from services import EmbeddedZooKeeper, ZooKeeper, free_port
from standalone import Standalone
from zk_raw import RawClient, CREATE, create


class Move:
    """The two sides: a store, which the server has only while `store()` is open, and an ensemble."""

    def __init__(self, folder, ensemble, chroot=""):
        self.folder = folder
        self.ensemble = ensemble
        self.chroot = chroot
        self.state = folder / "state"
        self.config = folder / "nodepool.yaml"
        host, port = ensemble.hosts.split(":")
        server = {"host": host, "port": int(port), **({"chroot": chroot} if chroot else {})}
        self.config.write_text(yaml.safe_dump({
            "embedded-zookeeper": {"state-dir": str(self.state), "port": free_port()}, "zookeeper-timeout": 3.0,
            "zookeeper-servers": [server]}))

    def store(self) -> EmbeddedZooKeeper:
        server = EmbeddedZooKeeper(self.folder / "server")
        self.state.mkdir(exist_ok=True)
        server.words[0] = f"journal={self.state}/zookeeper.sqlite"
        return server.start()

    def run(self, *words) -> subprocess.CompletedProcess:
        return subprocess.run([BIN / "nodepool", "-c", self.config, "migrate", *words], capture_output=True, text=True,
                              timeout=60)


def fill(tree: Tree) -> list[str]:
    """Records of which some are gone again; returns the ids of the nodes."""
    nodes = [tree.add_node(comment=f"n{number}") for number in range(30)]
    for node in nodes[5:]:
        tree.zk.delete(f"/nodepool/nodes/{node}")
    tree.zk.create(f"/nodepool/nodes/{nodes[0]}/lock", b"who")
    tree.add_request(["small"], ephemeral=False)
    tree.zk.create("/nodepool/images/debian/builds/0000000001", json.dumps({"state": "ready"}).encode(), makepath=True)
    tree.zk.create("/zuul/other", b"\0\xff", makepath=True)
    return nodes[:5]


def next_node(tree: Tree) -> str:
    return tree.add_node()


@pytest.fixture
def move(tmp_path, private_zookeeper):
    return Move(tmp_path, private_zookeeper)


@pytest.mark.parametrize("chroot", ["", "/below"])
def test_there_and_back(tmp_path, private_zookeeper, chroot):
    move = Move(tmp_path, private_zookeeper, chroot)
    server = move.store()
    tree = Tree(server.hosts)
    nodes = fill(tree)
    tree.close()
    server.stop()

    dry = move.run("to-ensemble", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "sequence numbers" in dry.stdout
    observer = KazooClient(private_zookeeper.hosts)
    observer.start(30)
    assert not observer.exists(chroot + "/nodepool"), "a dry run writes nothing"
    done = move.run("to-ensemble")
    assert done.returncode == 0, done.stderr
    assert "has all of it now: 5 nodes, 1 request, 1 image\n" in done.stdout
    assert not observer.exists(chroot + "/zuul")
    observer.stop()
    observer.close()

    tree = Tree(private_zookeeper.hosts, chroot)
    assert sorted(tree.nodes()) == nodes
    assert tree.node(nodes[3])["comment"] == "n3"
    assert tree.zk.get(f"/nodepool/nodes/{nodes[0]}/lock")[0] == b"who"
    assert next_node(tree) == "0000000030", "as if it had always been there"
    assert tree.add_request(["small"], ephemeral=False) == "200-0000000001"
    tree.change_node(nodes[3], comment="changed")
    tree.close()

    assert "has records already" in move.run("to-embedded").stderr
    back = move.run("to-embedded", "--replace")
    assert back.returncode == 0, back.stderr
    server = move.store()
    tree = Tree(server.hosts)
    try:
        assert sorted(tree.nodes()) == nodes + ["0000000030"]
        assert tree.node(nodes[3])["comment"] == "changed"
        assert tree.zk.get("/zuul/other")[0] == b"\0\xff", "what is not Nodepool's stays as it was"
        assert next_node(tree) == "0000000031"
    finally:
        tree.close()
        server.stop()


# D-01
def test_from_where_python_has_the_records(tmp_path, private_zookeeper):
    """Two servers with a chroot each: in Python the first chroot swallows the second server."""
    host, port = private_zookeeper.hosts.split(":")
    odd = f"/np,{host}:{port}/np"
    config = tmp_path / "nodepool.yaml"
    config.write_text(yaml.safe_dump({"zookeeper-servers": 2 * [{"host": host, "port": int(port), "chroot": "/np"}],
                                      "webapp": {"port": free_port()}}))

    def run(program, *words):
        return subprocess.run([BIN / program, "-c", config, *words], capture_output=True, text=True, timeout=60)

    observer = KazooClient(private_zookeeper.hosts)
    observer.start(30)
    observer.ensure_path(odd)
    python = Tree(private_zookeeper.hosts, odd)
    node = python.add_node(comment="kept")
    python.close()
    for refused in (run("nodepool-launcher", "-f", "-p", tmp_path / "pid"), run("nodepool", "list")):
        assert refused.returncode == 1
        for words in (f"{odd}/nodepool", " /np/nodepool", "`nodepool migrate to-chroot`"):
            assert words in refused.stderr
    assert run("nodepool", "migrate", "to-chroot", "--dry-run").returncode == 0
    assert observer.exists(f"{odd}/nodepool/nodes/{node}") and not observer.exists("/np/nodepool")
    moved = run("nodepool", "migrate", "to-chroot")
    assert moved.returncode == 0, moved.stderr
    assert not observer.exists(f"{odd}/nodepool")
    observer.stop()
    observer.close()
    tree = Tree(private_zookeeper.hosts, "/np")
    assert tree.node(node)["comment"] == "kept"
    tree.close()
    assert node in run("nodepool", "list").stdout
    assert "there is nothing" in run("nodepool", "migrate", "to-chroot").stderr


def test_everything(move):
    server = move.store()
    tree = Tree(server.hosts)
    fill(tree)
    tree.close()
    server.stop()
    assert move.run("to-ensemble", "--all").returncode == 0
    tree = Tree(move.ensemble.hosts)
    try:
        assert tree.zk.get("/zuul/other")[0] == b"\0\xff"
        assert len(tree.nodes()) == 5
    finally:
        tree.close()


def test_refused_while_somebody_is_at_work(move):
    server = move.store()
    tree = Tree(server.hosts)
    fill(tree)
    tree.close()
    server.stop()
    worker = Tree(move.ensemble.hosts)
    worker.zk.create("/nodepool/components/launcher/host", b"{}", ephemeral=True, sequence=True, makepath=True)
    refused = move.run("to-ensemble", "--replace")
    assert refused.returncode == 1
    assert "a client is at work" in refused.stderr and "/nodepool/components/launcher/host0000000000" in refused.stderr
    assert worker.nodes() == {}, "nothing was written"
    forced = move.run("to-ensemble", "--replace", "--force")
    assert forced.returncode == 0, forced.stderr
    assert len(worker.nodes()) == 5
    worker.close()


def test_killed_sessions_are_waited_for(move):
    server = move.store()
    client = RawClient(server.port, timeout_ms=1000)
    assert client.ask(CREATE, create("/nodepool"))[1] == 0
    assert client.ask(CREATE, create("/nodepool/mine", flags=1))[1] == 0
    server.process.kill()
    client.drop()
    done = move.run("to-ensemble")
    assert done.returncode == 0, done.stderr
    assert "waiting for its end" in done.stderr
    tree = Tree(move.ensemble.hosts)
    try:
        assert tree.children("/nodepool") == []
    finally:
        tree.close()


def test_what_cannot_be_done_is_told(move, tmp_path):
    assert "has nothing in" in move.run("to-ensemble").stderr
    assert move.run("sideways").returncode == 2
    lonely = tmp_path / "lonely.yaml"
    lonely.write_text("labels: []\n")
    done = subprocess.run([BIN / "nodepool", "-c", lonely, "migrate", "to-ensemble"], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 1 and "zookeeper-servers is missing" in done.stderr


def test_a_running_standalone_is_read_and_refused(tmp_path, private_zookeeper):
    running = Standalone(tmp_path).start()
    try:
        running.wait_ready()
        host, port = private_zookeeper.hosts.split(":")
        grown = tmp_path / "grown.yaml"
        content = yaml.safe_load(running.config.read_text())
        grown.write_text(yaml.safe_dump({**content, "zookeeper-servers": [{"host": host, "port": int(port)}]}))
        words = [BIN / "nodepool", "-c", grown, "migrate", "to-ensemble"]
        looked = subprocess.run([*words, "--dry-run"], capture_output=True, text=True, timeout=60)
        assert looked.returncode == 0, looked.stderr
        assert "of open sessions are not taken along" in looked.stdout
        refused = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert refused.returncode == 1
        assert refused.stderr == f"nodepool: nodepool standalone runs with {tmp_path / 'state'}: stop it first\n"
        node = running.nodes()[0]
        running.process.stop(20, 2)
        # One line more in the configuration, one command: it goes on where it was.
        moved = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert moved.returncode == 0, moved.stderr
        tree = Tree(private_zookeeper.hosts)
        assert node["id"] in tree.nodes()
        tree.close()
    finally:
        running.process.stop()
