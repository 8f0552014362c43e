"""What a launcher announces (coordination.md 8, 17.1-17.5)."""
import os

from nodepool_helpers import fake_provider
from services import wait_for

HOSTNAME = os.uname().nodename.split(".")[0]


def two_pools():
    provider = fake_provider(labels=["small"])
    provider["pools"].append({**provider["pools"][0], "name": "second"})
    return provider


# coordination.17.1
def test_17_01_the_launcher_announces_itself(site):
    launcher = site.launcher()
    found = wait_for(lambda: site.tree().components("launcher"), "a launcher component")
    (name, record), = found.items()
    assert name.startswith(HOSTNAME) and name[len(HOSTNAME):].isdigit() and len(name) == len(HOSTNAME) + 10
    tree = site.tree()
    assert tree.zk.exists(f"/nodepool/components/launcher/{name}").ephemeralOwner != 0
    wait_for(lambda: tree.components("launcher")[name]["state"] == "running", "state running")
    assert record["model_api"] == 0
    assert record["kind"] == "launcher"
    launcher.stop()
    wait_for(lambda: tree.components("launcher") == {}, "the component is gone after SIGTERM", 5)


# coordination.17.2
def test_17_02_each_pool_announces_itself(site):
    site.launcher(site.config(providers=[two_pools()], labels=[{"name": "small"}]))
    records = {record["name"]: record for record in site.tree().components("pool").values()}
    assert sorted(records) == ["main", "second"]
    record = records["second"]
    assert record["provider_name"] == "fake-cloud"
    assert record["supported_labels"] == ["small"]
    assert record["state"] == "running"
    assert record["priority"] == 100
    assert record["paused"] is False
    assert "-PoolWorker.fake-cloud-second-" in record["id"]
    assert list(record) == sorted(record)


# coordination.17.5
def test_17_05_a_lost_session_gives_a_new_component(private_site):
    """The launcher sleeps longer than its session lives and announces itself again."""
    launcher = private_site.launcher(private_site.config(**{"zookeeper-timeout": 1.5}))
    tree = private_site.tree()
    before = set(tree.components("launcher"))
    launcher.pause()
    wait_for(lambda: not tree.components("launcher") and not tree.components("pool"), "the session expires")
    launcher.resume()
    after = wait_for(lambda: tree.components("launcher"), "a new component")
    wait_for(lambda: tree.components("pool"), "a new pool component")
    assert not before & set(after)


def test_sigint_removes_the_components_at_once(site):
    """operations.16.18."""
    import signal

    launcher = site.launcher()
    launcher.stop(20, signal.SIGINT)
    assert launcher.wait() == 0
    assert site.tree().components("pool") == {}
    assert site.tree().components("launcher") == {}
