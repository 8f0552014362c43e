"""What docs/drivers/kubernetes.md says is so."""
import base64
import re

import pytest
import yaml
from services import wait_for

from nodepool_helpers import ROOT

PAGE = (ROOT / "docs/drivers/kubernetes.md").read_text()
ACCOUNT = "nodepool-docs"


@pytest.fixture
def documented_rights(kubernetes_site, monkeypatch):
    """A kubeconfig whose context `ci` has the rights of the page and no others."""
    cluster = kubernetes_site.cluster
    role = yaml.safe_load(re.search(r"```yaml\n(.*?)```", PAGE, re.S)[1])
    role["metadata"]["name"] = ACCOUNT
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
