"""A pool as large sites have it: six providers, twelve labels with real names, and something of everything that goes wrong.

The programs are real. Three clouds are simulated, one OpenStack's address is a closed port, the static hosts do not
exist, and one cloud is paused. Beside them a builder whose build of one image and whose upload to one cloud fail.
"""
import json
import os
import pathlib
import time
import urllib.request

import yaml

from images import image
from lease_client import make_token
from nodepool_helpers import BIN, Installation
from services import Process, free_port, wait_for

# Which clouds offer each label; those of the static hosts come last.
CLOUDS = {
    "ubuntu-noble": ("rackspace-flex-sjc3", "ovh-gra1", "openmetal-iad3"),
    "ubuntu-jammy": ("rackspace-flex-sjc3", "ovh-gra1"),
    "debian-bookworm": ("rackspace-flex-sjc3", "ovh-gra1", "openmetal-iad3"),
    "centos-9-stream": ("rackspace-flex-sjc3", "openmetal-iad3"),
    "rockylinux-9": ("rackspace-flex-sjc3",),
    "openeuler-24-03-lts": ("rackspace-flex-sjc3",),
    "nested-virt-ubuntu-noble": ("ovh-gra1", "vexxhost-ca-ymq-1"),
    "nested-virt-centos-9-stream": ("vexxhost-ca-ymq-1",),
    "ubuntu-noble-arm64-16GB": ("osuosl-regionone-arm64",),
    "windows-server-2022-vs2022-32GB": ("openmetal-iad3",),
    "debian-bookworm-kubernetes-control-plane-large": ("ovh-gra1",),
}
STATIC_LABEL = "bm-board-aarch64-jetson-orin"
PROVIDERS = ("bare-metal-lab", "openmetal-iad3", "osuosl-regionone-arm64", "ovh-gra1", "rackspace-flex-sjc3",
             "vexxhost-ca-ymq-1")
LABELS = (*CLOUDS, STATIC_LABEL)
IMAGES = ("ubuntu-noble", "debian-bookworm", "openeuler-24-03-lts")


