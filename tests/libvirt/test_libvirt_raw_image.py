"""A raw image on a real libvirt that begins like a qcow2 one, as a machine could have left it."""
import pathlib
import struct

import pytest
from nodepool_helpers import run
from services import wait_for

from libvirt_images import PROVIDER, LibvirtImages

BACKING = b"/etc/shadow"


def qcow2_header(size: int) -> bytes:
    """Version 2: of a disk of `size` bytes, backed by a file of the host. It fits before an ext4 file system."""
    cluster = 1 << 16
    tables = size // (cluster * cluster // 8)  # a table of clusters has a cluster
    fields = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", 2, 72, len(BACKING), 16, size, 0, tables, cluster, 2 * cluster, 1, 0, 0)
    return fields + BACKING


@pytest.fixture
def raw_image(libvirt_host, tmp_path) -> pathlib.Path:
    path = tmp_path / "image.raw"
    run("qemu-img", "convert", "-O", "raw", libvirt_host.settings["guest"] + ".qcow2", path)
    with path.open("r+b") as image:
        image.write(qcow2_header(1 << 40))
    assert b"qcow2" in run("qemu-img", "info", path).encode(), "whoever guesses is deceived"
    return path


def chain_of(host, name: str) -> list[tuple[str, str]]:
    """Format and file of each image below the machine's disk."""
    below, chain = host.domain(name).find("devices/disk/backingStore"), []
    while below is not None and below.find("source") is not None:
        chain.append((below.find("format").get("type"), below.find("source").get("file")))
        below = below.find("backingStore")
    return chain


# LV-37
def test_it_boots_as_raw(libvirt_site, raw_image):
    host, tree = libvirt_site.host, libvirt_site.tree()
    provider = libvirt_site.provider()
    # Its boot loader was where the header is.
    provider["cloud-images"] = [{"name": "tiny", "path": str(raw_image), "format": "raw", "username": "zuul",
                                 **host.direct_kernel()}]
    provider["pools"][0]["labels"][0]["disk"] = 4
    libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    held = tree.use(tree.add_request(["small"]))
    assert libvirt_site.login(tree.node(held[0][0]), "hostname") == f"np{held[0][0]}"
    name, = host.domains()
    assert chain_of(host, name) == [("raw", str(raw_image))]


# LV-37
def test_an_upload_is_what_it_was_uploaded_as(libvirt_site, raw_image):
    host, tree = libvirt_site.host, libvirt_site.tree()
    images = LibvirtImages(libvirt_site, raw_image, **{"image-format": "raw"})
    images.builder()
    images.wait_upload(provider=PROVIDER, seconds=300)
    volume, = images.volumes_by_build().values()
    assert volume.endswith(".raw") and host.volume(volume).findtext("backingStore/path") == BACKING.decode(), \
        "libvirt has guessed"
    libvirt_site.launcher(images.path)
    tree.add_request(["small"])
    name, = wait_for(host.domains, "the machine is started", 60)
    assert chain_of(host, name) == [("raw", host.virsh("vol-path", volume, "nodepool").strip())]
