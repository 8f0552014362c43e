"""A counterpart of Google Cloud for the tests, started once for each worker process.

The environment variable NODEPOOL_TEST_GCE names the folder that holds the commands `gce-up` and `gce-down`; without it
these tests are skipped. NODEPOOL_TEST_GCE_STATE names the state folder of one that is left running.
"""
import pytest

from counterpart import running
from gce_project import GceSite, Project


@pytest.fixture(scope="session")
def gce_process(tmp_path_factory):
    with running("NODEPOOL_TEST_GCE", tmp_path_factory.mktemp("gce"), Project) as project:
        yield project


@pytest.fixture
def project(gce_process):
    """A project as it is at the start."""
    gce_process.reset()
    yield gce_process
    gce_process.reset()


@pytest.fixture
def gce_site(tmp_path, shared_zookeeper, project):
    """An empty tree, and a provider in that project."""
    site = GceSite(tmp_path, shared_zookeeper.hosts, project)
    yield site
    site.stop()
