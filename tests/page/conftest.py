"""A browser, and launchers whose cluster is planted in ZooKeeper. Only with ./test --browser."""
import os
import pathlib
import uuid

import pytest

from cluster import Cluster
from nodepool_helpers import fake_provider
from planted import PlantedPool
from services import free_port
from web_client import web_config


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    from browser import Browser  # what it imports need not be installed otherwise
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()


@pytest.fixture
def fresh_browser(browser):
    """The same browser, as wide as a desk's screen and light, without what it complained about before."""
    browser.open("about:blank")
    browser.faults()
    browser.size(1400, 900)
    browser.colours("light")
    return browser


@pytest.fixture
def cluster(site):
    """A launcher with a page and nothing but what the test plants."""
    port = free_port()
    config = web_config(site, port, labels=[{"name": "small"}, {"name": "large"}],
                        providers=[fake_provider(labels=("small", "large"), **{"max-servers": 1})])
    site.launcher(config, seconds_between_sweeps=600)
    return Cluster(site, port)


@pytest.fixture(scope="session")
def planted(tmp_path_factory, shared_zookeeper):
    """A pool as large sites have it. Tests that change it put it back."""
    pool = PlantedPool(tmp_path_factory.mktemp("planted"), shared_zookeeper.hosts, f"/planted-{uuid.uuid4().hex}")
    try:
        yield pool.start()
    finally:
        pool.stop()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory):
    """Where pictures of the page are kept: a folder that NODEPOOL_TEST_SCREENSHOTS names, or one of pytest's."""
    path = pathlib.Path(os.environ.get("NODEPOOL_TEST_SCREENSHOTS") or tmp_path_factory.mktemp("pictures"))
    path.mkdir(parents=True, exist_ok=True)
    return path
