"""A real API server for the tests, started once for each worker process.

The environment variable NODEPOOL_TEST_KUBERNETES names the folder that holds the commands `kubernetes-up` and
`kubernetes-down`; without it these tests are skipped. NODEPOOL_TEST_KUBERNETES_STATE names the state folder of one that
is left running.
"""
import pytest

from counterpart import running
from kubernetes_cluster import Cluster, KubernetesSite


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory):
    with running("NODEPOOL_TEST_KUBERNETES", tmp_path_factory.mktemp("cluster"), Cluster) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster):
    """The cluster without nodes of ours, with its usual behaviour."""
    shared_cluster.clear()
    yield shared_cluster
    shared_cluster.clear()


@pytest.fixture
def kubernetes_site(tmp_path, shared_zookeeper, cluster, monkeypatch):
    """An empty tree, and providers in the cluster."""
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    site = KubernetesSite(tmp_path, shared_zookeeper.hosts, cluster)
    yield site
    site.stop()
