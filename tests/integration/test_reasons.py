"""Why requests wait (launcher.md 8.1): the reason that decides, wherever it is shown, and across launchers."""
import contextlib
import json
import os
import signal
import subprocess

from nodepool_helpers import BIN, fake_provider
from services import free_port, wait_for
from web_client import get, web_config

HOSTNAME = os.uname().nodename.split(".")[0]
FULL = "second-cloud main uses 1 of 1 instances; raise its max-servers, or wait for nodes"


class Launcher:
    """One with its own configuration and web server."""

    def __init__(self, site, name, provider):
        self.port = free_port()
        self.config = web_config(site, self.port, name=name, providers=[provider],
                                 labels=[{"name": label} for label in ("large", "small")])
        self.process = site.launcher(self.config, wait=False)

    def list(self, resource):
        """Empty until the launcher serves it."""
        try:
            status, _, body = get(self.port, f"/api/v1/{resource}")
        except OSError:
            return []
        return json.loads(body)[resource] if status == 200 else []

    def reason(self, request):
        found = next((entry for entry in self.list("requests") if entry["id"] == request), None)
        return found and found["reason"]

    def wait_reason(self, request, text, **fields):
        def reason():
            found = self.reason(request)
            return found if found and found["text"].startswith(text) else None

        found = wait_for(reason, f"the reason is {text}", 20)
        assert {key: found[key] for key in fields} == fields
        return found


@contextlib.contextmanager
def stopped(process):
    process.pause()
    try:
        yield
    finally:
        process.resume()


def two_launchers(site):
    first = Launcher(site, "first", fake_provider("first-cloud", labels=("large",)))
    second = Launcher(site, "second", fake_provider("second-cloud", labels=("small",), **{"max-servers": 1}))
    wait_for(lambda: {p["name"] for p in first.list("providers") if p["state"] == "up" and p["pools"]}
             == {"first-cloud", "second-cloud"}, "both are up")
    return first, second


# WHY-1, WHY-2, WHY-4
def test_each_launcher_shows_the_cluster(site):
    first, second = two_launchers(site)
    tree = site.tree()
    held = tree.use(tree.add_request(["small"]))
    waiting = tree.add_request(["small"])
    tree.wait_request(waiting, "pending")
    behind = tree.add_request(["small"])
    for launcher in (first, second):
        for request in (waiting, behind):
            launcher.wait_reason(request, FULL, provider="second-cloud", pool="main", launcher=HOSTNAME)
    own = next(entry for entry in first.list("requests") if entry["id"] == behind)["waits"]
    assert [wait["text"] for wait in own] == ["left to second-cloud main, which has its labels"]

    others = next(p for p in first.list("providers") if p["name"] == "second-cloud")
    assert (others["is_own"], others["driver"], others["launchers"]) == (False, None, [HOSTNAME])
    assert others["nodes"]["in-use"] == 1 and others["used"]["instances"] == 1
    assert [(pool["name"], [label["name"] for label in pool["labels"]]) for pool in others["pools"]] == [("main", ["small"])]
    assert next(p for p in first.list("providers") if p["name"] == "first-cloud")["driver"] == "fake"

    shown = site.tool("request-list", "--detail", config=first.config).stdout
    assert FULL in next(row for row in shown.splitlines() if behind in row)
    assert "left to" not in shown and "PoolWorker" not in shown
    shown = site.tool("request-list", "--all-pools", config=first.config).stdout
    assert "left to second-cloud main" in shown
    shown = site.tool("status", config=first.config).stdout
    row = next(row for row in shown.splitlines() if row.endswith(FULL))
    assert row.split()[0] == "2" and waiting in row
    output = first.process.output() + second.process.output()
    assert f"The request for small waits: {FULL}" in second.process.output()
    assert "NodeRequestHandler[second-cloud-main]" in output and "NodeRequestHandler[" + HOSTNAME not in output
    tree.give_back(held)


# WHY-3
def test_a_launcher_that_does_not_answer_is_named(site):
    first, second = two_launchers(site)
    tree = site.tree()
    held = tree.use(tree.add_request(["small"]))
    tree.wait_request(tree.add_request(["small"]), "pending")
    behind = tree.add_request(["small"])
    with stopped(second.process):
        first.wait_reason(behind, f"launcher {HOSTNAME} does not answer: ", code="launcher-silent", provider=None)
    first.wait_reason(behind, FULL)
    tree.give_back(held)


# WHY-2
def test_the_tenants_limit_has_figures(site):
    port = free_port()
    config = web_config(site, port, providers=[fake_provider()],
                        tenant_resource_limits=[{"tenant-name": "t1", "max-servers": 1}])
    launcher = Launcher.__new__(Launcher)
    launcher.port, launcher.config, launcher.process = port, config, site.launcher(config)
    tree = site.tree()
    held = tree.use(tree.add_request(["small"], tenant_name="t1"))
    launcher.wait_reason(tree.add_request(["small"], tenant_name="t1"), "tenant t1 has 1 of max-servers 1",
                         code="tenant-limit")
    tree.give_back(held)


# WHY-6
def test_a_command_without_a_terminal_says_why_it_waits(site):
    port = free_port()
    config = web_config(site, port, providers=[fake_provider(**{"max-servers": 1})])
    site.launcher(config)
    tree = site.tree()
    held = tree.use(tree.add_request(["small"]))
    command = subprocess.Popen([BIN / "nodepool", "-c", config, "request", "--wait", "small"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        lines = iter(command.stderr.readline, "")
        said = next(line for line in lines if "Waiting: " in line)
        assert "Waiting: fake-cloud main uses 1 of 1 instances; raise its max-servers, or wait for nodes" in said
    finally:
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=60)
    tree.give_back(held)
