"""A launcher that is killed in the middle of each call leaves nothing, and no second instance."""
import pytest
from services import wait_for

LAUNCH = ["machineTypes.get", "images.getFromFamily", "instances.insert", "instances.list"]
DELETION = ["instances.get", "instances.delete", "instances.list"]
# Where the launcher dies: Google never gets the call; it does the work and the answer is lost; it does the work when the
# launcher is dead already.
MOMENTS = ["before", "after", "later"]


def cases(actions: list) -> list:
    # For a call that only reads, the moments are the same.
    return [(action, moment) for action in actions for moment in MOMENTS
            if moment == "before" or action in ("instances.insert", "instances.delete")]


def stop_at(project, action: str, moment: str):
    """The next call of the action hangs; the function says whether it does."""
    hang = {"action": action, "delay_ms": 30000, "drop": "before", "count": 1}
    if moment == "before":
        project.fault(**hang)
    elif moment == "after":
        project.fault(action=action, drop="after", count=1)
        project.fault(**hang)
    else:
        project.fault(action=action, delay_ms=5000, count=1)
    return lambda: project.control("/faults") == []  # a fault that was met is removed


# GCE-56
@pytest.mark.parametrize("action, moment", cases(LAUNCH))
def test_killed_in_a_launch(gce_site, action, moment):
    project, tree = gce_site.project, gce_site.tree()
    config = gce_site.config()
    hangs = stop_at(project, action, moment) if action == "machineTypes.get" else None
    launcher = gce_site.launcher(config, wait=hangs is None)
    hangs = hangs or stop_at(project, action, moment)
    request = tree.add_request(["small"])
    wait_for(hangs, f"{action} hangs", 30)
    launcher.kill()
    project.control("/faults", method="DELETE")
    gce_site.launcher(config)
    tree.fulfil_timeout = 60
    nodes = tree.use(request)
    if moment == "later":
        wait_for(lambda: len([call for call in project.calls(action) if call.get("status")]) >= 2,
                 "the call of the dead launcher is carried out, too", 30)
    wait_for(lambda: project.names() == {f"np{nodes[0][0]}"}, "only the node's instance is left", 60)
    tree.give_back(nodes)
    tree.wait_node_gone(nodes[0][0], 60)
    wait_for(lambda: not project.instances() and not tree.nodes(), "nothing is left", 30)


# GCE-56
@pytest.mark.parametrize("action, moment", cases(DELETION))
def test_killed_in_a_deletion(gce_site, action, moment):
    project, tree = gce_site.project, gce_site.tree()
    config = gce_site.config()
    launcher = gce_site.launcher(config)
    nodes = tree.use(tree.add_request(["small"]))
    hangs = stop_at(project, action, moment)
    tree.give_back(nodes)
    wait_for(hangs, f"{action} hangs", 30)
    launcher.kill()
    project.control("/faults", method="DELETE")
    gce_site.launcher(config)
    tree.wait_node_gone(nodes[0][0], 60)
    wait_for(lambda: not project.instances() and not tree.nodes(), "nothing is left", 30)


# GCE-17
def test_an_instance_of_the_same_name_is_not_touched(gce_site):
    """Another installation has the same names, whatever its provider is called."""
    project, tree = gce_site.project, gce_site.tree()
    foreign = {"nodepool_node_id": "0000000000", "nodepool_pool_name": "main", "nodepool_provider_name": "other"}
    project.insert("np0000000000", **foreign)
    before, = project.instances()
    launcher = gce_site.launcher(gce_site.config(providers=[gce_site.provider(**{"launch-retries": 2})]))
    tree.wait_request(tree.add_request(["small"]), "failed", 60)
    wait_for(lambda: not tree.nodes(), "the failed node is removed", 30)
    after, = project.instances()
    assert after["id"] == before["id"] and after["status"] == "RUNNING"
    assert not project.calls("instances.delete")
    assert "it is not of this launch and is left alone" in launcher.output()
