"""Nodes of the drivers openshift and openshiftpods in a real cluster with OpenShift's projects."""
from services import wait_for


# K8S-20, K8S-23, K8S-68, K8S-79
def test_projects_and_pods_in_them(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    launcher = kubernetes_site.start(kubernetes_site.openshift())
    held = tree.use(tree.add_request(["pod-small", "project"]))
    pod, project = [tree.node(node_id) for node_id, _ in held]
    assert cluster.projects() == sorted([pod["external_id"], project["external_id"]])
    assert pod["connection_type"] == "kubectl" and pod["interface_ip"] == "pod-small" and pod["host_id"] is None
    assert project["connection_type"] == "project" and project["interface_ip"] is None
    assert set(pod["connection_port"]) == {"namespace", "host", "skiptls", "token", "user", "ca_crt", "pod"}
    assert "name" not in project["connection_port"] and pod["cloud"] == "openshift"
    for node in (pod, project):
        assert kubernetes_site.may(node, "create", "pods/exec") and kubernetes_site.may(node, "create", "pods")
        assert not kubernetes_site.may(node, "create", "pods", "-n", "default")
    kubernetes_site.give_back(tree, held)
    assert cluster.projects() == []
    for token in kubernetes_site.tokens(pod, project):
        assert token not in launcher.output()


# K8S-77: a project's labels are lost when it is made; its name and who asked for it remain.
def test_leaked_projects_are_deleted(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    launcher = kubernetes_site.start(kubernetes_site.openshift())
    held = tree.use(tree.add_request(["project"]))
    launcher.kill()
    held[0][1].release()
    tree.zk.delete(f"/nodepool/nodes/{held[0][0]}", recursive=True)
    cluster.kubectl("create", "namespace", "main-0000009993")
    kubernetes_site.start(kubernetes_site.openshift())
    wait_for(lambda: cluster.projects() == [], "the leaked project is gone", 60)
    assert cluster.kubectl("get", "namespace", "main-0000009993", "-o", "name").strip()
    cluster.kubectl("delete", "namespace", "main-0000009993")


# K8S-53: a project's quota
def test_a_project_limit_is_waited_for(kubernetes_site):
    tree = kubernetes_site.tree()
    provider = kubernetes_site.openshift(context="openshift-faults")
    kubernetes_site.cluster.fault("POST", "/projectrequests", 403, reason="Forbidden",
                                  message='cannot create more than 2 project(s).')
    launcher = kubernetes_site.start(provider)
    held = tree.use(tree.add_request(["project"]))
    assert "cannot create more than 2 project(s)" in launcher.output()
    kubernetes_site.give_back(tree, held)


# K8S-24, K8S-68, K8S-77, K8S-78
def test_pods_in_the_pools_projects(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    pools = ("pool-a", "pool-a-b")
    cluster.kubectl("run", "foreign", "--image=registry.example/x", "-n", "pool-a")
    cluster.kubectl("run", "pod-small-0000009994", "--image=registry.example/x", "-n", "pool-a")
    cluster.kubectl("run", "pod-small-0000009995", "--image=registry.example/x", "-n", "pool-a-b",
                    "--labels=nodepool_provider_name=cluster,nodepool_node_id=0000009995,nodepool_pool_name=pool-a-b")
    kubernetes_site.start(kubernetes_site.openshift_pods(pools, **{"max-pods": 1}))
    held = tree.use(tree.add_request(["pod-small"])) + tree.use(tree.add_request(["pod-small"]))
    nodes = {node_id: tree.node(node_id) for node_id, _ in held}
    assert sorted(node["pool"] for node in nodes.values()) == ["pool-a", "pool-a-b"], "max-pods counts (K8S-6)"
    for node_id, node in nodes.items():
        pod = node["connection_port"]["pod"]
        assert pod.startswith(f"pod-small-{node_id}-")
        assert node["external_id"] == f"{node['pool']}-{pod}" and node["interface_ip"] == pod
        assert node["host_id"].startswith("node-") and node["connection_type"] == "kubectl"
        assert pod in cluster.pods(node["pool"])
        port = node["connection_port"]
        assert port["token"] == (cluster.state / "conf/pods.token").read_text().strip() and port["ca_crt"]
        assert port["namespace"] == node["pool"] and port["pod"] == pod
        assert kubernetes_site.may(node, "create", "pods/exec")
    kubernetes_site.give_back(tree, held)
    wait_for(lambda: cluster.pods("pool-a-b") == [], "the leaked pod is gone", 60)
    assert cluster.pods("pool-a") == ["foreign", "pod-small-0000009994"]


# K8S-53, K8S-54: the quota of a pool's namespace is used up until a pod is gone.
def test_a_quota_of_the_cluster_is_waited_for(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    cluster.kubectl("create", "quota", "few", "--hard=pods=1", "-n", "pool-a")
    launcher = kubernetes_site.start(kubernetes_site.openshift_pods())
    first = tree.use(tree.add_request(["pod-small"]))
    second = tree.add_request(["pod-small"])
    wait_for(lambda: "exceeded quota: few" in launcher.output(), "the cluster refuses", 60)
    assert tree.request(second)["state"] in ("requested", "pending")
    kubernetes_site.give_back(tree, first)
    kubernetes_site.give_back(tree, tree.use(second))
