"""A browser, and launchers whose cluster is planted in ZooKeeper. Only with ./test --browser."""
import os
import pathlib

import pytest

from cluster import Cluster
from nodepool_helpers import fake_provider
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
    """The same browser, as wide as a desk's screen and light."""
    browser.open("about:blank")
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


@pytest.fixture
def screenshots():
    """Where pictures of the page are kept; None: nowhere."""
    folder = os.environ.get("NODEPOOL_TEST_SCREENSHOTS")
    if not folder:
        return None
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path
