"""What the tests do with Nodepool's programs and its tree, written once."""
import copy
import json
import os
import pathlib
import subprocess
import time

import yaml
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from services import Process, wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("NODEPOOL_BIN", ROOT / "build/release/bin"))


def run(*words, **options) -> str:
    """The output of a command that succeeds."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=1200, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def fake_provider(name="fake-cloud", labels=("small",), pool="main", simulation=None, **pool_settings):
    """A provider of the simulated cloud with one pool."""
    return {
        "name": name, "driver": "fake", "cloud": "simulated",
        "cloud-images": [{"name": "image", "image-name": "Fake Precise"}],
        "pools": [{"name": pool, **pool_settings,
                   "labels": [{"name": label, "cloud-image": "image", "flavor-name": "Fake Flavor"}
                              for label in labels]}],
        "simulation": {"create-latency": 0.05, **(simulation or {})},
    }


def static_provider(sshd, label, user="zuul", name="static-hosts"):
    node = {"name": "127.0.0.1", "connection-port": sshd.port, "host-key": sshd.host_key, "labels": label,
            "username": user}
    return {"name": name, "driver": "static", "pools": [{"name": "main", "nodes": [node]}]}


class Tree:
    """kazoo in the part of a client such as Zuul, and of an observer."""

    fulfil_timeout = 60  # seconds for a request to be fulfilled

    def __init__(self, hosts: str, chroot: str = "", **kazoo_options):
        if chroot:
            with_root = KazooClient(hosts, **kazoo_options)
            with_root.start(30)
            with_root.ensure_path(chroot)
            with_root.stop()
            with_root.close()
        self.zk = KazooClient(hosts + chroot, **kazoo_options)
        self.zk.start(30)

    def close(self):
        self.zk.stop()
        self.zk.close()

    # What reads goes on in another connection, and in another session.
    def children(self, path: str) -> list[str]:
        try:
            return sorted(self.zk.retry(self.zk.get_children, path))
        except NoNodeError:
            return []

    def record(self, path: str) -> dict | None:
        """The JSON object at `path`; None when there is none, or garbage of a test."""
        try:
            data = self.zk.retry(self.zk.get, path)[0]
        except NoNodeError:
            return None
        try:
            return json.loads(data)
        except ValueError:
            return None

    def node(self, node_id: str) -> dict | None:
        return self.record(f"/nodepool/nodes/{node_id}")

    def nodes(self) -> dict[str, dict]:
        found = {node_id: self.node(node_id) for node_id in self.children("/nodepool/nodes")}
        return {node_id: record for node_id, record in found.items() if record}

    def request(self, request_id: str) -> dict | None:
        return self.record(f"/nodepool/requests/{request_id}")

    def components(self, kind: str) -> dict[str, dict]:
        path = f"/nodepool/components/{kind}"
        found = {name: self.record(f"{path}/{name}") for name in self.children(path)}
        return {name: record for name, record in found.items() if record}

    def contenders(self, directory: str) -> list[str]:
        return self.children(directory)

    def node_contenders(self, node_id: str) -> list[str]:
        return self.contenders(f"/nodepool/nodes/{node_id}/lock")

    def write(self, path: str, record):
        data = record if isinstance(record, bytes) else json.dumps(record).encode()
        self.zk.set(path, data)

    def add_request(self, labels, ephemeral=True, priority="200", **extra) -> str:
        """A request as a client makes it; only the keys that every client writes, plus `extra`."""
        record = {"node_types": list(labels), "requestor": "tests", "requestor_data": {"any": "thing"},
                  "provider": None, "state": "requested", "state_time": time.time(), "event_id": "e1", **extra}
        return self.add_raw_request(json.dumps(record).encode(), ephemeral, priority)

    def add_raw_request(self, data: bytes, ephemeral=True, priority="200") -> str:
        path = self.zk.create(f"/nodepool/requests/{priority}-", data, ephemeral=ephemeral, sequence=True,
                              makepath=True)
        return path.rsplit("/", 1)[1]

    def add_node(self, **fields) -> str:
        """A node record as an old program may have left it."""
        record = {"state": "ready", "state_time": time.time(), "provider": "fake-cloud", "pool": "main",
                  "type": ["small"], "allocated_to": None, "external_id": "gone", "created_time": time.time(),
                  **fields}
        return self.add_raw_node(json.dumps(record).encode())

    def add_raw_node(self, data: bytes) -> str:
        return self.zk.create("/nodepool/nodes/", data, sequence=True, makepath=True).rsplit("/", 1)[1]

    def change_node(self, node_id: str, **fields):
        self.write(f"/nodepool/nodes/{node_id}", {**self.node(node_id), **fields})

    def change_request(self, request_id: str, **fields):
        self.write(f"/nodepool/requests/{request_id}", {**self.request(request_id), **fields})

    def wait_request(self, request_id: str, state: str, seconds: float = 30) -> dict:
        def poll():
            record = self.request(request_id)
            assert record is not None, f"request {request_id} is gone"
            return record if record["state"] == state else None

        return wait_for(poll, f"request {request_id} is {state}", seconds)

    def wait_node_gone(self, node_id: str, seconds: float = 30):
        wait_for(lambda: self.zk.exists(f"/nodepool/nodes/{node_id}") is None, f"node {node_id} is gone", seconds)

    def wait_node(self, node_id: str, seconds: float = 30, **fields) -> dict:
        def poll():
            record = self.node(node_id)
            assert record is not None, f"node {node_id} is gone"
            return record if all(record.get(key) == value for key, value in fields.items()) else None

        return wait_for(poll, f"node {node_id} has {fields}", seconds)

    def lock_node(self, node_id: str, timeout: float = 10):
        lock = self.zk.Lock(f"/nodepool/nodes/{node_id}/lock")
        assert lock.acquire(timeout=timeout)
        return lock

    def use(self, request_id: str) -> list:
        """The consumer contract (coordination.md 12.1) up to the use; the (id, lock) of each node."""
        record = self.wait_request(request_id, "fulfilled", self.fulfil_timeout)
        held = []
        for node_id in record["nodes"]:
            assert self.node(node_id)["allocated_to"] == request_id
            held.append((node_id, self.lock_node(node_id)))
        self.zk.delete(f"/nodepool/requests/{request_id}")
        for node_id, _ in held:
            self.change_node(node_id, state="in-use", state_time=time.time())
        return held

    def give_back(self, held):
        for node_id, lock in held:
            self.change_node(node_id, state="used", state_time=time.time())
            lock.release()


class Installation:
    """A configuration, and the programs that run with it."""

    def __init__(self, folder: pathlib.Path, hosts: str, chroot: str = "", tls: dict | None = None):
        self.folder = folder
        self.hosts = hosts
        self.chroot = chroot
        self.started = []
        self.trees = []
        servers = [{"host": host, "port": int(port)} for host, port in
                   (entry.rsplit(":", 1) for entry in hosts.split(","))]
        if chroot:
            for server in servers:
                server["chroot"] = chroot
        self.settings = {"zookeeper-servers": servers, "zookeeper-timeout": 4.0,
                         "webapp": {"listen_address": "127.0.0.1", "port": 0},
                         "labels": [{"name": "small"}], "providers": [fake_provider()]}
        if tls:
            self.settings["zookeeper-tls"] = tls

    def config(self, name="nodepool", **settings) -> pathlib.Path:
        """Writes <name>.yaml: the usual settings, changed by `settings` (underscores for dashes)."""
        content = copy.deepcopy(self.settings)
        content.update({key.replace("_", "-"): value for key, value in settings.items()})
        path = self.folder / f"{name}.yaml"
        # In one step, so that a reload never sees half a file.
        part = path.with_suffix(".part")
        part.write_text(yaml.safe_dump(content, sort_keys=False))
        part.rename(path)
        return path

    def tree(self, **kazoo_options) -> Tree:
        tree = Tree(self.hosts, self.chroot, **kazoo_options)
        self.trees.append(tree)
        return tree

    def launcher(self, config: pathlib.Path | None = None, wait: bool = True, name="launcher",
                 options=(), seconds_between_sweeps=1, program="nodepool-launcher", env=None, under=()) -> Process:
        """A running launcher, started by the command `under`; with `wait`, one whose pools are registered."""
        config = config or self.config()
        self.observer()  # makes the chroot, as an older client would have
        process = Process([*under, BIN / program, "-d", "--cleanup-interval", str(seconds_between_sweeps), "-c", config,
                           *options],
                          self.folder / f"{name}-{len(self.started)}.log", env)
        self.started.append(process)
        if wait:
            pools = sum(len(provider["pools"]) for provider in yaml.safe_load(config.read_text())["providers"])
            hostname = os.uname().nodename

            def is_registered():
                assert process.is_running(), f"the launcher ended:\n{process.output()[-4000:]}"
                return len([record for record in self.observer().components("pool").values()
                            if record["hostname"] == hostname]) >= pools

            wait_for(is_registered, "the launcher registers its pools")
        return process

    def observer(self) -> Tree:
        """A client for looking on, the same at each call."""
        if not hasattr(self, "_observer"):
            self._observer = self.tree()
        return self._observer

    def tool(self, *words, config: pathlib.Path | None = None, check: bool = False,
             timeout: float = 60) -> subprocess.CompletedProcess:
        config = config or self.config("tool")
        return subprocess.run([BIN / "nodepool", "-c", config, *words], capture_output=True, text=True,
                              timeout=timeout, check=check)

    def start_tool(self, *words, name="tool") -> Process:
        process = Process([BIN / "nodepool", "-c", self.config("tool"), *words],
                          self.folder / f"{name}-{len(self.started)}.log")
        self.started.append(process)
        return process

    def stop(self):
        for process in self.started:
            process.resume()
            if process.is_running():
                process.kill()
        for tree in self.trees:
            tree.close()
