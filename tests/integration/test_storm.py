"""Everything dies again and again while work goes on."""
import random

import pytest
from kazoo.exceptions import NoNodeError

from nodepool_helpers import Installation, fake_provider
from services import wait_for

REQUESTS = 500
PART_PREFIX = "part-"  # of files of the simulated cloud that are not whole


@pytest.fixture
def site(tmp_path, ensemble):
    installation = Installation(tmp_path, ",".join(server.hosts for server in ensemble))
    yield installation
    installation.stop()


class Consumer:
    """Takes what is fulfilled, as Zuul does, whatever happens to its server meanwhile."""

    def __init__(self, tree):
        self.tree = tree
        self.open = {self.retried(tree.add_request, ["small"], ephemeral=False) for _ in range(REQUESTS)}
        # A creation whose answer was lost may have made a second request; it counts too.
        self.open |= set(self.retried(tree.children, "/nodepool/requests"))
        self.owners = {}

    def retried(self, function, *arguments, **named):
        return self.tree.zk.retry(function, *arguments, **named)

    def serve(self):
        for request in sorted(self.open):
            record = self.retried(self.tree.request, request)
            assert record is not None, f"request {request} vanished"
            assert record["state"] != "failed", f"request {request} failed: {record}"
            if record["state"] == "fulfilled":
                self.use(request, record["nodes"])

    def use(self, request, nodes):
        assert len(nodes) == 1
        node, = nodes
        assert node not in self.owners, f"node {node} of {self.owners[node]} was given to {request} too"
        self.owners[node] = request
        lock = self.retried(self.tree.lock_node, node)
        record = self.retried(self.tree.node, node)
        assert (record["state"], record["allocated_to"]) == ("ready", request)
        try:
            self.retried(self.tree.zk.delete, f"/nodepool/requests/{request}")
        except NoNodeError:
            pass  # deleted by an attempt whose answer was lost
        self.retried(self.tree.change_node, node, state="used")
        lock.release()
        self.open.remove(request)


# BB-21
@pytest.mark.long
def test_every_request_is_served_though_launchers_and_servers_are_killed(tmp_path, ensemble, site):
    """Two launchers share a pool; the cloud is a directory, so that machines outlive their launcher."""
    cloud = tmp_path / "cloud"
    provider = fake_provider("fake-cloud", **{"max-servers": 60}, simulation={
        "directory": str(cloud), "create-latency": 0.5, "limits": {"instances": 60, "cores": -1, "ram": -1}})
    config = site.config(providers=[provider])
    launchers = [site.launcher(config, wait=False) for _ in range(2)]
    consumer = Consumer(site.tree(timeout=20))
    chance = random.Random(7)
    for number in range(9):
        target = len(consumer.open) - 20

        def goes_on():
            consumer.serve()
            return len(consumer.open) <= max(target, 0)

        wait_for(goes_on, "work goes on", 90, pause=0.2)
        if number % 3 == 2:
            server = chance.choice(ensemble)
            server.process.kill()
            server.start(wait=False)
        else:
            victim = chance.randrange(2)
            launchers[victim].kill()
            launchers[victim] = site.launcher(config, wait=False)
    wait_for(lambda: consumer.serve() or not consumer.open, "every request is served", 180, pause=0.2)
    tree = consumer.tree
    wait_for(lambda: not tree.children("/nodepool/nodes"), "every node is deleted", 60)
    # What was being written when a launcher was killed is no machine.
    def machines():
        return [path for path in cloud.iterdir() if not path.name.startswith(PART_PREFIX)]

    wait_for(lambda: not machines(), "no machine is left in the cloud", 60)
    wait_for(lambda: not tree.children("/nodepool/requests-lock"), "no lock directory is left", 60)