class PlantedPool:
    """`shares`: which providers each of the launchers serves; all of them without it."""

    def __init__(self, folder: pathlib.Path, hosts: str, chroot: str, shares=(PROVIDERS,)):
        self.site = Installation(folder, hosts, chroot)
        self.folder = folder
        self.hostnames = [f"nl{number:02}.opendev.org" for number in range(1, len(shares) + 1)]
        self.ports = [free_port() for _ in shares]
        self.shares = shares
        self.launchers = []
        self.tokens = {}
        self.held = []  # what keeps nodes in use
        self.tree = self.site.observer()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports[0]}/"

    # --- The configuration ------------------------------------------------------------

    def cloud(self, name: str, instances: int, **simulation) -> dict:
        images = [each for each in IMAGES if name in CLOUDS[each]]
        labels = [{"name": label, "flavor-name": "8 GB",
                   **({"diskimage": label} if label in images else {"cloud-image": "vendor"})}
                  for label, clouds in CLOUDS.items() if name in clouds]
        return {"name": name, "driver": "fake", "cloud": name, "launch-retries": 3,
                "cloud-images": [{"name": "vendor", "image-name": "Fake Precise"}],
                "diskimages": [{"name": each} for each in images],
                "pools": [{"name": "main", "labels": labels, "max-servers": instances}],
                "simulation": {"create-latency": 0.1, "directory": str(self.folder / "clouds" / name), "seed": 7,
                               "limits": {"instances": instances + 20, "cores": 8 * instances, "ram": 8192 * instances},
                               "flavors": [{"name": "8 GB", "ram": 8192, "vcpus": 8}], **simulation}}

    def providers(self) -> dict[str, dict]:
        pools = [{"name": "main", "labels": [{"name": label, "cloud-image": "vendor", "flavor-name": "8 GB"}
                                             for label, clouds in CLOUDS.items() if "vexxhost-ca-ymq-1" in clouds]}]
        hosts = [{"name": "127.0.0.1", "connection-port": free_port(), "labels": STATIC_LABEL, "username": "root"}
                 for _ in range(2)]
        return {each["name"]: each for each in (
            self.cloud("rackspace-flex-sjc3", 80),
            self.cloud("ovh-gra1", 40, **{"upload-failure-rate": 1}),
            self.cloud("openmetal-iad3", 50, **{"create-failure-rate": 0.25}),
            self.cloud("osuosl-regionone-arm64", 10),
            {"name": "vexxhost-ca-ymq-1", "driver": "openstack", "cloud": "vexxhost", "region-name": "ca-ymq-1",
             "cloud-images": [{"name": "vendor", "image-name": "CentOS 9"}], "pools": pools},
            {"name": "bare-metal-lab", "driver": "static", "pools": [{"name": "main", "nodes": hosts}]})}

    def config(self, name: str, providers, **settings) -> pathlib.Path:
        min_ready = {"ubuntu-noble": 5, "debian-bookworm": 2, "centos-9-stream": 2, "windows-server-2022-vs2022-32GB": 2}
        diskimages = [image(each, env={"FAIL": 1} if each.startswith("openeuler") else None) for each in IMAGES]
        return self.site.config(
            name, labels=[{"name": label, "min-ready": min_ready.get(label, 0)} for label in LABELS],
            diskimages=diskimages, providers=[self.providers()[each] for each in providers],
            **{"images-dir": str(self.folder / "images"), "build-log-dir": str(self.folder / "logs")},
            tenant_resource_limits=[{"tenant-name": "openstack", "max-servers": 8}], **settings)

    def start(self, nodes: int = 120):
        for each in ("images", "logs", "clouds"):
            (self.folder / each).mkdir(exist_ok=True)
        clouds = {"clouds": {"vexxhost": {"auth": {"auth_url": f"http://127.0.0.1:{free_port()}/v3", "username": "ci",
                                                   "password": "x", "project_name": "ci"}}}}
        (self.folder / "clouds.yaml").write_text(yaml.safe_dump(clouds))
        self.secure = self.folder / "secure.yaml"
        entries = []
        for name, scope in (("ops", "operate"), ("ci", "request")):
            self.tokens[name], entry = make_token(self.site.config("token"), name, "--scope", scope)
            entries.append(entry)
        self.secure.write_text(yaml.safe_dump({"webapp-tokens": entries}))
        self.start_builder()
        for number in range(len(self.shares)):
            self.start_launcher(number)
        self.fill(nodes)
        return self

    def start_launcher(self, number: int):
        config = self.config(f"launcher-{number}", self.shares[number],
                             webapp={"listen_address": "127.0.0.1", "port": self.ports[number]})
        process = self.process(self.hostnames[number], "nodepool-launcher", "-s", self.secure, "-c", config)
        self.launchers[number:number + 1] = [process]
        wait_for(lambda: self.ask(number, "nodes"), "the launcher serves", 60)

    def start_builder(self):
        config = self.config("builder", PROVIDERS)
        self.process("nb01.opendev.org", "nodepool-builder", "-c", config)

    def process(self, hostname: str, program: str, *options) -> Process:
        """A daemon on a host of its own name, as far as root can make one."""
        host = ["unshare", "--uts", "sh", "-c", f'hostname {hostname} && exec "$@"', "sh"] if os.getuid() == 0 else []
        process = Process([*host, BIN / program, "-d", "--cleanup-interval", "5", *options],
                          self.folder / f"{hostname}.log", {"OS_CLIENT_CONFIG_FILE": str(self.folder / "clouds.yaml")})
        self.site.started.append(process)
        return process

    # --- What is in it ----------------------------------------------------------------

    def ask(self, number: int, path: str, method="GET", token: str | None = None, body=None):
        """A launcher's answer in JSON; None: it does not answer yet."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {self.tokens[token]}"
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports[number]}/api/v1/{path}", method=method,
                                         headers=headers, data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                text = answer.read()
                return json.loads(text) if text else {}
        except OSError:
            return None

    def entries(self, name: str, number: int = 0) -> list[dict]:
        return self.ask(number, name)[name]

    def use(self, label: str, count: int, **fields):
        """Nodes in use by Zuul's executors."""
        requests = [self.tree.add_request([label], requestor="zuul.opendev.org", **fields) for _ in range(count)]
        for request in requests:
            self.held += self.tree.use(request)

    def hold(self, label: str, count: int):
        for number in range(count):
            request = self.tree.add_request([label], requestor="zuul.opendev.org", tenant_name="zuul")
            ((node, lock),) = self.tree.use(request)
            self.tree.change_node(node, state="hold", state_time=time.time() - 3600 * number,
                                  comment=f"tempest-full-py3 fails with a time-out, see change 93147{number},1",
                                  hold_job="tempest-full-py3", hold_expiration=86400)
            lock.release()

    def lease(self, label: str) -> str:
        made = self.ask(0, "requests", "POST", "ci", {"labels": [label], "lease": 3600, "requestor": "gitlab-runner-7"})
        wait_for(lambda: self.ask(0, f"requests/{made['id']}", token="ci")["state"] == "held", "the lease is held", 60)
        return made["id"]

    def fill(self, nodes: int):
        tree = self.tree
        tree.zk.create("/nodepool/jobs/", b'{"name": "tempest-full-py3", "hold_on_failure": 2}', makepath=True, sequence=True)
        tree.zk.create("/nodepool/jobs/", b'{"name": "^kolla-ansible-.*-upgrade$", "hold_on_failure": 1}', sequence=True)
        wait_for(lambda: any(each["state"] == "ready" for each in self.entries("uploads")), "an image is uploaded", 60)
        self.use("rockylinux-9", nodes * 5 // 12)
        self.use("debian-bookworm-kubernetes-control-plane-large", nodes // 3)
        self.use("centos-9-stream", nodes // 12)
        self.use("ubuntu-noble-arm64-16GB", 4)
        self.use("centos-9-stream", 8, tenant_name="openstack")
        self.hold("ubuntu-jammy", 5)
        self.leased = self.lease("rockylinux-9")
        tree.zk.create("/nodepool/paused-providers/osuosl-regionone-arm64", makepath=True, value=json.dumps(
            {"reason": "the site moves to another data centre, see RT 48812", "drain": False, "paused_by": "ada@bastion",
             "paused_time": time.time() - 7200}).encode())
        for _ in range(5):  # the tenant's limit
            tree.add_request(["ubuntu-noble"], requestor="zuul.opendev.org", tenant_name="openstack")
        for _ in range(4):  # the cloud is full
            tree.add_request(["debian-bookworm-kubernetes-control-plane-large"], requestor="zuul.opendev.org", tenant_name="zuul")
        for _ in range(2):  # the cloud is away
            tree.add_request(["nested-virt-centos-9-stream"], requestor="zuul.opendev.org", tenant_name="vexxhost")
        for _ in range(2):  # hosts that do not exist
            tree.add_request([STATIC_LABEL], requestor="zuul.opendev.org", tenant_name="airship")
        wait_for(lambda: sum(each["state"] == "requested" for each in self.entries("requests")) >= 9, "requests wait", 60)
        away = [number for number, share in enumerate(self.shares) if "vexxhost-ca-ymq-1" in share][0]
        wait_for(lambda: any(each["fault"] for each in self.entries("providers", away)), "a cloud is away", 60)

    def stop(self):
        self.site.stop()
