"""A real OpenStack for the tests, started once for each worker process.

The environment variable NODEPOOL_TEST_OPENSTACK names the folder that holds the commands
`cloud-up` and `cloud-down`, as this one does, or `openstack-up` and `openstack-down`;
without it these tests are skipped. NODEPOOL_TEST_OPENSTACK_STATE names the state folder of a
cloud that is left running.
"""
import os
import pathlib

import pytest

from openstack_cloud import Cloud, Commands, OpenstackSite


@pytest.fixture(scope="session")
def cloud(tmp_path_factory):
    commands = Commands(pathlib.Path(os.environ["NODEPOOL_TEST_OPENSTACK"]))
    kept = os.environ.get("NODEPOOL_TEST_OPENSTACK_STATE")
    state = pathlib.Path(kept) if kept else tmp_path_factory.mktemp("openstack")
    commands.up(state)
    yield Cloud(state, commands)
    if not kept:
        commands.down(state, "--remove")


@pytest.fixture
def openstack_site(tmp_path, shared_zookeeper, cloud):
    """An empty tree, and an empty project in the cloud."""
    cloud.clear()
    site = OpenstackSite(tmp_path, shared_zookeeper.hosts, cloud)
    yield site
    site.stop()
    cloud.clear()
