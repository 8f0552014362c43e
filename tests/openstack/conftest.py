"""A real OpenStack for the tests, started once for each worker process.

The environment variable NODEPOOL_TEST_OPENSTACK names the folder that holds the commands
`cloud-up` and `cloud-down`, as this one does, or `openstack-up` and `openstack-down`;
without it these tests are skipped. NODEPOOL_TEST_OPENSTACK_STATE names the state folder of a
cloud that is left running.
"""
import pytest

from counterpart import running
from openstack_cloud import Cloud, OpenstackSite


@pytest.fixture(scope="session")
def cloud(tmp_path_factory):
    with running("NODEPOOL_TEST_OPENSTACK", tmp_path_factory.mktemp("openstack"), Cloud) as cloud:
        yield cloud


@pytest.fixture
def openstack_site(tmp_path, shared_zookeeper, cloud):
    """An empty tree, and an empty project in the cloud."""
    cloud.clear()
    site = OpenstackSite(tmp_path, shared_zookeeper.hosts, cloud)
    yield site
    site.stop()
    cloud.clear()
