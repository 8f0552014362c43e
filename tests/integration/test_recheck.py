"""Ready nodes are checked again by a command on the launcher's host."""
import pytest

from nodepool_helpers import fake_provider
from services import free_port, wait_for
from web_client import get

CHECK = """#!/bin/sh
echo "$NODEPOOL_NODE $NODEPOOL_PROVIDER $NODEPOOL_HOST $NODEPOOL_PORT $1" >> {log}
grep -qx "$NODEPOOL_NODE" {sick} || exit 0
echo "the disk is full"
exit 3
"""


# BB-48
@pytest.mark.long
def test_a_node_that_the_command_fails_is_replaced(site, tmp_path):
    check, log, sick = (tmp_path / name for name in ("check-node", "log", "sick"))
    check.write_text(CHECK.format(log=log, sick=sick))
    check.chmod(0o755)
    sick.touch()
    port = free_port()
    provider = fake_provider(**{"recheck-interval": 10, "recheck": f"{check} 'two words'"})
    config = site.config(labels=[{"name": "small", "min-ready": 3}], providers=[provider],
                         webapp={"listen_address": "127.0.0.1", "port": port})
    launcher = site.launcher(config)
    tree = site.observer()

    def ready():
        return {id for id, node in tree.nodes().items() if node["state"] == "ready"}

    wait_for(lambda: len(ready()) == 3, "three nodes are ready")
    chosen = min(ready())
    host = tree.node(chosen)["interface_ip"]
    wait_for(lambda: log.exists() and f"{chosen} fake-cloud {host} 22 two words\n" in log.read_text(),
             "the command gets node and words", 30)
    sick.write_text(chosen + "\n")
    tree.wait_node_gone(chosen, 60)
    wait_for(lambda: len(ready()) == 3, "it is replaced")
    assert "does not stand its check, which ended with 3: the disk is full: it is deleted" in launcher.output()
    metric = 'nodepool_ready_nodes_failed_total{provider="fake-cloud",reason="command"} 1'
    assert metric in get(port, "/metrics")[2]
