"""Faults of Google Cloud: passing ones, refusals, capacity, quota, preemption."""
import time

import pytest
from services import wait_for


def one_attempt(gce_site, **provider):
    return gce_site.config(providers=[gce_site.provider(**{"launch-retries": 1, **provider})])


def error(code: str, status: int, message: str = "no") -> dict:
    return {"code": code, "message": message, "status": status}


# GCE-29
def test_passing_faults_of_each_call(gce_site):
    launcher = gce_site.launcher(one_attempt(gce_site))
    for action in ("instances.insert", "instances.list", "instances.get", "instances.delete", "images.getFromFamily"):
        gce_site.project.fault(action=action, count=2, error=error("backendError", 503))
    tree = gce_site.tree()
    held, _ = gce_site.node(tree)
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
    assert "Launch attempt" not in launcher.output()


# GCE-30
def test_odd_answers(gce_site):
    project = gce_site.project
    launcher = gce_site.launcher()
    tree = gce_site.tree()
    tree.fulfil_timeout = 120
    for action in ("instances.insert", "instances.list", "instances.get", "instances.delete", "images.getFromFamily"):
        project.fault(action=action, count=1, cut=20)
        project.fault(action=action, count=1, raw={"status": 502, "body": "<html>a proxy</html>"})
    held, _ = gce_site.node(tree)
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)
    assert project.instances() == [] and launcher.is_running()


# GCE-30
@pytest.mark.parametrize("action", ["instances.insert", "instances.list", "instances.get", "instances.delete", "token",
                                    "machineTypes.get", "images.getFromFamily", "regions.get"])
def test_an_outage_of_seconds_at_each_call(gce_site, action):
    project = gce_site.project
    project.fault(action=action, count=6, drop="before")
    launcher = gce_site.launcher(one_attempt(gce_site), wait=False)
    tree = gce_site.tree()
    tree.fulfil_timeout = 120
    held, _ = gce_site.node(tree)
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)
    assert project.instances() == [] and launcher.is_running()


# GCE-26
def test_refusals_of_the_rate_cost_no_attempt(gce_site):
    project = gce_site.project
    launcher = gce_site.launcher(one_attempt(gce_site))
    tree = gce_site.tree()
    tree.fulfil_timeout = 180
    project.set(throttle={"*": {"rate": 0.01, "burst": 0}})
    request = tree.add_request(["small"])
    time.sleep(20)
    project.set(throttle={})
    tree.use(request)
    assert "Launch attempt" not in launcher.output()
    assert project.count("instances.insert") - len(project.refused("instances.insert")) == 1


# GCE-20, GCE-22
@pytest.mark.parametrize("code", ["ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
                                  "IP_SPACE_EXHAUSTED_WITH_DETAILS"])
def test_no_capacity(gce_site, statsd, code):
    project = gce_site.project
    project.set(no_capacity=[{"type": "e2-*", "code": code}])
    launcher = gce_site.launcher(gce_site.config(providers=[gce_site.provider(**{"launch-retries": 2})]))
    tree = gce_site.tree()
    request = tree.add_request(["small"])
    wait_for(lambda: statsd.lines("nodepool.launch.error.capacity:"), "the attempt is counted", 30)
    wait_for(lambda: "refused for lack of capacity" in launcher.output(), "the node is given up", 30)
    wait_for(lambda: project.instances() == [], "nothing is left")
    project.set(no_capacity=[])
    tree.fulfil_timeout = 90
    tree.use(request)


# GCE-21, GCE-23
def test_another_zone_where_one_lacks_capacity(gce_site):
    project, tree = gce_site.project, gce_site.tree()
    project.set(no_capacity=[{"zone": "us-central1-a"}])
    gce_site.launcher(one_attempt(gce_site, zones=["us-central1-a", "us-central1-b"]))
    held, node = gce_site.node(tree)
    assert node["az"] == "us-central1-b"
    assert node["external_id"] == {"instance": f"np{held[0][0]}", "zone": "us-central1-b"}
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
    assert project.instances() == []


