"""How a launcher ends (launcher.md 26)."""
import signal
import time

import pytest

from nodepool_helpers import fake_provider
from services import wait_for


# BB-34, D-65
def test_sigterm_ends_at_once_and_frees_the_locks(private_site):
    """The session is closed, not left to its timeout; nothing is given back."""
    config = private_site.config(providers=[fake_provider(simulation={"create-latency": 3600.0})],
                                 **{"zookeeper-timeout": 60.0})
    launcher = private_site.launcher(config)
    tree = private_site.tree()
    request = tree.add_request(["small"], ephemeral=False)
    tree.wait_request(request, "pending")
    node_id, = wait_for(lambda: list(tree.nodes()), "a node is being built")
    start = time.monotonic()
    launcher.send(signal.SIGTERM)
    assert launcher.wait(5) == 0
    assert time.monotonic() - start < 5
    assert tree.components("launcher") == {}
    assert tree.node_contenders(node_id) == []
    assert tree.request(request)["state"] == "pending"


# BB-34, D-24
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_a_graceful_stop_gives_requests_back(site, number):
    launcher = site.launcher(site.config(providers=[fake_provider(simulation={"create-latency": 3600.0})]))
    tree = site.tree()
    request = tree.add_request(["small"], ephemeral=False)
    tree.wait_request(request, "pending")
    wait_for(lambda: tree.nodes(), "a node is being built")
    launcher.send(number)
    assert launcher.wait(40) == 0
    record = tree.request(request)
    assert record["state"] == "requested"
    assert record["declined_by"] == []
    assert tree.components("pool") == {}


# BB-34
def test_a_graceful_stop_waits_for_deletions(site):
    launcher = site.launcher(site.config(providers=[fake_provider(simulation={"delete-latency": 3.0})]))
    tree = site.tree()
    held = tree.use(tree.add_request(["small"]))
    tree.give_back(held)
    tree.wait_node(held[0][0], state="deleting")
    launcher.send(signal.SIGINT)
    assert launcher.wait(40) == 0
    tree.wait_node_gone(held[0][0], 1)
