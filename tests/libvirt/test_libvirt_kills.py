"""Launcher and libvirtd are killed again and again, at moments spread over the life of a machine."""
import dataclasses
import os
import time

import pytest
from test_libvirt_warm import await_nothing_left, warm_site  # noqa: F401

# How often each is killed; twenty times take about ten minutes without KVM.
KILLS = int(os.environ.get("NODEPOOL_TEST_LIBVIRT_KILLS", "3"))


@dataclasses.dataclass
class Life:
    """Of a machine: from its request to its use, and from there to its end."""

    external_id: str
    launch: float  # seconds
    deletion: float


def live(site, tree, kill=None, after: float = 0, of: str = "launch") -> Life:
    """The life of one machine. `kill` is called so many seconds after the beginning of its launch, or of its deletion."""
    def at_moment(step):
        if kill and step == of:
            time.sleep(after)
            kill()

    begin = time.monotonic()
    request = tree.add_request(["small"])
    at_moment("launch")
    held = tree.use(request)
    launched = time.monotonic()
    node_id = held[0][0]
    node = tree.node(node_id)
    assert site.login(node, "hostname") == f"np{node_id}"
    given_back = time.monotonic()
    tree.give_back(held)
    at_moment("deletion")
    tree.wait_node_gone(node_id, 120)
    return Life(node["external_id"], launched - begin, time.monotonic() - given_back)


def lives_with_kills(site, tree, usual: Life, kill) -> list[str]:
    """The external ids of machines during whose lives `kill` was called, at moments spread over a usual life."""
    ids = []
    for number in range(KILLS):
        after = (usual.launch + usual.deletion) * number / KILLS
        step = "launch" if after < usual.launch else "deletion"
        life = live(site, tree, kill, after if step == "launch" else after - usual.launch, step)
        ids.append(life.external_id)
    return ids


@pytest.fixture
def prepared(warm_site):  # noqa: F811
    """A site whose label has its saved memory, a client of its tree, the launcher, and a machine's usual life."""
    tree = warm_site.tree()
    launcher = warm_site.launcher()
    live(warm_site, tree)
    return warm_site, tree, launcher, live(warm_site, tree)


# LV-53
def test_a_launcher_that_is_killed_leaves_nothing(prepared):
    site, tree, launcher, usual = prepared
    launchers = [launcher]

    def kill():
        launchers[-1].kill()
        launchers.append(site.launcher(name="launcher"))

    machines = lives_with_kills(site, tree, usual, kill)
    assert len(set(machines)) == KILLS, "no machine is handed out twice"
    await_nothing_left(site)


# LV-53
def test_a_libvirtd_that_is_killed_loses_no_machine(prepared):
    site, tree, launcher, usual = prepared

    def kill():
        site.host.end_daemon("KILL")
        site.host.up()

    machines = lives_with_kills(site, tree, usual, kill)
    assert len(set(machines)) == KILLS, "no machine is handed out twice"
    assert launcher.is_running()
    await_nothing_left(site)
