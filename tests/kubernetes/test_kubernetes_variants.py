"""Clusters of another make: without automatic tokens, without a token controller, with two kinds of projects."""
import os
import pathlib
from datetime import datetime, timedelta

import pytest

from kubernetes_cluster import Cluster, KubernetesSite


@pytest.fixture(params=[["--modern-tokens", "--two-projects"], ["--no-token-controller"]],
                ids=["modern", "without-tokens"])
def other_site(request, tmp_path, tmp_path_factory, shared_zookeeper, monkeypatch):
    cluster = Cluster(tmp_path_factory.mktemp("other"), pathlib.Path(os.environ["NODEPOOL_TEST_KUBERNETES"]))
    cluster.up(*request.param)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    site = KubernetesSite(tmp_path, shared_zookeeper.hosts, cluster)
    site.has_projects = "--two-projects" in request.param
    yield site
    site.stop()
    cluster.down("--remove")


# K8S-58, K8S-80, K8S-89
def test_nodes_live_and_die(other_site):
    cluster, tree = other_site.cluster, other_site.tree()
    other_site.start(other_site.provider(), other_site.openshift(name="projects", pools=[
        {"name": "os", "labels": [{"name": "project", "type": "project"}]}]))
    labels = ["pod-small"] + (["project"] if other_site.has_projects else [])
    held = [node for label in labels for node in tree.use(tree.add_request([label]))]
    for node_id, _ in held:
        node = tree.node(node_id)
        assert other_site.may(node, "get", "pods")
        assert len(node["connection_port"]["token"].split(".")) == 3
        # A token that was asked for has an end.
        assert (node["driver_data"] is None) == other_site.has_projects
        if node["driver_data"]:
            begin, end = (datetime.fromisoformat(node["driver_data"][key]) for key in ("token_begins", "token_ends"))
            assert abs(end - begin - timedelta(days=30)) < timedelta(minutes=1)
    other_site.give_back(tree, held)
    assert cluster.namespaces() == [] and cluster.projects() == []
