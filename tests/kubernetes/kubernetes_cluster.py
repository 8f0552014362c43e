"""What the tests do with a real API server: by kubectl, by its controls, and Nodepool with providers on it."""
import base64
import json
import os
import pathlib
import subprocess
import urllib.request
import uuid

import yaml

from nodepool_helpers import Installation, run
from services import wait_for

LABEL = "nodepool_provider_name"


def lines(launcher, text: str) -> list[str]:
    """The lines of its log with that text, but for debugging."""
    return [line for line in launcher.output().splitlines() if text in line and " DEBUG " not in line]


class Cluster:
    """A cluster whose state is in a folder."""

    def __init__(self, state: pathlib.Path, commands: pathlib.Path):
        self.state = state
        self.commands = commands

    def up(self, *options):
        run(self.commands / "kubernetes-up", self.state, *options)
        self.settings = json.loads((self.state / "settings.json").read_text())

    def down(self, *words):
        run(self.commands / "kubernetes-down", self.state, *words)

    @property
    def kubeconfig(self) -> pathlib.Path:
        return self.state / "nodepool.kubeconfig"

    def kubectl(self, *words, kubeconfig: pathlib.Path | None = None, check: bool = True) -> str:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig or self.state / "admin.kubeconfig")}
        done = subprocess.run([self.settings["kubectl"], *map(str, words)], capture_output=True, text=True,
                              timeout=120, env=environment)
        assert done.returncode == 0 or not check, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def get(self, *words) -> list[dict]:
        return json.loads(self.kubectl("get", *words, "-o", "json"))["items"]

    def namespaces(self, provider: str = "cluster") -> list[str]:
        return sorted(item["metadata"]["name"] for item in self.get("namespaces", "-l", f"{LABEL}={provider}"))

    def projects(self) -> list[str]:
        """Projects that a requester has made."""
        return sorted(item["metadata"]["name"] for item in self.get("namespaces")
                      if "openshift.io/requester" in item["metadata"].get("annotations", {}))

    def pods(self, namespace: str) -> list[str]:
        return sorted(item["metadata"]["name"] for item in self.get("pods", "-n", namespace))

    # The stand-in for the kubelets, and the front before the API server.
    def control(self, method: str, path: str, content: dict | None = None, front: bool = False):
        base = self.settings["faults_control" if front else "control"]
        body = None if content is None else json.dumps(content).encode()
        with urllib.request.urlopen(urllib.request.Request(base + path, body, method=method), timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def fault(self, method: str, path: str, fault, **more):
        """The next request that matches gets a fault from the front."""
        self.control("POST", "/rules", {"method": method, "path": path, "fault": fault, "count": 1, **more}, front=True)

    def requests(self) -> list[dict]:
        return self.control("GET", "/requests", front=True)

    def pods_behave(self, **rule):
        self.control("POST", "/rules", rule)

    def clear(self):
        for front in (False, True):
            self.control("DELETE", "/rules", front=front)
        self.control("POST", "/settings", {"start": 1, "stop": 0, "paused": False})
        for namespace in self.settings["pools"]:
            self.kubectl("delete", "pods,resourcequotas", "--all", "-n", namespace, "--grace-period=1", "--wait=false")
        names = {item["metadata"]["name"] for item in self.get("namespaces") if LABEL in item["metadata"].get("labels", {})}
        names |= set(self.projects())
        if names:
            self.kubectl("delete", "namespace", *names, "--wait=false", check=False)
        wait_for(lambda: not [item for item in self.get("namespaces") if item["metadata"]["name"] in names],
                 "the cluster is empty", 120)
        for namespace in self.settings["pools"]:
            wait_for(lambda: self.pods(namespace) == [], f"{namespace} is empty", 60)
        self.control("DELETE", "/requests", front=True)


class KubernetesSite(Installation):
    """Nodepool with one provider of driver kubernetes in the cluster."""

    def __init__(self, folder: pathlib.Path, hosts: str, cluster: Cluster):
        super().__init__(folder, hosts, chroot=f"/kubernetes-{uuid.uuid4().hex}")
        self.cluster = cluster
        self.settings["labels"] = [{"name": name} for name in ("pod-small", "empty", "project")]
        self.settings["providers"] = [self.provider()]

    def provider(self, pool: dict | None = None, label: dict | None = None, **settings) -> dict:
        labels = [{"name": "pod-small", "type": "pod", "image": "registry.example/debian:12", **(label or {})},
                  {"name": "empty", "type": "namespace"}]
        return {"name": "cluster", "driver": "kubernetes", "context": "kubernetes", "launch-timeout": 60,
                "pools": [{"name": "main", "labels": labels, **(pool or {})}], **settings}

    def openshift(self, **settings) -> dict:
        labels = [{"name": "pod-small", "type": "pod", "image": "registry.example/debian:12"},
                  {"name": "project", "type": "project"}]
        return {"name": "cluster", "driver": "openshift", "context": "openshift", "launch-timeout": 60,
                "pools": [{"name": "main", "labels": labels}], **settings}

    def openshift_pods(self, pools=("pool-a",), **settings) -> dict:
        return {"name": "cluster", "driver": "openshiftpods", "context": "pods", "launch-timeout": 60,
                "pools": [{"name": name, "labels": [{"name": "pod-small", "image": "registry.example/debian:12"}]}
                          for name in pools], **settings}

    def start(self, *providers, **named):
        """A launcher with these providers."""
        return self.launcher(self.config(providers=list(providers)), **named)

    def kubeconfig_of(self, node: dict) -> pathlib.Path:
        """A kubeconfig made of a node's record alone, as its consumer makes it."""
        port = node["connection_port"]
        cluster = {"server": port["host"], "insecure-skip-tls-verify": port["skiptls"]}
        if port.get("ca_crt"):
            cluster["certificate-authority-data"] = port["ca_crt"]
        content = {"apiVersion": "v1", "kind": "Config", "current-context": "node",
                   "clusters": [{"name": "cluster", "cluster": cluster}],
                   "users": [{"name": port["user"], "user": {"token": port["token"]}}],
                   "contexts": [{"name": "node", "context": {"cluster": "cluster", "user": port["user"],
                                                             "namespace": port["namespace"]}}]}
        path = self.folder / f"{port['namespace']}.kubeconfig"
        path.write_text(yaml.safe_dump(content))
        return path

    def may(self, node: dict, *words) -> bool:
        """Whether the node's consumer may do something: may(node, "create", "pods/exec")."""
        if "/" in words[1]:
            kind, part = words[1].split("/")
            words = [words[0], kind, f"--subresource={part}", *words[2:]]
        return self.cluster.kubectl("auth", "can-i", *words, kubeconfig=self.kubeconfig_of(node),
                                    check=False).strip() == "yes"

    def give_back(self, tree, held, seconds: float = 60):
        tree.give_back(held)
        for node_id, _ in held:
            tree.wait_node_gone(node_id, seconds)

    def tokens(self, *nodes) -> list[str]:
        """The secrets of nodes, in both forms."""
        plain = [node["connection_port"]["token"] for node in nodes]
        return plain + [base64.b64encode(token.encode()).decode() for token in plain]
