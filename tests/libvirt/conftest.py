"""A real libvirt for the tests, started once for each worker process.

The environment variable NODEPOOL_TEST_LIBVIRT names the folder that holds the commands `libvirt-up` and
`libvirt-down`; without it these tests are skipped. NODEPOOL_TEST_LIBVIRT_STATE names the state folder of one that is
left running.
"""
import pathlib

import pytest

from counterpart import running
from image_server import ImageServer
from libvirt_host import LibvirtHost, LibvirtSite


@pytest.fixture(scope="session")
def libvirt_host(tmp_path_factory):
    # A short path: libvirt's sockets are in it.
    with running("NODEPOOL_TEST_LIBVIRT", tmp_path_factory.mktemp("virt"), LibvirtHost) as host:
        yield host


@pytest.fixture
def libvirt_site(tmp_path, shared_zookeeper, libvirt_host):
    """An empty tree, and a host without machines of ours."""
    libvirt_host.clear()
    site = LibvirtSite(tmp_path, shared_zookeeper.hosts, libvirt_host)
    yield site
    site.stop()
    libvirt_host.clear()


@pytest.fixture
def image_server(libvirt_host):
    server = ImageServer(pathlib.Path(libvirt_host.settings["guest"] + ".qcow2"))
    yield server
    server.shutdown()
    server.server_close()
