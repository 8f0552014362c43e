"""The commands of docs/operator that stand after a $ are run as they are, in a shell, page by page.

They find the programs, a configuration and a running `nodepool standalone` at the usual places, and a node, an image and
a provider that have the names of the pages.
"""
import json
import os
import re
import signal
import subprocess

import pytest
import yaml

from images import image
from lease_client import make_token
from nodepool_helpers import BIN, ROOT, fake_provider
from reader import Reader, awaited_of
from services import wait_for
from standalone import Standalone

PAGES = sorted((ROOT / "docs/operator").glob("*.md"))
COMMAND = re.compile(r"^ +\$ (.*)$", re.M)
NODE = "0000000042"
BUILD = "debian-0123456789abcdef0123456789abcdef"


class Site(Standalone):
    """In the background of the commands: what they talk to."""

    def __init__(self, folder):
        (folder / "images").mkdir()
        provider = fake_provider()
        provider["diskimages"] = [{"name": "debian"}]
        super().__init__(folder, providers=[provider], diskimages=[image()], labels=[{"name": "small", "min-ready": 3}],
                         **{"images-dir": str(folder / "images"), "build-log-dir": str(folder / "logs")})
        self.web_port = int(re.search(r"port: (\d+)", self.config.read_text().split("webapp")[1])[1])
        self.token, entry = make_token(self.config, "operator", "--scope", "request", "--scope", "operate")
        self.secure = folder / "secure.yaml"
        self.secure.write_text(yaml.safe_dump({"webapp-tokens": [entry]}))
        self.commands = folder / "commands"
        self.commands.mkdir()
        self.command("nodepool", f'exec {BIN}/nodepool -c {self.config} "$@"')
        # The unit runs, so to speak.
        self.command("systemctl", f'[ "$1" = reload ] && kill -HUP "$(cat {folder}/pid)"')

    def command(self, name, text):
        path = self.commands / name
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)

    def list(self, command) -> list[dict]:
        return json.loads(self.tool(command, "--json").stdout)

    def add_upload_in(self, provider: str):
        """The record of an upload to a provider that is not configured any more."""
        path = f"/nodepool/images/debian/builds/{'f' * 32}/providers/{provider}/images/0000000001"
        records = self.folder / "records.json"
        records.write_text(json.dumps({path: json.dumps({"state": "ready", "state_time": 1})}))
        self.tool("import-image-data", "--force", records)

    def run(self, command: str) -> subprocess.CompletedProcess:
        if NODE in command:
            held = [node for node in self.nodes() if node["state"] == "hold"]
            command = command.replace(NODE, (held or [self.wait_ready()])[0]["id"])
        if BUILD in command:
            ready = wait_for(lambda: [build for build in self.list("dib-image-list") if build["state"] != "building"],
                             "an image is built")
            command = command.replace(BUILD, ready[0]["id"])
        if "erase gone-cloud" in command:
            self.add_upload_in("gone-cloud")
        command = command.replace("localhost:8005", f"127.0.0.1:{self.web_port}")
        return subprocess.run([*self.words(), "bash", "-c", command], capture_output=True, text=True, timeout=60)

    def words(self) -> list:
        """Before a command that runs as on the pages."""
        return ["env", "-C", self.folder, f"PATH={self.commands}:{os.environ['PATH']}", f"NODEPOOL_TOKEN={self.token}"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    running = Site(tmp_path_factory.mktemp("operator"))
    running.start("-s", running.secure)
    (running.folder / "pid").write_text(str(running.process.pid))
    try:
        running.wait_ready()
        wait_for(lambda: any(upload["state"] == "ready" for upload in running.list("image-list")), "an image is uploaded")
        yield running
    finally:
        running.process.stop(number=signal.SIGINT)


def test_there_are_commands():
    assert sum(len(COMMAND.findall(page.read_text())) for page in PAGES) >= 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_work(site, page):
    for command in COMMAND.findall(page.read_text()):
        if awaited_of(command):
            with Reader(site.words()) as reader:
                reader.type(command)
                reader.press_ctrl_c()
                reader.expect_the_end()
            continue
        done = site.run(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        for word in ("ERROR", "not found", "Cannot", "503 Service"):
            assert word not in done.stdout + done.stderr, f"{command}\n{done.stdout}{done.stderr}"
        if command.startswith("nodepool hold"):
            assert "hold" in done.stdout and "bug 1234" in site.tool("list", "--detail").stdout
    assert site.process.is_running()
