"""What docs/drivers/kubernetes.md says is so."""
import base64
import contextlib
import re

import pytest
import yaml
from kubernetes_cluster import lines
from services import wait_for

from nodepool_helpers import ROOT

PAGE = (ROOT / "docs/drivers/kubernetes.md").read_text()
ACCOUNT = "nodepool-docs"


ROLES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.S)]


@contextlib.contextmanager
def account_with(kubernetes_site, monkeypatch, *roles):
    """A kubeconfig whose context `ci` has these of the page's roles and no others."""
    cluster = kubernetes_site.cluster
    role = {**roles[0], "metadata": {"name": ACCOUNT}, "rules": [rule for one in roles for rule in one["rules"]]}
    path = kubernetes_site.folder / "role.yaml"
    path.write_text(yaml.safe_dump(role))
    cluster.kubectl("apply", "-f", path)
    cluster.kubectl("create", "serviceaccount", ACCOUNT, "-n", "default")
    cluster.kubectl("create", "clusterrolebinding", ACCOUNT, f"--clusterrole={ACCOUNT}",
                    f"--serviceaccount=default:{ACCOUNT}")
    try:
        def secret():
            found = [item for item in cluster.get("secrets", "-n", "default")
                     if item["metadata"].get("annotations", {}).get("kubernetes.io/service-account.name") == ACCOUNT]
            return found[0]["data"] if found and found[0].get("data") else None

        token = base64.b64decode(wait_for(secret, "the account has a token")["token"]).decode()
        content = yaml.safe_load(cluster.kubeconfig.read_text())
        content["users"] = [{"name": "docs", "user": {"token": token}}]
        content["contexts"] = [{"name": "ci", "context": {"cluster": "real", "user": "docs"}}]
        kubeconfig = kubernetes_site.folder / "docs.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(content))
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield
    finally:
        cluster.kubectl("delete", "serviceaccount", ACCOUNT, "-n", "default")
        cluster.kubectl("delete", "clusterrole,clusterrolebinding", ACCOUNT)


@pytest.fixture
def documented_rights(kubernetes_site, monkeypatch):
    with account_with(kubernetes_site, monkeypatch, ROLES[0]):
        yield


@pytest.fixture
def rights_with_quota(kubernetes_site, monkeypatch):
    with account_with(kubernetes_site, monkeypatch, *ROLES):
        yield


@pytest.fixture
def room(kubernetes_site):
    """A node of the cluster with four CPUs, for pods that choose it."""
    control = kubernetes_site.cluster.control
    control("POST", "/nodes", {"name": "node-room", "cpu": 4, "memory": "8Gi", "pods": 20, "labels": {"room": "yes"}})
    yield
    kubernetes_site.cluster.kubectl("delete", "pod", "other", "-n", "default", "--ignore-not-found", "--grace-period=1")
    control("POST", "/nodes", {"name": "node-room", "remove": True})


def with_quota(kubernetes_site, cpu: int) -> dict:
    return kubernetes_site.provider(label={"node-selector": {"room": "yes"}, "cpu": cpu}, context="ci",
                                    **{"cluster-quota": True})


# K8S-84
def test_a_node_that_the_cluster_cannot_hold(kubernetes_site, rights_with_quota, room):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    kubernetes_site.start(with_quota(kubernetes_site, 6))
    record = tree.wait_request(tree.add_request(["pod-small"]), "failed")
    why, = record["decline_reasons"]
    assert "it needs 6 cores, 1 instances, and one node has at most 4 cores" in why and "room=yes" in why
    cluster.control("POST", "/nodes", {"name": "node-room", "cpu": 8, "memory": "8Gi", "pods": 20, "labels": {"room": "yes"}})
    wait_for(lambda: [item for item in cluster.get("nodes") if item["metadata"]["name"] == "node-room"
                      and item["status"]["allocatable"]["cpu"] == "8"], "the node has grown")
    kubernetes_site.give_back(tree, tree.use(tree.add_request(["pod-small"])))


