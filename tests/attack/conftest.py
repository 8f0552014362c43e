"""Daemons under attack, and their figures."""
import pathlib
import resource

import pytest

import measure
from bounds import Bounds
from targets import LauncherSite, start_server


def pytest_addoption(parser):
    parser.addoption("--attack-figures", metavar="FILE", type=pathlib.Path,
                     help="add the figures of each attack to FILE, which figures.py shows as a table")


@pytest.fixture(autouse=True)
def many_files():
    """Thousands of connections of this process are possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 8192), hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def measured(request):
    """measured(attack, target, **bounds): what its body does to the target must be within the bounds."""
    file = request.config.getoption("--attack-figures", default=None)

    def record(figures):
        request.node.user_properties.append(("figures", str(figures)))
        if file:
            figures.append_to(file)

    return lambda attack, target, **bounds: measure.measured(attack, target, Bounds(**bounds), record)


@pytest.fixture
def server(tmp_path):
    target = start_server(tmp_path)
    yield target
    target.process.stop()


@pytest.fixture
def site(tmp_path):
    """Starts launchers: see LauncherSite."""
    site = LauncherSite(tmp_path)
    yield site
    site.stop()
