"""Real servers for the tests, one ZooKeeper for each worker process of pytest.

Tests that share it have a chroot of their own; those that stop or break a server
start a private one.
"""
import os
import pathlib
import signal
import sys
import uuid

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

from debian_tree import MISSING, Debian  # noqa: E402
from nodepool_helpers import Installation, Tree  # noqa: E402
from services import Sshd, make_certificates, new_zookeeper, start_ensemble  # noqa: E402
from statsd_listener import StatsdListener  # noqa: E402

# A shell that starts the tests in the background has SIGINT ignored, and what ignores it from its start cannot trap it.
signal.signal(signal.SIGINT, signal.default_int_handler)

MOST_LOG_LINES = 40
MOST_LOG_COLUMNS = 300

# What the tests of a folder need beside packages.txt: ./test sets the variable for its option.
OPTIONAL = {
    "aws": "NODEPOOL_TEST_AWS",
    "gce": "NODEPOOL_TEST_GCE",
    "generated_client": "NODEPOOL_TEST_GENERATED_CLIENT",
    "kubernetes": "NODEPOOL_TEST_KUBERNETES",
    "libvirt": "NODEPOOL_TEST_LIBVIRT",
    "openstack": "NODEPOOL_TEST_OPENSTACK",
    "page": "NODEPOOL_TEST_BROWSER",
    "real": "NODEPOOL_TEST_REAL",
    "runners": "NODEPOOL_TEST_GITHUB",
}


def put_long_ones_first(items):
    """Workers get chunks of the list at first: the long tests begin at once, in different workers, and not at the end."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    chunk = max(len(items) // workers // 4, 2)  # as xdist's LoadScheduling has it
    long = [item for item in items if item.get_closest_marker("long")]
    items[:] = [item for item in items if item not in long]
    for number, item in enumerate(long):
        items.insert(number % workers * chunk + number // workers, item)


def pytest_collection_modifyitems(items):
    put_long_ones_first(items)
    for item in items:
        variable = OPTIONAL.get(item.path.relative_to(ROOT / "tests").parts[0])
        if variable is not None and variable not in os.environ:
            item.add_marker(pytest.mark.skip(reason=f"{variable} is not set, see ./test --help"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What the programs of a failed test wrote last stands in its report: its folder is gone by then."""
    report = (yield).get_result()
    folder = item.funcargs.get("tmp_path") if hasattr(item, "funcargs") else None
    if report.failed and folder is not None:
        for path in sorted(folder.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()[-MOST_LOG_LINES:]
            report.sections.append((f"end of {path.name}", "\n".join(line[:MOST_LOG_COLUMNS] for line in lines)))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def shared_zookeeper(tmp_path_factory, certificates):
    server = new_zookeeper(tmp_path_factory.mktemp("zookeeper"), certificates).start()
    yield server
    server.stop()


@pytest.fixture
def private_zookeeper(tmp_path):
    server = new_zookeeper(tmp_path / "zookeeper").start()
    yield server
    server.process.resume()
    server.stop()


@pytest.fixture
def ensemble(tmp_path):
    servers = start_ensemble(tmp_path / "ensemble")
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture
def sshd(tmp_path):
    server = Sshd(tmp_path / "sshd", home=tmp_path).start()
    yield server
    server.stop()


@pytest.fixture
def site(tmp_path, shared_zookeeper):
    """An empty tree in the shared ZooKeeper, with programs started by the test."""
    installation = Installation(tmp_path, shared_zookeeper.hosts, chroot=f"/test-{uuid.uuid4().hex}")
    yield installation
    installation.stop()


@pytest.fixture
def private_site(tmp_path, private_zookeeper):
    """The same with a ZooKeeper that the test may stop, pause and restart."""
    installation = Installation(tmp_path, private_zookeeper.hosts)
    installation.zookeeper = private_zookeeper
    yield installation
    installation.stop()


@pytest.fixture
def statsd(monkeypatch):
    listener = StatsdListener()
    monkeypatch.setenv("STATSD_HOST", "127.0.0.1")
    monkeypatch.setenv("STATSD_PORT", str(listener.port))
    yield listener
    listener.close()


@pytest.fixture(scope="session")
def debian(tmp_path_factory):
    """A fresh Debian in a folder, to be copied."""
    if MISSING:
        pytest.skip(MISSING)
    fresh = Debian.bootstrap(tmp_path_factory.mktemp("debian"))
    yield fresh
    fresh.remove()
