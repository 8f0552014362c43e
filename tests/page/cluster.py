"""Records that a page shows, written into ZooKeeper as clients, launchers and builders would."""
import json
import time

from services import wait_for
from web_client import get

STATES = ["ready", "in-use", "hold", "ready", "in-use"]
VIEWS = ["overview", "nodes", "requests", "providers", "images", "events", "jobs", "runners", "components"]


class Cluster:
    """`elsewhere` is a provider that no launcher here serves, so its nodes stay as they are."""

    def __init__(self, site, port: int):
        self.site = site
        self.tree = site.observer()
        self.port = port
        self.url = f"http://127.0.0.1:{port}/"

    def add_nodes(self, count: int) -> list[str]:
        """Nodes in several states, with labels and requests."""
        base = "/nodepool/nodes"
        self.tree.zk.ensure_path(base)
        first = len(self.tree.children(base))
        ids = []
        for begin in range(0, count, 500):
            creations = [self.tree.zk.create_async(f"{base}/", json.dumps(self.node(number)).encode(), sequence=True)
                         for number in range(begin, min(begin + 500, count))]
            ids += [creation.get(30).rsplit("/", 1)[1] for creation in creations]
        wait_for(lambda: self.listed() >= first + count, "the launcher knows the nodes", 120)
        return ids

    def node(self, number: int) -> dict:
        state = STATES[number % len(STATES)]
        return {"state": state, "state_time": time.time() - number, "created_time": time.time() - number * 2,
                "provider": "elsewhere", "pool": "main", "type": ["small" if number % 3 else "large"],
                "allocated_to": None, "external_id": f"i-{number}", "hostname": f"host-{number}",
                "interface_ip": f"192.0.2.{number % 250}", "username": "zuul", "connection_type": "ssh",
                "comment": "see the log of the job" if state == "hold" else None, "hold_expiration": 0,
                "hold_job": "unit" if state == "hold" else None}

    def listed(self) -> int:
        status, _, body = get(self.port, f"/api/v1/nodes?limit={10_000 - int(time.time() * 10) % 5000 % 9}")
        return len(json.loads(body)["nodes"]) if status == 200 else 0

    def add_images(self):
        create = self.tree.zk.create
        now = time.time()
        for image, state in [("debian-12", "ready"), ("rocky-9", "building")]:
            create(f"/nodepool/images/{image}/builds/b1", makepath=True, value=json.dumps(
                {"state": state, "state_time": now - 4000, "builder": "nb01", "formats": "qcow2"}).encode())
        for provider, state in [("fake-cloud", "ready"), ("elsewhere", "failed")]:
            create(f"/nodepool/images/debian-12/builds/b1/providers/{provider}/images/0000000001", makepath=True,
                   value=json.dumps({"state": state, "state_time": now - 3000, "format": "qcow2",
                                     "external_name": "debian-12-1", "external_id": "x"}).encode())

    def add_job(self):
        self.tree.zk.create("/nodepool/jobs/0000000001", b'{"name": "unit", "hold_on_failure": 2}', makepath=True)

    def fill(self, count: int):
        """Something in every view."""
        self.add_nodes(count)
        self.add_images()
        self.add_job()
        self.tree.wait_request(self.tree.add_request(["small"]), "fulfilled")
        for labels in (["small"], ["large"], ["nonexistent"]):
            self.tree.add_request(labels, requestor="zuul.example.org")

    def view(self, name: str, query: str = "") -> str:
        return self.url if name == "overview" and not query else f"{self.url}?view={name}{query}"
