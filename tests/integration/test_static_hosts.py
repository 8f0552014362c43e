"""Static hosts with real SSH servers that come and go."""
import json
import socket
import threading

from nodepool_helpers import fake_provider
from services import LOOPBACK, Sshd, wait_for


def ready(tree, **fields):
    return {node_id: node for node_id, node in tree.nodes().items()
            if node["state"] == "ready" and all(node[key] == value for key, value in fields.items())}


def host(sshd, labels, **settings):
    return {"name": LOOPBACK, "connection-port": sshd.port, "host-key": sshd.host_key, "labels": labels, **settings}


def provider(*hosts, name="metal", **settings):
    return {"name": name, "driver": "static", "pools": [{"name": "main", "nodes": list(hosts), **settings}]}


def configure(site, *providers):
    return site.config(labels=[{"name": "red"}, {"name": "blue"}, {"name": "small"}], providers=list(providers))


# S-liveness, S-liveness-two
def test_a_host_that_is_down_is_not_handed_out_and_comes_back(site, tmp_path):
    down, up = Sshd(tmp_path / "down").start(), Sshd(tmp_path / "up").start()
    try:
        site.launcher(configure(site, provider(host(down, "red", timeout=2), host(up, "blue", timeout=2))))
        tree = site.tree()
        wait_for(lambda: len(ready(tree)) == 2, "both hosts are registered")
        before, = ready(tree, type=["red"])
        down.stop()
        waiting = tree.add_request(["red"])
        wait_for(lambda: not ready(tree, type=["red"]), "the dead host is withdrawn")
        held = tree.use(tree.add_request(["blue"]))
        assert tree.request(waiting)["state"] == "requested" and not tree.request(waiting).get("declined_by")
        down.start()
        request = tree.wait_request(waiting, "fulfilled", 30)
        assert request["nodes"] != [before]
        tree.give_back(held)
    finally:
        down.stop()
        up.stop()


# The host check of drivers.md, section 7.5
def test_a_host_with_another_key_is_not_registered(site, sshd, tmp_path):
    other = Sshd(tmp_path / "other")  # its key only
    wrong = host(sshd, "red", **{"host-key": other.host_key})
    launcher = site.launcher(configure(site, provider(wrong), fake_provider()))
    tree = site.tree()
    wait_for(lambda: "host keys are not the configured ones" in launcher.output(), "it is told")
    assert not ready(tree, type=["red"])
    configure(site, provider(host(sshd, "red")), fake_provider())
    wait_for(lambda: ready(tree, type=["red"], host_keys=[sshd.host_key]), "the right key is accepted")


# S-update, S-node-increase, S-node-decrease, S-parallel-increase, S-parallel-decrease
def test_the_configuration_changes_while_a_node_is_in_use(site, sshd, tmp_path):
    second = Sshd(tmp_path / "second").start()
    try:
        site.launcher(configure(site, provider(host(sshd, "red"))))
        tree = site.tree()
        used, = wait_for(lambda: ready(tree), "the host is registered")
        held = tree.use(tree.add_request(["red"]))
        configure(site, provider(host(sshd, ["red", "blue"], **{"max-parallel-jobs": 2, "python-path": "/usr/bin/python3"}),
                                 host(second, "blue")))
        wait_for(lambda: len(ready(tree)) == 2, "the second slot and the second host are registered")
        assert tree.node(used)["type"] == ["red"] and tree.node(used)["state"] == "in-use"
        slot, = ready(tree, type=["red", "blue"]).values()
        assert slot["slot"] == 1 and slot["python_path"] == "/usr/bin/python3"
        tree.give_back(held)
        wait_for(lambda: len(ready(tree, type=["red", "blue"])) == 2, "the first slot is back with its new settings")
        configure(site, provider(host(second, "blue")))
        wait_for(lambda: list(ready(tree).values())[0]["connection_port"] == second.port and len(ready(tree)) == 1,
                 "the first host is withdrawn")
    finally:
        second.stop()


