"""What is left on a real libvirt of nodes and images whose records were removed."""
import pathlib

import pytest
from services import wait_for

from libvirt_host import LibvirtSite
from libvirt_images import PROVIDER, LibvirtImages

STRANGE = "np.here.strange"  # nobody's: no name that the driver gives


@pytest.fixture
def leaked(libvirt_site):
    """Two uploaded images, and a machine that boots from the newer one; no program runs any more. The images, the volume of
    the older one and the node's id."""
    images = LibvirtImages(libvirt_site, pathlib.Path(libvirt_site.host.settings["guest"] + ".qcow2"))
    builder = images.builder()
    first = images.wait_upload(provider=PROVIDER, seconds=300)[0]
    images.build_again()
    launcher = libvirt_site.launcher(images.path)
    images.tree.add_request(["small"])
    wait_for(lambda: "waiting for an address" in launcher.output(), "the machine is started", 60)
    node_id, = images.tree.children("/nodepool/nodes")
    builder.kill()
    launcher.kill()
    libvirt_site.host.virsh("vol-create-as", "nodepool", STRANGE, "1M")
    return images, first, node_id


def counted(statsd, kind: str) -> int:
    return sum(int(line.split(":")[1].split("|")[0])
               for _, line in statsd.lines(rf"nodepool\.provider\.here\.leaked\.{kind}:"))


# LV-29
def test_what_removed_records_named_is_deleted(libvirt_site, leaked, statsd):
    images, first, node_id = leaked
    host, tree = libvirt_site.host, images.tree
    name, = host.domains()
    volumes = images.volumes_by_build()
    # The volumes outlive their machine.
    host.virsh("destroy", name)
    request, = tree.children("/nodepool/requests")
    upload, = (number for build, number in images.uploads(provider=PROVIDER) if build == first)
    for path in (f"requests/{request}", f"nodes/{node_id}", f"images/debian/builds/{first}/providers/here/images/{upload}"):
        tree.zk.delete(f"/nodepool/{path}", recursive=True)
    libvirt_site.launcher(images.path)
    others = {volume for build, volume in volumes.items() if build != first}
    wait_for(lambda: set(host.volumes()) == {*others, STRANGE}, "image and volumes are deleted", 120)
    wait_for(lambda: counted(statsd, "images") == 1, "the image is counted", 30)
    assert counted(statsd, "volumes") == 4, "root, console and two seeds"


# LV-29
def test_an_empty_tree_deletes_only_machines(libvirt_site, leaked, tmp_path, shared_zookeeper):
    images, _, node_id = leaked
    host = libvirt_site.host
    left = "np.here.node.0000000077.0a1b2c3d.root"  # of a machine that does not run any more
    host.virsh("vol-create-as", "nodepool", left, "1M")
    (tmp_path / "empty").mkdir()
    empty = LibvirtSite(tmp_path / "empty", shared_zookeeper.hosts, host)
    try:
        launcher = empty.launcher()
        wait_for(lambda: host.domains() == [], "the machine is deleted", 60)
        wait_for(lambda: left in launcher.output(), "what stays is named", 60)
        wait_for(lambda: not any(f".node.{node_id}." in volume for volume in host.volumes()), "so are its own volumes", 60)
        assert {STRANGE, left, *images.volumes_by_build().values()} <= set(host.volumes())
    finally:
        empty.stop()
