"""`nodepool standalone --try`: somebody else's configuration, and nothing is changed (operations.md 1.1)."""
import json
import re
import signal

import pytest
import yaml

from nodepool_helpers import BIN, fake_provider
from services import LOOPBACK, Process, wait_for
from web_client import get

FILE = {
    "zookeeper-servers": [{"host": "zk.example.org", "port": 2281}],
    "zookeeper-tls": {"cert": "/nowhere/cert.pem", "key": "/nowhere/key.pem", "ca": "/nowhere/ca.pem"},
    "webapp": {"port": 1, "tls": {"cert": "/nowhere/cert.pem", "key": "/nowhere/key.pem"}},
    "labels": [{"name": "small", "min-ready": 1}],
    "providers": [fake_provider("north"), {"name": "south", "driver": "openstack", "cloud": "nowhere", "pools": []}],
}


class Trial:
    def __init__(self, folder, **environment):
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.config = folder / "nodepool.yaml"
        self.config.write_text(yaml.safe_dump(FILE))
        self.process = Process([BIN / "nodepool", "standalone", "--try", "-c", self.config], folder / "try.log",
                               env={"TMPDIR": str(self.temporary), **environment})
        wait_for(lambda: "Provider south" in self.process.output() or not self.process.is_running(), "the clouds are asked")
        first, *_ = self.process.output().splitlines()
        self.port = int(re.fullmatch(rf"The page: http://{LOOPBACK}:(\d+)/", first)[1])

    def read(self, path) -> dict:
        return json.loads(get(self.port, path)[2])

    def end(self, number) -> int:
        self.process.send(number)
        return self.process.wait(20)


@pytest.fixture
def trial(tmp_path):
    trial = Trial(tmp_path)
    yield trial
    trial.process.stop()


# TRY-1
def test_the_page_is_there_and_the_files_servers_are_not_used(trial):
    assert "<html" in get(trial.port, "/")[2]
    assert "zk.example.org" not in trial.process.output()


# TRY-2
def test_each_provider_has_a_line_also_when_the_file_has_changed(trial):
    wait_for(lambda: "Provider north is good\n" in trial.process.output(), "the good one is named")
    assert "no clouds.yaml" in trial.process.output()
    trial.config.write_text(yaml.safe_dump({**FILE, "providers": [fake_provider("east")]}))
    wait_for(lambda: "Provider east is good\n" in trial.process.output(), "the new one is named")


# TRY-3
def test_nothing_is_launched(trial):
    """Label small has a min-ready, and the cloud of its pool is up."""
    wait_for(lambda: any((provider["name"], provider["state"]) == ("north", "up")
                         for provider in trial.read("/api/v1/providers")["providers"]), "the cloud is up")
    assert (trial.read("/api/v1/requests")["requests"], trial.read("/api/v1/nodes")["nodes"]) == ([], [])


# TRY-4
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_remains(trial, number):
    assert list(trial.temporary.iterdir()), "the state is there"
    assert trial.end(number) == 0
    assert list(trial.temporary.iterdir()) == []


def test_it_needs_its_page(tmp_path):
    process = Process([BIN / "nodepool", "standalone", "--try", "--no-webapp"], tmp_path / "log")
    assert process.wait(20) == 2 and "--no-webapp" in process.output()