# The host check of drivers.md, section 7.5
def test_a_host_without_ssh_is_tried_by_its_port_only(site):
    listener = socket.create_server((LOOPBACK, 0))
    accepted = []

    def accept():
        while True:
            try:
                accepted.append(listener.accept()[0])
            except OSError:
                return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        windows = {"name": LOOPBACK, "connection-port": listener.getsockname()[1], "connection-type": "winrm",
                   "labels": "red", "shell-type": "powershell"}
        site.launcher(configure(site, provider(windows)))
        tree = site.tree()
        node, = wait_for(lambda: ready(tree), "the host is registered").values()
        assert node["connection_type"] == "winrm" and node["host_keys"] == [] and node["shell_type"] == "powershell"
        assert accepted
        tree.give_back(tree.use(tree.add_request(["red"])))
    finally:
        listener.close()
        for connection in accepted:
            connection.close()


# D-85
def test_two_launchers_share_the_hosts(site, sshd):
    config = configure(site, provider(host(sshd, "red", **{"max-parallel-jobs": 3})))
    site.launcher(config, name="one")
    site.launcher(config, name="two", wait=False)
    tree = site.tree()
    wait_for(lambda: len(tree.components("pool")) == 2, "both are there")
    wait_for(lambda: sorted(node["slot"] for node in ready(tree).values()) == [0, 1, 2], "each slot is there once")
    for _ in range(3):
        held = [tree.use(tree.add_request(["red"])) for _ in range(3)]
        assert sorted(tree.node(taken[0][0])["slot"] for taken in held) == [0, 1, 2]
        for taken in held:
            tree.give_back(taken)
        wait_for(lambda: sorted(node["slot"] for node in ready(tree).values()) == [0, 1, 2], "all are back")
        assert len(tree.nodes()) <= 6


class UnlockedPeer(threading.Thread):
    """Registers missing slots as launchers of the Python implementation do: a look, then its own time, no lock."""

    def __init__(self, site, sshd, slots):
        super().__init__(daemon=True)
        self.tree = site.tree()
        self.sshd = sshd
        self.slots = slots
        self.registered = 0
        self.over = threading.Event()
        pool = {"hostname": "peer", "id": "peer-1", "kind": "pool", "model_api": 0, "name": "main", "paused": True,
                "priority": 100, "provider_name": "metal", "state": "running", "supported_labels": [], "version": "11"}
        self.tree.zk.create("/nodepool/components/pool/peer", json.dumps(pool).encode(), ephemeral=True, sequence=True,
                            makepath=True)

    def run(self):
        while not self.over.wait(0.05):
            taken = {node["slot"] for node in self.tree.nodes().values() if node["state"] not in ("building", "deleting")}
            for slot in set(range(self.slots)) - taken:
                self.over.wait(0.5)  # the look at the host
                self.tree.add_node(provider="metal", type=["red"], slot=slot, hostname=LOOPBACK, external_id=LOOPBACK,
                                   interface_ip=LOOPBACK, username="zuul", connection_port=self.sshd.port,
                                   connection_type="ssh", launcher="static driver", host_keys=[self.sshd.host_key])
                self.registered += 1

    def stop(self):
        self.over.set()
        self.join(10)
        self.tree.close()


# D-85
def test_beside_one_that_registers_without_a_lock(site, sshd):
    """Both register whatever is given back, and no slot is used twice at a time."""
    tree = site.tree()
    peer = UnlockedPeer(site, sshd, slots=2)
    try:
        site.launcher(configure(site, provider(host(sshd, "red", timeout=2, **{"max-parallel-jobs": 2}))))
        peer.start()
        held = []
        for _ in range(8):
            if len(held) == 2:
                tree.give_back(held.pop(0))
            held.append(tree.use(tree.add_request(["red"])))
            used = [node["slot"] for node in tree.nodes().values() if node["state"] == "in-use"]
            assert len(used) == len(set(used))
            wait_for(lambda: len([node for node in tree.nodes().values()
                                  if node["state"] == "in-use" or node["allocated_to"] is None
                                  and node["state"] == "ready"]) <= 2, "what is one too many is withdrawn")
        assert peer.registered > 2
    finally:
        peer.stop()