# K8S-85
def test_pods_of_others_are_waited_for(kubernetes_site, rights_with_quota, room):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    spec = {"nodeSelector": {"room": "yes"}, "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "registry.example/other", "resources": {"requests": {"cpu": "2"}}}]}
    path = kubernetes_site.folder / "other.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": spec}))
    cluster.kubectl("apply", "-n", "default", "-f", path)
    wait_for(lambda: cluster.get("pods", "-n", "default")[0]["spec"].get("nodeName"), "it has its place")
    launcher = kubernetes_site.start(with_quota(kubernetes_site, 3))
    request = tree.add_request(["pod-small"])
    wait_for(lambda: "one node has at most 2 cores" in launcher.output(), "it is said why it waits", 60)
    assert tree.request(request)["state"] in ("requested", "pending") and cluster.namespaces() == []
    cluster.kubectl("delete", "pod", "other", "-n", "default")
    held = tree.use(request)
    assert tree.node(held[0][0])["host_id"] == "node-room"
    kubernetes_site.give_back(tree, held)


# K8S-86
def test_a_quota_that_may_not_be_read(kubernetes_site, documented_rights):
    tree = kubernetes_site.tree()
    launcher = kubernetes_site.start(kubernetes_site.provider(context="ci", **{"cluster-quota": True}))
    kubernetes_site.give_back(tree, tree.use(tree.add_request(["pod-small"])))
    assert len(lines(launcher, "the configured limits alone count until the account may list and watch it")) == 1


# K8S-87
def test_a_quota_of_a_project(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    cluster.kubectl("create", "role", "quotas", "-n", "pool-a", "--verb=get,list,watch", "--resource=resourcequotas")
    cluster.kubectl("create", "rolebinding", "quotas", "-n", "pool-a", "--role=quotas",
                    "--serviceaccount=nodepool-system:pods")
    try:
        cluster.kubectl("create", "quota", "q", "-n", "pool-a", "--hard=pods=2")
        kubernetes_site.start(kubernetes_site.openshift_pods(**{"cluster-quota": True}))
        record = tree.wait_request(tree.add_request(["pod-small"] * 3), "failed")
        assert "3 instances needed, the quota in the cloud is 2" in record["decline_reasons"][0]
        held = tree.use(tree.add_request(["pod-small"] * 2))
        kubernetes_site.give_back(tree, held)
    finally:
        cluster.kubectl("delete", "role,rolebinding", "quotas", "-n", "pool-a")


def documented_section() -> dict:
    """The provider section at the top of the page."""
    lines = PAGE[PAGE.index("    providers:"):].split("\n\n")[0]
    return yaml.safe_load("\n".join(line[4:] for line in lines.splitlines()))["providers"][0]


# K8S-82
def test_the_section_of_the_page_works_with_the_rights_of_the_page(kubernetes_site, documented_rights):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    config = kubernetes_site.config(labels=[{"name": "pod-fedora"}, {"name": "empty-namespace"}],
                                    providers=[documented_section()])
    assert kubernetes_site.tool("config-validate", config=config).returncode == 0
    launcher = kubernetes_site.launcher(config)
    held = tree.use(tree.add_request(["pod-fedora", "empty-namespace"]))
    pod, empty = [tree.node(node_id) for node_id, _ in held]
    assert kubernetes_site.may(pod, "get", "pods/log") and kubernetes_site.may(empty, "create", "jobs.batch")
    cluster.kubectl("create", "namespace", "main-0000009996")
    cluster.kubectl("label", "namespace", "main-0000009996", "nodepool_provider_name=cluster",
                    "nodepool_node_id=0000009996", "nodepool_pool_name=main")
    wait_for(lambda: "main-0000009996" not in cluster.namespaces(), "the leaked namespace is gone", 60)
    kubernetes_site.give_back(tree, held)
    assert cluster.namespaces() == []
    assert "orbidden" not in launcher.output() and "rights of older releases" not in launcher.output()


# K8S-52: the page's rule for names
def test_the_spec_of_the_page_is_valid(kubernetes_site):
    text = PAGE[PAGE.index("    - name: pod-two"):].split("\n\n")[0]
    label, = yaml.safe_load("\n".join(line[4:] for line in text.splitlines()))
    provider = kubernetes_site.provider()
    provider["pools"][0]["labels"] = [label]
    config = kubernetes_site.config(labels=[{"name": "pod-two"}], providers=[provider])
    tree = kubernetes_site.tree()
    kubernetes_site.launcher(config)
    kubernetes_site.give_back(tree, tree.use(tree.add_request(["pod-two"])))
