"""A checkout in which everything is installed and built, for ./run --real. Only with ./test --real."""
import pytest

from built_checkout import make_checkout, words_to_enter
from left_on_host import LeftOnHost
from shell import Shell


@pytest.fixture
def checkout(tmp_path_factory):
    # A short path: libvirt's socket is in it.
    folder = tmp_path_factory.mktemp("real")
    make_checkout(folder, with_drivers=True)
    return folder


@pytest.fixture
def host(checkout):
    """What the host has before; nothing more may be there at the end."""
    before = LeftOnHost(checkout)
    yield before
    before.assert_unchanged()


@pytest.fixture
def shell(checkout, host):
    with Shell(words_to_enter(checkout), checkout) as typed:
        yield typed
        typed.run("./run stop", 200)
