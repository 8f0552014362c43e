"""Pods that fail, an API server that misbehaves or is away, and launchers that are killed."""
import time

import pytest
from services import wait_for

FRONT = "kubernetes-faults"


def failing(kubernetes_site, image: str, **settings):
    return kubernetes_site.provider(label={"image": f"registry.example/{image}"}, **settings)


# K8S-46
def test_an_image_that_cannot_be_fetched(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    provider = failing(kubernetes_site, "test-pull-error", **{"launch-retries": 1, "launch-timeout": 120})
    launcher = kubernetes_site.start(provider)
    begun = time.monotonic()
    tree.wait_request(tree.add_request(["pod-small"]), "failed", 100)
    assert 55 < time.monotonic() - begun < 80
    assert "ImagePull" in launcher.output()
    wait_for(lambda: cluster.namespaces() == [], "nothing is left", 60)


# K8S-47
def test_an_image_that_is_fetched_at_last(kubernetes_site):
    tree = kubernetes_site.tree()
    kubernetes_site.start(failing(kubernetes_site, "test-pull-flaky-10", **{"launch-retries": 1}))
    kubernetes_site.give_back(tree, tree.use(tree.add_request(["pod-small"])))


# K8S-50
@pytest.mark.parametrize("image,words", [("test-exit-3", "CrashLoopBackOff"), ("test-crash", "CrashLoopBackOff"),
                                         ("test-bad-name", "InvalidImageName")])
def test_a_pod_that_ends(kubernetes_site, image, words):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    launcher = kubernetes_site.start(failing(kubernetes_site, image, **{"launch-retries": 1}))
    request = tree.add_request(["pod-small"])
    wait_for(lambda: tree.request(request)["state"] in ("failed", "fulfilled"), "the request is answered", 60)
    # A pod that crashes may have run before.
    if tree.request(request)["state"] == "failed":
        assert words in launcher.output()
        wait_for(lambda: cluster.namespaces() == [], "nothing is left", 60)


# K8S-49
def test_a_pod_without_room_waits_for_a_node(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    provider = kubernetes_site.provider(label={"node-selector": {"room": "big"}}, **{"launch-retries": 1})
    kubernetes_site.start(provider)
    request = tree.add_request(["pod-small"])
    wait_for(lambda: [item for item in cluster.get("pods", "-A", "-l", "nodepool_provider_name=cluster")
                      if item["status"].get("conditions", [{}])[0].get("reason") == "Unschedulable"],
             "the pod finds no node", 30)
    try:
        cluster.control("POST", "/nodes", {"name": "node-room", "cpu": 8, "memory": "16Gi", "pods": 20,
                                           "labels": {"room": "big"}})
        held = tree.use(request)
        assert tree.node(held[0][0])["host_id"] == "node-room"
        kubernetes_site.give_back(tree, held)
    finally:
        cluster.control("POST", "/nodes", {"name": "node-room", "remove": True})


# K8S-55, K8S-56
@pytest.mark.parametrize("fault", [429, 503, "reset", "lost"])
def test_any_call_may_fail_once(kubernetes_site, fault):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    launcher = kubernetes_site.start(kubernetes_site.provider(context=FRONT))
    more = {"retry_after": 1} if isinstance(fault, int) else {}
    for path in ("/namespaces$", "/serviceaccounts$", "/secrets$", "/roles$", "/rolebindings$", "/pods$"):
        cluster.fault("POST", path, fault, **more)
    cluster.fault("GET", "/secrets/", fault if fault != "lost" else "reset", **more)
    held = tree.use(tree.add_request(["pod-small"]))
    assert "Launch attempt" not in launcher.output()
    cluster.fault("DELETE", "/namespaces/[^/]*$", fault, **more)
    kubernetes_site.give_back(tree, held)
    assert cluster.namespaces() == []


# K8S-59
@pytest.mark.parametrize("fault", ["cut", "end", "gone"])
def test_watches_that_break(kubernetes_site, fault):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    launcher = kubernetes_site.start(kubernetes_site.provider(context=FRONT))
    cluster.control("POST", "/rules", {"method": "GET", "path": "watch=true", "fault": fault, "events": 1,
                                       "count": 12}, front=True)
    cluster.control("POST", "/cut", {}, front=True)
    held = tree.use(tree.add_request(["pod-small", "pod-small"]))
    kubernetes_site.give_back(tree, held)
    assert "Launch attempt" not in launcher.output()
    watches = [request for request in cluster.requests() if "watch=true" in request["path"]]
    assert len(watches) < 60, "no busy loop"


# K8S-72: the container is a shell, which ignores the request to end.
def test_a_pod_ends_within_seconds(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    cluster.control("POST", "/settings", {"stop": "grace"})
    kubernetes_site.launcher()
    held = tree.use(tree.add_request(["pod-small"]))
    begun = time.monotonic()
    kubernetes_site.give_back(tree, held)
    assert time.monotonic() - begun < 15
    assert cluster.namespaces() == []


# K8S-70
def test_a_namespace_that_is_held(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    launcher = kubernetes_site.launcher()
    held = tree.use(tree.add_request(["empty"]))
    name = tree.node(held[0][0])["external_id"]
    cluster.kubectl("create", "configmap", "held", "-n", name)
    cluster.kubectl("patch", "configmap", "held", "-n", name, "--type=merge",
                    "-p", '{"metadata": {"finalizers": ["example.com/held"]}}')
    tree.give_back(held)
    wait_for(lambda: "example.com/held" in launcher.output(), "what holds it is reported, with its finalizer", 90)
    assert tree.node(held[0][0])["state"] == "deleting"
    others = tree.use(tree.add_request(["empty"]))
    kubernetes_site.give_back(tree, others)
    cluster.kubectl("patch", "configmap", "held", "-n", name, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    tree.wait_node_gone(held[0][0], 60)


# K8S-57
def test_a_launcher_that_is_killed_at_each_step(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    provider = kubernetes_site.provider(context=FRONT)
    for path in ("/namespaces$", "/serviceaccounts$", "/secrets$", "/roles$", "/rolebindings$", "/pods$"):
        cluster.fault("POST", path, "hang", seconds=30)
        launcher = kubernetes_site.start(provider)
        request = tree.add_request(["pod-small"])
        wait_for(lambda: cluster.control("GET", "/rules", front=True)[0].get("hits"), f"POST {path}", 30)
        launcher.kill()
        tree.zk.delete(f"/nodepool/requests/{request}", recursive=True)
        cluster.control("DELETE", "/rules", front=True)
        again = kubernetes_site.start(provider)
        wait_for(lambda: tree.nodes() == {} and cluster.namespaces() == [], f"nothing is left after {path}", 90)
        again.stop()


# driver-kubernetes.md 13
def test_a_free_node_whose_pod_was_evicted_is_replaced(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    labels = [{"name": "pod-small", "min-ready": 1}]
    provider = kubernetes_site.provider()
    provider["pools"][0]["labels"].pop()
    kubernetes_site.launcher(kubernetes_site.config(labels=labels, providers=[provider]))

    def ready() -> list[str]:
        return [node_id for node_id, node in tree.nodes().items() if node["state"] == "ready"]

    first, = wait_for(ready, "a node is ready", 60)
    cluster.control("POST", "/kill", {"namespace": f"main-{first}-*", "phase": "Failed", "reason": "Evicted"})
    tree.wait_node_gone(first, 60)
    wait_for(lambda: ready() and first not in ready(), "another one is ready", 60)
