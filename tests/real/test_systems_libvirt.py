"""./run --real where the system's libvirt works: here one that the test starts, seen at the system's place."""
import os

import pytest

from quickstart.private_libvirt import PrivateLibvirt
from real_run import kill, start
from shell import Shell

AT_THE_SYSTEMS_PLACE = 'mount --bind "$1" /run/libvirt; shift; exec "$@"'


@pytest.fixture
def system(tmp_path_factory):
    libvirt = PrivateLibvirt(tmp_path_factory.mktemp("system"))
    libvirt.start()
    yield libvirt
    libvirt.remove()


@pytest.fixture
def members_shell(system, checkout, host):
    """That of a user who may use the system's libvirt."""
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", AT_THE_SYSTEMS_PLACE, "sh", system.folder / "run",
             "env", "-C", checkout, f"PATH={checkout}/path:{os.environ['PATH']}", f"NODEPOOL_BIN={checkout}/build/release/bin"]
    with Shell(words, checkout) as typed:
        yield typed
        typed.run("./run stop", 200)


def names_on(system) -> list[str]:
    return [name for words in (["list"], ["pool-list", "--all"], ["net-list", "--all"])
            for name in system.virsh(*words, "--name").split()]


def test_the_systems_libvirt_is_used_and_left_as_it_was(members_shell, system, checkout):
    # Plain ./run: nothing has to be installed or started.
    run = start(members_shell, "./run")
    assert "Using qemu:///system" in run.output()
    assert len(names_on(system)) >= 3, "a machine, a pool and a network"
    assert "Stopped." in members_shell.succeed("./run stop", 200)
    assert names_on(system) == []
    kill(start(members_shell, "./run"), checkout)
    assert len(names_on(system)) >= 3
    members_shell.succeed("./run stop", 200)
    assert names_on(system) == []
    assert list((system.folder / "lib/images").iterdir()) == [], "no folder of the pool is left"
