"""Fresh Debians with a clean checkout, as their newcomers have them.

Everything else comes from Debian's mirror, but for results of the compiler: ccache shares ours. The checkout has the path
of ours, so that they fit; they are used only where compiler, options and sources are the same.
"""
import pathlib

import pytest

from debian_tree import CHECKOUT, Debian
from nodepool_helpers import ROOT, run

# What an installed Debian has and debootstrap's smallest one has not.
BASICS = ["systemd-sysv", "openssh-server"]
NAMES = "127.0.0.1 localhost nodepool.example.org lab1.example.org\n"


@pytest.fixture(scope="session")
def installed_debian(debian, tmp_path_factory):
    """A Debian with what is on every machine, to be copied."""
    ready = debian.copy(tmp_path_factory.mktemp("installed"))
    ready.path("/etc/hosts").write_text(NAMES)
    ready.path("/etc/hostname").write_text("nodepool\n")
    ready.path("/etc/apt/apt.conf.d/answer-yes").write_text('APT::Get::Assume-Yes "true";\n')
    ready.upgrade()
    ready.install(*BASICS)
    yield ready
    ready.remove()


@pytest.fixture(scope="session")
def downloads(tmp_path_factory):
    """Packages that were fetched for one machine and need not be for the next."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def newcomer(installed_debian, downloads, tmp_path_factory) -> Debian:
    """The machine of somebody who has just cloned the repository."""
    machine = installed_debian.copy(tmp_path_factory.mktemp("newcomer"))
    cache = pathlib.Path(run("ccache", "--get-config", "cache_dir").strip())
    cache.mkdir(parents=True, exist_ok=True)
    machine.mounts += ["--bind", downloads, "/var/cache/apt/archives", "--bind", cache, "/root/.cache/ccache"]
    machine.environment["CCACHE_MAXSIZE"] = run("ccache", "--get-config", "max_size").strip()
    checkout = machine.path(CHECKOUT)
    checkout.parent.mkdir(parents=True, exist_ok=True)
    run("git", "clone", "-q", "--no-hardlinks", ROOT, checkout)
    yield machine
    machine.remove()
