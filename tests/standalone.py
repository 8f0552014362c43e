"""`nodepool standalone` with a simulated cloud."""
import json
import subprocess

import yaml

from nodepool_helpers import BIN, fake_provider
from services import Process, free_port, wait_for


class Standalone:
    def __init__(self, folder, **settings):
        self.folder = folder
        self.port = free_port()
        self.web_port = free_port()
        self.config = folder / "nodepool.yaml"
        content = {"embedded-zookeeper": {"state-dir": str(folder / "state"), "port": self.port},
                   "webapp": {"listen_address": "127.0.0.1", "port": self.web_port}, "zookeeper-timeout": 4.0,
                   "labels": [{"name": "small", "min-ready": 1}], "providers": [fake_provider()], **settings}
        self.config.write_text(yaml.safe_dump(content))
        self.process = None

    def start(self, *options):
        self.process = Process([BIN / "nodepool", "standalone", "-c", self.config, *options],
                               self.folder / "standalone.log")
        return self

    def tool(self, *words) -> subprocess.CompletedProcess:
        return subprocess.run([BIN / "nodepool", "-c", self.config, *words], capture_output=True, text=True, timeout=60)

    def nodes(self) -> list[dict]:
        done = self.tool("list", "--json", "--wait-for-server")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def wait_ready(self) -> dict:
        return wait_for(lambda: next((node for node in self.nodes() if node["state"] == "ready"), None),
                        "a node is ready")
