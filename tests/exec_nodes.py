"""Static hosts behind real SSH servers, and `nodepool exec` on them."""
import os
import pwd
import subprocess

import yaml

from lease_client import LeaseClient, make_token
from nodepool_helpers import BIN
from services import LOOPBACK, Process, free_port, wait_for
from web_client import first_answer, web_config

USER = pwd.getpwuid(os.getuid()).pw_name


def host(sshd, label, **settings):
    return {"name": LOOPBACK, "connection-port": sshd.port, "host-key": sshd.host_key, "labels": label,
            "username": USER, **settings}


class Nodes:
    """Static hosts of a site, with so many slots in all, and `nodepool exec` on them: with ZooKeeper, or over HTTP with the
    token `ci`; `tls`, a WebTls: over HTTPS."""

    def __init__(self, site, sshd, *hosts, slots=1, is_over_http=False, lease="30s", tls=None):
        self.site, self.key, self.slots, self.is_over_http, self.lease = site, sshd.login_key(), slots, is_over_http, lease
        labels = sorted({each["labels"] for each in hosts})
        self.port = free_port()
        self.tls = tls
        self.url = f"https://localhost:{self.port}" if tls else f"http://127.0.0.1:{self.port}"
        self.config = web_config(site, self.port, tls, labels=[{"name": label} for label in labels], providers=[
            {"name": "metal", "driver": "static", "pools": [{"name": "main", "nodes": list(hosts)}]}])
        self.token, entry = make_token(site.config("token"), "ci", "--scope", "request")
        self.token_file = site.folder / "token.txt"
        self.token_file.write_text(self.token + "\n")
        self.secure = site.folder / "secure.yaml"
        self.secure.write_text(yaml.safe_dump({"webapp-tokens": [entry]}))
        self.start_launcher()
        self.tree = site.tree()
        self.wait_ready()

    def start_launcher(self):
        self.launcher = self.site.launcher(self.config, options=("-s", self.secure))
        first_answer(self.port, "/ready", self.tls and self.tls.client())

    def wait_ready(self, seconds=60):
        """All nodes are there, and none is in use."""
        wait_for(lambda: [node["state"] for node in self.tree.nodes().values()] == ["ready"] * self.slots
                 and not self.tree.children("/nodepool/leases"), f"{self.slots} nodes are ready", seconds)

    def client(self) -> LeaseClient:
        return LeaseClient([self.port], self.token, self.tls and self.tls.client())

    def words(self, *words, command="exec", url=None):
        if not self.is_over_http:
            return [BIN / "nodepool", "-c", self.site.config("tool"), command, "-i", self.key, *words]
        return [BIN / "nodepool", command, "--server", url or self.url, "--token-file", self.token_file, "--lease", self.lease,
                "-i", self.key, *words]

    def run(self, *words, **options):
        return subprocess.run(self.words(*words), capture_output=True, text=True, timeout=60, **options)

    def start(self, *words, name="exec", url=None):
        process = Process(self.words(*words, url=url), self.site.folder / f"{name}.log")
        self.site.started.append(process)
        return process
