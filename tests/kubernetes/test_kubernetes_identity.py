"""Nodes that have the names of others: of an installation that has lost its records, and of one beside it."""
import pytest
from kubernetes_cluster import KubernetesSite
from services import wait_for

NO_SWEEP = {"seconds_between_sweeps": 600}


@pytest.fixture(params=["kubernetes", "openshift", "openshiftpods"])
def two_sites(request, tmp_path, shared_zookeeper, kubernetes_site):
    """Two installations with the same configuration and records of their own; the label of their nodes."""
    (tmp_path / "second").mkdir()
    second = KubernetesSite(tmp_path / "second", shared_zookeeper.hosts, kubernetes_site.cluster)
    provider, label = {"kubernetes": (kubernetes_site.provider(), "empty"),
                       "openshift": (kubernetes_site.openshift(), "project"),
                       "openshiftpods": (kubernetes_site.openshift_pods(), "pod-small")}[request.param]
    for site in (kubernetes_site, second):
        site.settings["providers"] = [provider]
    yield kubernetes_site, second, label
    second.stop()


def own_objects(cluster, node: dict) -> list[str]:
    """What the provider has in the cluster: its namespaces or projects, or the pods in its pool's project."""
    if node["connection_type"] == "kubectl":
        return cluster.pods(node["pool"])
    return cluster.projects() if node["connection_type"] == "project" else cluster.namespaces()


def name_of(node: dict) -> str:
    return node["connection_port"].get("pod") or node["external_id"]


# K8S-94
def test_nodes_of_records_that_were_lost(two_sites):
    lost, fresh, label = two_sites
    cluster = lost.cluster
    launcher = lost.launcher(**NO_SWEEP)
    tree = lost.tree()
    (node_id, _), = tree.use(tree.add_request([label]))
    former = tree.node(node_id)
    if former["connection_type"] == "namespace":
        cluster.kubectl("create", "secret", "generic", "deploy-key", "--from-literal=key=x", kubeconfig=lost.kubeconfig_of(former))
    launcher.kill()
    fresh.launcher(name="fresh", **NO_SWEEP)
    tree = fresh.tree()
    held = tree.use(tree.add_request([label]))
    node = tree.node(held[0][0])
    assert held[0][0] == node_id, "the ids begin again"
    assert name_of(node) != name_of(former)
    assert sorted([name_of(node), name_of(former)]) == own_objects(cluster, node)
    if former["connection_type"] == "namespace":
        assert node["connection_port"]["token"] != former["connection_port"]["token"]
        assert not lost.may(former, "get", "pods", "-n", node["external_id"])
        assert "deploy-key" not in cluster.kubectl("get", "secrets", kubeconfig=fresh.kubeconfig_of(node))
    fresh.give_back(tree, held)
    assert own_objects(cluster, node) == [name_of(former)], "only the own one is deleted with the node"
    fresh.launcher(name="sweeping")
    wait_for(lambda: own_objects(cluster, node) == [], "the former one goes as what has no record", 60)


# K8S-95
def test_two_installations_with_the_same_names(two_sites):
    first, second, label = two_sites
    for number, site in enumerate((first, second)):
        site.launcher(name=f"launcher-{number}", **NO_SWEEP)
    trees = [site.tree() for site in (first, second)]
    requests = [tree.add_request([label]) for tree in trees]
    held = [tree.use(request) for tree, request in zip(trees, requests)]
    nodes = [tree.node(nodes[0][0]) for tree, nodes in zip(trees, held)]
    assert held[0][0][0] == held[1][0][0]
    assert sorted(map(name_of, nodes)) == own_objects(first.cluster, nodes[0]) and name_of(nodes[0]) != name_of(nodes[1])
    first.give_back(trees[0], held[0])
    assert own_objects(first.cluster, nodes[1]) == [name_of(nodes[1])]
    second.give_back(trees[1], held[1])
