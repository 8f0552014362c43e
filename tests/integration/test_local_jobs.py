"""`nodepool standalone` beside jobs that can connect to this host's loopback interface."""
import json
import socket
import stat
import urllib.error
import urllib.request

import pytest
import yaml
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from nodepool_helpers import fake_provider
from services import wait_for
from standalone import Standalone

# Its jobs run here. Nothing is contacted.
HERE = {"name": "here", "driver": "static", "pools": [{"name": "main", "nodes": [
    {"name": "127.0.0.1", "labels": ["here"], "host-key-checking": False}]}]}


@pytest.fixture
def site(tmp_path):
    standalone = Standalone(tmp_path, labels=[{"name": "small", "min-ready": 1}, {"name": "here"}],
                            webapp={"listen_address": "127.0.0.1", "port": 0, "read-needs-token": True})
    settings = yaml.safe_load(standalone.config.read_text())
    settings["webapp"]["port"] = standalone.web_port
    standalone.config.write_text(yaml.safe_dump(settings))
    yield standalone
    if standalone.process:
        standalone.process.kill()


def set_providers(site, *providers):
    settings = yaml.safe_load(site.config.read_text())
    site.config.write_text(yaml.safe_dump({**settings, "providers": list(providers)}))


def secret_of(site) -> str:
    return (site.folder / "state/zookeeper.secret").read_text().strip()


def connect(site, **options) -> KazooClient:
    client = KazooClient(f"127.0.0.1:{site.port}", timeout=4, **options)
    client.start(10)
    return client


def word(site, text: str) -> str:
    with socket.create_connection(("127.0.0.1", site.port), timeout=10) as connection:
        connection.sendall(text.encode())
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def status(site, path: str, body: dict | None = None) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{site.web_port}{path}", headers={"Content-Type": "application/json"},
                                     data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        return refusal.code


def read_without_secret(site):
    client = KazooClient(f"127.0.0.1:{site.port}", timeout=4)
    client.start(10)
    try:
        return client.get_children("/nodepool")
    finally:
        client.stop()
        client.close()


EVENT = {"name": "unit", "build": {"node_name": "x", "status": "FAILURE"}}


# LV-63, D-110
def test_a_job_gets_nothing_for_being_local(site):
    set_providers(site, fake_provider(), HERE)
    site.start()
    assert site.wait_ready(), "commands read the secret by themselves"
    file = site.folder / "state/zookeeper.secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(NoAuthError):
        read_without_secret(site)
    assert "secret" in word(site, "dump") and word(site, "ruok") == "imok"
    client = connect(site, auth_data=[("digest", f"nodepool:{secret_of(site)}")])
    assert "nodes" in client.get_children("/nodepool")
    client.stop()
    client.close()
    assert status(site, "/ready") == 200
    assert status(site, "/api/v1/nodes") in (401, 403)
    assert status(site, "/api/v1/job-events", EVENT) in (401, 403)
    assert secret_of(site) not in site.process.output()
    file.write_text("not the secret, but as long\n")
    refused = site.tool("list")
    assert refused.returncode == 1 and "zookeeper.secret" in refused.stderr


# LV-63
def test_what_was_granted_ends_when_such_jobs_come(site):
    set_providers(site, fake_provider())
    site.start()
    site.wait_ready()
    assert "nodes" in read_without_secret(site)
    assert status(site, "/api/v1/nodes") == 200 and status(site, "/api/v1/job-events", EVENT) == 200
    set_providers(site, fake_provider(), HERE)
    wait_for(lambda: "have to know its secret" in site.process.output(), "the provider is in force")
    with pytest.raises(NoAuthError):
        read_without_secret(site)
    wait_for(lambda: status(site, "/api/v1/nodes") in (401, 403), "local requests are like others")
    set_providers(site, fake_provider())
    wait_for(lambda: "here" not in site.tool("provider-list", "--json").stdout, "the provider is gone")
    with pytest.raises(NoAuthError):
        read_without_secret(site)
    assert site.wait_ready()
