"""A storage pool that is full, on a real libvirt."""
import pathlib
import subprocess

import pytest
from nodepool_helpers import run
from services import wait_for


class SmallPool:
    """A storage pool in a file system of 220 MiB, which only the host's libvirt sees."""

    def __init__(self, host, path: pathlib.Path):
        self.host, self.path = host, path
        path.mkdir(exist_ok=True)
        self._mount("-t", "tmpfs", "-o", "size=220m,mode=755", "tmpfs")

    def _mount(self, *words):
        run("nsenter", "--mount", "--target", self.host.daemon_pid(), "mount", *words, self.path)

    def enlarge(self):
        self._mount("-o", "remount,size=900m")

    def remove(self):
        for words in (["pool-destroy", "small"], ["pool-undefine", "small"]):
            subprocess.run(["virsh", "-c", self.host.uri, *words], timeout=60, capture_output=True)
        run("nsenter", "--mount", "--target", self.host.daemon_pid(), "umount", "--lazy", self.path)


@pytest.fixture
def small_pool(libvirt_site):
    pool = SmallPool(libvirt_site.host, libvirt_site.host.state / "small")
    yield pool
    libvirt_site.stop()
    libvirt_site.host.clear()
    pool.remove()


# LV-35
def test_a_machine_that_has_filled_the_pool_goes_on_when_there_is_room(libvirt_site, small_pool):
    host, tree = libvirt_site.host, libvirt_site.tree()
    provider = libvirt_site.provider({"disk": 2, "memory": 384})
    provider["hosts"] = [{"name": "local", "uri": provider.pop("uri"), "min-free-disk": 0, "disk": "5000%"}]
    provider["storage-pool"] = {"name": "small", "path": str(small_pool.path)}
    provider["cloud-images"] = [{"name": "tiny", "path": str(host.state / "pool/guest.qcow2"), "format": "qcow2",
                                 "username": "zuul", **host.direct_kernel()}]
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    held = tree.use(tree.add_request(["small"]))
    as_root = tree.node(held[0][0]) | {"username": "root"}
    libvirt_site.login(as_root, "nohup sh -c 'head -c 300000000 /dev/zero >/filled; sync; touch /done' >/dev/null 2>&1 &")
    wait_for(lambda: "the storage pool is full; nothing new is made there" in launcher.output(), "QEMU pauses it", 300)
    name, = host.domains()
    assert "paused" in host.virsh("domstate", name)
    waiting = tree.add_request(["small"])
    wait_for(lambda: "a machine there is paused, since the storage pool is full" in launcher.output(),
             "nothing new is made", 60)
    assert tree.request(waiting)["state"] == "pending" and host.domains() == [name]
    small_pool.enlarge()
    wait_for(lambda: "continues: the storage pool has room again" in launcher.output(), "the machine continues", 60)
    wait_for(lambda: libvirt_site.login(as_root, "ls", "/done || true") == "/done", "it has written all", 300)
    more = tree.use(waiting)
    for nodes in (held, more):
        tree.give_back(nodes)
        tree.wait_node_gone(nodes[0][0], 120)
