"""Nodes of the driver kubernetes in a real cluster, from the request to the end of the namespace."""
import json
import re
import time

import pytest
from services import wait_for


# K8S-20, K8S-21, K8S-25, K8S-26, K8S-30, K8S-31, K8S-68
def test_a_pod_lives_and_dies(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    launcher = kubernetes_site.start(kubernetes_site.provider({"node-attributes": {"zone": "here"}}))
    held = tree.use(tree.add_request(["pod-small"]))
    node = tree.node(held[0][0])
    name = node["external_id"]
    assert re.fullmatch(f"main-{held[0][0]}-[0-9a-f]{{8}}", name)
    assert cluster.namespaces() == [name]
    assert cluster.pods(name) == ["pod-small"]
    assert node["connection_port"]["namespace"] == name and node["interface_ip"] == "pod-small"
    assert node["host_id"].startswith("node-") and node["cloud"] == "kubernetes"
    assert node["connection_type"] == "kubectl" and node["host_keys"] == []
    assert node["attributes"] == {"zone": "here"}
    assert node["ssh_port"] == node["connection_port"]
    port = node["connection_port"]
    assert set(port) == {"name", "namespace", "host", "skiptls", "token", "user", "ca_crt", "pod"}
    for words in (["get", "pods"], ["create", "pods/exec"], ["create", "pods/portforward"], ["get", "pods/log"]):
        assert kubernetes_site.may(node, *words), words
    for words in (["create", "pods"], ["get", "secrets"], ["get", "pods", "-n", "default"], ["list", "namespaces"]):
        assert not kubernetes_site.may(node, *words), words
    seen = cluster.kubectl("get", "pods", "-o", "name", kubeconfig=kubernetes_site.kubeconfig_of(node))
    assert seen.strip() == "pod/pod-small"
    listed = kubernetes_site.tool("list", "--json", "--detail")
    assert json.loads(listed.stdout)[0]["connection_port"] == "redacted"
    kubernetes_site.give_back(tree, held)
    assert cluster.namespaces() == []
    for token in kubernetes_site.tokens(node):
        assert token not in launcher.output() and token not in listed.stdout


# The keys of a node that the Python implementation knows, in its order (coordination.md 4.4).
PYTHON_KEYS = """state state_time cloud provider pool type allocated_to az region public_ipv4 private_ipv4 public_ipv6 host_id
    interface_ip connection_port ssh_port image_id launcher created_time external_id hostname comment user_data hold_job
    host_keys username connection_type shell_type hold_expiration resources slot attributes python_path tenant_name
    driver_data requestor""".split()


def rewrite_as_python(tree, node_id: str, **changes):
    """Loads the record, changes it and writes all of it anew: what Python's node does when its state is set."""
    record = json.loads(tree.zk.get(f"/nodepool/nodes/{node_id}")[0])
    node = {key: record.get(key) for key in PYTHON_KEYS}
    node["connection_port"] = record.get("connection_port", record.get("ssh_port", 22))
    node.update(changes, state_time=time.time())
    node["ssh_port"] = node["connection_port"]
    tree.zk.set(f"/nodepool/nodes/{node_id}", json.dumps(node).encode("utf8"))


# K8S-31
def test_a_record_that_python_rewrites(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    launcher = kubernetes_site.launcher()
    request = tree.add_request(["pod-small"])
    record = tree.wait_request(request, "fulfilled", 60)
    node_id, = record["nodes"]
    lock = tree.lock_node(node_id)
    made = tree.node(node_id)
    rewrite_as_python(tree, node_id, state="in-use")
    tree.zk.delete(f"/nodepool/requests/{request}")
    rewrite_as_python(tree, node_id, state="hold", comment="à la main", hold_expiration=3600)
    lock.release()
    assert kubernetes_site.tool("hold", node_id, "--reason", "ours again").returncode == 0
    held = tree.node(node_id)
    assert held["connection_port"] == made["connection_port"] == held["ssh_port"]
    assert kubernetes_site.may(held, "get", "pods")
    assert json.loads(kubernetes_site.tool("list", "--json", "--detail").stdout)[0]["connection_port"] == "redacted"
    lock = tree.lock_node(node_id)
    rewrite_as_python(tree, node_id, state="used")
    lock.release()
    tree.wait_node_gone(node_id, 60)
    assert cluster.namespaces() == []
    assert made["connection_port"]["token"] not in launcher.output()


# K8S-22, K8S-27, K8S-28, K8S-68
def test_a_namespace_lives_and_dies(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    kubernetes_site.launcher()
    held = tree.use(tree.add_request(["empty"]))
    node = tree.node(held[0][0])
    assert node["connection_type"] == "namespace" and node["interface_ip"] is None and node["host_id"] is None
    for kind in ("pods", "services", "configmaps", "secrets", "deployments.apps", "jobs.batch"):
        assert kubernetes_site.may(node, "create", kind), kind
        assert not kubernetes_site.may(node, "create", kind, "-n", "default"), kind
    assert not kubernetes_site.may(node, "list", "namespaces")
    cluster.kubectl("create", "configmap", "mine", kubeconfig=kubernetes_site.kubeconfig_of(node))
    cluster.kubectl("create", "deployment", "mine", "--image=registry.example/x",
                    kubeconfig=kubernetes_site.kubeconfig_of(node))
    kubernetes_site.give_back(tree, held)
    assert cluster.namespaces() == []


# K8S-82: what docs/drivers/kubernetes.md says is enough.
def test_the_least_rights_suffice(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    launcher = kubernetes_site.start(kubernetes_site.provider(context="least"))
    held = tree.use(tree.add_request(["pod-small", "empty"]))
    nodes = [tree.node(node_id) for node_id, _ in held]
    assert kubernetes_site.may(nodes[0], "create", "pods/exec")
    assert kubernetes_site.may(nodes[1], "create", "pods")
    assert "rights of older releases" in launcher.output()
    kubernetes_site.give_back(tree, held)
    assert cluster.namespaces() == []


# K8S-44
def test_a_slow_pod(kubernetes_site):
    tree = kubernetes_site.tree()
    launcher = kubernetes_site.start(kubernetes_site.provider(label={"image": "registry.example/test-slow-10"}))
    held = tree.use(tree.add_request(["pod-small"]))
    assert "attempt" not in launcher.output().replace("Attempt 1", "")
    kubernetes_site.give_back(tree, held)


def limited(kubernetes_site, kind: str, limit: dict, need: dict) -> dict:
    """A provider of one of the drivers whose pool has a limit, and whose label a need."""
    if kind == "kubernetes":
        provider = kubernetes_site.provider()
    else:
        provider = kubernetes_site.openshift() if kind == "openshift" else kubernetes_site.openshift_pods()
    provider["pools"][0].update(limit)
    provider["pools"][0]["labels"][0].update(need)
    return provider


LIMITS = [("kubernetes", {"max-servers": 2}, {}), ("kubernetes", {"max-cores": 2}, {"cpu": 1}),
          ("kubernetes", {"max-ram": 128}, {"memory": 64}), ("openshift", {"max-servers": 2}, {}),
          ("kubernetes", {"max-resources": {"seats": 2}}, {"extra-resources": {"seats": 1}}),
          ("openshiftpods", {"max-resources": {"seats": 2}}, {"extra-resources": {"seats": 1}})]


# K8S-63: OT-4
@pytest.mark.parametrize("kind,limit,need", LIMITS)
def test_a_pool_that_is_full_waits(kubernetes_site, kind, limit, need):
    tree = kubernetes_site.tree()
    kubernetes_site.start(limited(kubernetes_site, kind, limit, need))
    held = tree.use(tree.add_request(["pod-small"])) + tree.use(tree.add_request(["pod-small"]))
    third = tree.add_request(["pod-small"])
    wait_for(lambda: [pool for pool in tree.components("pool").values() if pool["paused"]], "the pool is paused")
    assert tree.request(third)["state"] in ("requested", "pending")
    kubernetes_site.give_back(tree, held)
    kubernetes_site.give_back(tree, tree.use(third))


# K8S-65, K8S-66
@pytest.mark.parametrize("kind,limit,need", LIMITS)
def test_a_request_that_never_fits_fails(kubernetes_site, kind, limit, need):
    tree = kubernetes_site.tree()
    kubernetes_site.start(limited(kubernetes_site, kind, limit, need))
    tree.wait_request(tree.add_request(["pod-small"] * 3), "failed")
    assert kubernetes_site.cluster.namespaces() == []


# K8S-64: OT-5
@pytest.mark.parametrize("limit,need", [({"max-servers": 2}, {}), ({"max-cores": 2}, {"cpu": 1}),
                                        ({"max-ram": 128}, {"memory": 64}),
                                        ({"seats": 2}, {"extra-resources": {"seats": 1}})])
def test_a_tenant_that_has_its_share_waits(kubernetes_site, limit, need):
    tree = kubernetes_site.tree()
    config = kubernetes_site.config(providers=[kubernetes_site.provider(label=need)],
                                    **{"tenant-resource-limits": [{"tenant-name": "a", **limit}]})
    kubernetes_site.launcher(config)
    requests = [tree.add_request(["pod-small"], tenant_name="a") for _ in range(2)]
    held = [node for request in requests for node in tree.use(request)]
    third = tree.add_request(["pod-small"], tenant_name="a")
    other = tree.use(tree.add_request(["pod-small"], tenant_name="b"))
    assert tree.request(third)["state"] == "requested"
    assert not [pool for pool in tree.components("pool").values() if pool["paused"]]
    kubernetes_site.give_back(tree, held)
    kubernetes_site.give_back(tree, tree.use(third) + other)


# K8S-73, K8S-74
def test_leaks_are_deleted(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    for name, provider in (("main-0000009991", "cluster"), ("main-0000009992", "another")):
        cluster.kubectl("create", "namespace", name)
        cluster.kubectl("label", "namespace", name, f"nodepool_provider_name={provider}",
                        f"nodepool_node_id={name[-10:]}", "nodepool_pool_name=main")
    cluster.kubectl("create", "namespace", "main-5")
    kubernetes_site.launcher()
    held = tree.use(tree.add_request(["empty"]))
    own = tree.node(held[0][0])["external_id"]
    wait_for(lambda: cluster.namespaces() == [own], "the leaked namespace is gone", 30)
    assert cluster.namespaces("another") == ["main-0000009992"]
    kubernetes_site.give_back(tree, held)
    cluster.kubectl("delete", "namespace", "main-5")


# K8S-81
def test_deleted_by_the_operator(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    launcher = kubernetes_site.launcher()
    request = tree.add_request(["pod-small"])
    record = tree.wait_request(request, "fulfilled", 60)
    launcher.stop()
    done = kubernetes_site.tool("delete", "--now", record["nodes"][0])
    assert done.returncode == 0, done.stderr
    assert cluster.namespaces() == [] and tree.node(record["nodes"][0]) is None


# K8S-67
def test_launches_in_progress_are_limited(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    cluster.control("POST", "/settings", {"start": 5})
    kubernetes_site.start(kubernetes_site.provider(**{"max-concurrency": 1}))
    requests = [tree.add_request(["pod-small"]) for _ in range(2)]
    wait_for(lambda: len(cluster.namespaces()) == 1, "the first one is made", 30)

    def are_ready():
        states = [node["state"] for node in tree.nodes().values()]
        assert states.count("building") <= 1
        return states.count("ready") == 2

    wait_for(are_ready, "both are ready", 60)
    for request in requests:
        kubernetes_site.give_back(tree, tree.use(request))
