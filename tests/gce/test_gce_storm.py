"""Many launches at a time."""
import collections
import os

AT_ONCE = int(os.environ.get("NODEPOOL_TEST_GCE_AT_ONCE", "30"))


# GCE-19
def test_many_at_once(gce_site):
    project, tree = gce_site.project, gce_site.tree()
    gce_site.launcher()
    tree.fulfil_timeout = 300
    requests = [tree.add_request(["small"] * 5) for _ in range(AT_ONCE // 5)]
    held = [node for request in requests for node in tree.use(request)]
    assert project.count("instances.insert") == len(held) == len(project.instances("RUNNING"))
    assert not project.calls("instances.get")
    per_second = collections.Counter(int(call["time"]) for call in project.calls("instances.list"))
    assert max(per_second.values()) <= 3  # two lists, and where the seconds begin
    tree.give_back(held)
    for node, *_ in held:
        tree.wait_node_gone(node, 120)
    assert project.instances() == []
