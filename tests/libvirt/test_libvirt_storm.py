"""Many machines at once on one host, and many one after the other."""
import os

from test_libvirt_warm import await_nothing_left, warm_site  # noqa: F401

AT_ONCE = int(os.environ.get("NODEPOOL_TEST_LIBVIRT_AT_ONCE", "4"))
IN_A_ROW = int(os.environ.get("NODEPOOL_TEST_LIBVIRT_IN_A_ROW", "4"))


# LV-43
def test_many_machines_at_once(warm_site):  # noqa: F811
    tree = warm_site.tree()
    provider = warm_site.settings["providers"][0]
    # More machines than the host has cores.
    provider["hosts"] = [{"name": "local", "uri": provider.pop("uri"), "cores": AT_ONCE}]
    provider["pools"][0]["labels"][0]["memory"] = 256
    warm_site.launcher()
    requests = [tree.add_request(["small"]) for _ in range(AT_ONCE)]
    held = [tree.use(request) for request in requests]
    nodes = [tree.node(lock[0][0]) for lock in held]
    for field in ("interface_ip", "external_id"):
        assert len({node[field] for node in nodes}) == AT_ONCE
    assert len({node["host_keys"][0] for node in nodes}) == AT_ONCE
    for node, lock in zip(nodes, held):
        assert warm_site.login(node, "hostname") == f"np{lock[0][0]}"
    for lock in held:
        tree.give_back(lock)
    for lock in held:
        tree.wait_node_gone(lock[0][0], 120)
    await_nothing_left(warm_site)


# LV-54
def test_many_machines_one_after_the_other(warm_site):  # noqa: F811
    tree = warm_site.tree()
    launcher = warm_site.launcher()
    seen = set()
    for _ in range(IN_A_ROW):
        held = tree.use(tree.add_request(["small"]))
        seen.add(tree.node(held[0][0])["external_id"])
        tree.give_back(held)
        tree.wait_node_gone(held[0][0], 120)
    assert len(seen) == IN_A_ROW
    assert "Launch attempt" not in launcher.output(), "each first attempt succeeded"
    await_nothing_left(warm_site)