# GCE-25
@pytest.mark.parametrize("at_once", [False, True])
def test_a_request_waits_for_quota(gce_site, statsd, at_once):
    project, tree = gce_site.project, gce_site.tree()
    project.set(quota_sync=at_once)
    gce_site.launcher()
    held, _ = gce_site.node(tree)
    project.control("/quotas", {"regions": {"us-central1": {"CPUS": 2}}})
    request = tree.add_request(["small"])
    wait_for(lambda: statsd.lines("nodepool.launch.error.quota:"), "the attempt is counted", 60)
    tree.give_back(held)
    tree.fulfil_timeout = 90
    tree.use(request)


# GCE-12, GCE-28
@pytest.mark.parametrize("label, pool", [({"volume-type": "standard"}, {}), ({}, {"network": "nothing"}),
                                         ({}, {"service-account": {"email": "nobody@x"}}),
                                         ({}, {"subnetwork": "elsewhere"})])
def test_what_google_refuses_ends_after_two_answers(gce_site, label, pool):
    gce_site.launcher(gce_site.config(providers=[gce_site.provider(label=label, pool=pool)]))
    tree = gce_site.tree()
    tree.wait_request(tree.add_request(["small"]), "failed", 60)
    assert gce_site.project.count("instances.insert") == 2


# GCE-11
def test_an_unknown_machine_type_concerns_its_label_only(gce_site):
    labels = [{"name": name, "cloud-image": "debian", "instance-type": kind}
              for name, kind in (("small", "e2-medium"), ("odd", "e9-nothing"))]
    gce_site.launcher(gce_site.config(labels=[{"name": "small"}, {"name": "odd"}],
                                      providers=[gce_site.provider(labels=labels)]))
    tree = gce_site.tree()
    tree.wait_request(tree.add_request(["odd"]), "failed", 60)
    gce_site.node(tree)


# GCE-37, GCE-36
def test_preemption(gce_site):
    project, tree = gce_site.project, gce_site.tree()
    launcher = gce_site.launcher(gce_site.config(
        labels=[{"name": "small", "min-ready": 1}],
        providers=[gce_site.provider(label={"use-spot": True})]))
    wait_for(lambda: [node for node in tree.nodes().values() if node["state"] == "ready"], "a node is ready", 60)
    held, node = gce_site.node(tree)
    project.control("/preempt", {"names": [node["external_id"]]})
    wait_for(lambda: "preempted (systemevent-" in (tree.node(held[0][0]).get("comment") or ""), "the record says it", 90)
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
    ready = {}

    def is_ready():
        ready.update({name: one for name, one in tree.nodes().items() if one["state"] == "ready"})
        return ready
    wait_for(is_ready, "another node is ready", 60)
    first, = ready
    project.control("/preempt", {"names": [ready[first]["external_id"]]})
    tree.wait_node_gone(first, 90)
    assert "systemevent-" in launcher.output()


# GCE-44, GCE-45
def test_leaks(gce_site):
    project = gce_site.project
    marks = {"nodepool_pool_name": "main", "nodepool_provider_name": "gce"}
    project.insert("np0000009901", nodepool_node_id="0000009901", **marks)
    project.insert("np0000009902", nodepool_node_id="0000009902", zone="us-central1-b", **marks)
    project.insert("np0000009903", nodepool_node_id="0000009903", nodepool_pool_name="main", nodepool_provider_name="x")
    project.insert("np0000009904")
    wait_for(lambda: len(project.instances("RUNNING")) == 4, "all run", 30)
    project.control("/stop", {"names": ["np0000009901"]})
    gce_site.launcher(gce_site.config(providers=[gce_site.provider(zones=["us-central1-a", "us-central1-b"])]))
    wait_for(lambda: project.names() == {"np0000009903", "np0000009904"}, "what has leaked is deleted", 60)
