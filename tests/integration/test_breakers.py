"""Breakers with real processes (docs/spec/breaker.md)."""
import json

import pytest
import yaml

from lease_client import LeaseSite
from nodepool_helpers import fake_provider
from services import wait_for

RECORD = "/nodepool/breakers/cloud-a:main:small"


@pytest.fixture
def leases(site):
    """Two launchers of two providers; the preferred one makes no machine."""
    failing = {"directory": str(site.folder / "cloud-a"), "create-failure-rate": 1.0}
    first = {**fake_provider("cloud-a", simulation=failing), "breaker": {"probe-after": 5, "probe-max": 10}}
    second = fake_provider("cloud-b", simulation={"directory": str(site.folder / "cloud-b")}, priority=200)
    leases = LeaseSite(site, providers=[first, second])
    leases.token("ops", "--scope", "operate")
    leases.start()
    leases.start()
    return leases


def of_each(leases, path: str) -> list:
    answers = []
    for port in leases.launchers:
        client = leases.client("ops")
        client.ports = [port]
        answers.append(client.ask("GET", path))
    return answers


def mend(site, leases):
    """Both launchers read a configuration in which the first cloud works."""
    for port in leases.launchers:
        path = site.folder / f"launcher-{port}.yaml"
        content = yaml.safe_load(path.read_text())
        content["providers"][0]["simulation"]["create-failure-rate"] = 0.0
        part = path.with_suffix(".part")
        part.write_text(yaml.safe_dump(content))
        part.rename(path)


def provider_of(tree, request: str) -> str:
    return tree.node(tree.wait_request(request, "fulfilled")["nodes"][0])["provider"]


# BRK-5, BRK-9, BRK-13, BRK-15
def test_requests_go_elsewhere_until_launches_work_again(site, leases):
    tree = site.observer()
    assert provider_of(tree, tree.add_request(["small"])) == "cloud-b"
    wait_for(lambda: tree.record(RECORD), "the breaker is open")
    assert tree.record(RECORD)["kinds"] == "other 3"
    request = tree.add_request(["small"])
    assert provider_of(tree, request) == "cloud-b"

    for answer in of_each(leases, "/api/v1/breakers"):
        breaker, = answer.json["breakers"]
        assert (breaker["provider"], breaker["pool"], breaker["label"]) == ("cloud-a", "main", "small")
        assert "failed to create a server" in breaker["said"]
    for answer in of_each(leases, "/metrics"):
        assert 'nodepool_provider_breakers_open{provider="cloud-a"} 1' in answer.text
    what = "The breaker of label small in pool main of provider cloud-a is open: 3 of 3 launches failed (other 3)"
    assert what in site.tool("status").stdout
    row = next(row for row in json.loads(site.tool("provider-list", "--json").stdout) if row["name"] == "cloud-a")
    assert "the breaker of label small in pool main is open" in row["why"]
    assert "Open breakers:" in site.tool("info", "cloud-a").stdout
    for process in leases.launchers.values():
        assert process.output().count(what) == 1

    mend(site, leases)

    def is_closed():
        record = tree.record(RECORD)
        if record and record["prober"]:
            request = tree.add_request(["small"])
            provider_of(tree, request)
            tree.zk.delete(f"/nodepool/requests/{request}")  # its node is deleted, so that the other cloud does not fill
        return not tree.record(RECORD)

    wait_for(is_closed, "a launch that is tried closes it", 150, pause=1)
    assert provider_of(tree, tree.add_request(["small"])) == "cloud-a"
