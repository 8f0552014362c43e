"""Images of the builder on a real libvirt: replaced and deleted while machines run, and a builder that is killed."""
import dataclasses
import filecmp
import os
import pathlib
import random
import time

import pytest
from services import wait_for

from libvirt_images import PROVIDER, LibvirtImages

# How often the builder is killed; twenty times take about seven minutes.
KILLS = int(os.environ.get("NODEPOOL_TEST_LIBVIRT_KILLS", "3"))
MEBIBYTE = 1 << 20


@pytest.fixture
def images(libvirt_site):
    """Builds of the guest's image, and their first upload."""
    site = LibvirtImages(libvirt_site, pathlib.Path(libvirt_site.host.settings["guest"] + ".qcow2"))
    site.builder()
    site.wait_upload(provider=PROVIDER, seconds=300)
    libvirt_site.launcher(site.path)
    return site


def image_of(images, held) -> str:
    """The volume that the node's machine is backed by, and that it answers."""
    node_id = held[0][0]
    site = images.installation
    assert site.login(site.observer().node(node_id), "hostname") == f"np{node_id}"
    root, = (name for name in images.host.volumes() if f".node.{node_id}." in name and name.endswith(".root"))
    return pathlib.Path(images.host.volume(root).findtext("backingStore/path")).name


# LV-20, LV-60
def test_an_image_is_rebuilt_while_its_machines_run(images):
    tree = images.installation.tree()
    old = tree.use(tree.add_request(["small"]))
    (first, first_volume), = images.volumes_by_build().items()
    assert image_of(images, old) == first_volume
    # LV-18
    uploaded = pathlib.Path(images.host.virsh("vol-path", first_volume, "nodepool").strip())
    assert filecmp.cmp(uploaded, images.host.settings["guest"] + ".qcow2", shallow=False)
    second = images.build_again()
    new = tree.use(tree.add_request(["small"]))
    assert image_of(images, new) == images.volumes_by_build()[second]
    assert image_of(images, old) == first_volume, "it lives on"
    images.tool("dib-image-delete", f"debian-{first}")
    wait_for(lambda: f"image {first_volume} on host local is in use by np.here.node.{old[0][0]}" in images.output(),
             "the deletion waits for the machine", 120)
    assert first_volume in images.host.volumes()
    tree.give_back(old)
    tree.wait_node_gone(old[0][0], 120)
    wait_for(lambda: first not in images.builds() and first_volume not in images.host.volumes(),
             "the image goes with its last machine", 120)
    assert image_of(images, new) == images.volumes_by_build()[second]
    tree.give_back(new)
    tree.wait_node_gone(new[0][0], 120)
    images.wait_settled()


# LV-61
def test_machines_boot_from_the_image_before_when_the_newest_is_deleted(images):
    tree = images.installation.tree()
    (first, first_volume), = images.volumes_by_build().items()
    second = images.build_again()
    images.tool("image-pause", "debian")
    images.tool("dib-image-delete", f"debian-{second}")
    wait_for(lambda: set(images.builds()) == {first}, "the newest is gone", 120)
    held = tree.use(tree.add_request(["small"]))
    assert image_of(images, held) == first_volume
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 120)
    images.wait_settled()


def sparse_file(path: pathlib.Path) -> pathlib.Path:
    """512 MiB with 160 MiB of data in four places."""
    piece = random.Random(1).randbytes(MEBIBYTE)
    with path.open("wb") as file:
        for place in range(4):
            file.seek(place * 128 * MEBIBYTE)
            for _ in range(40):
                file.write(piece)
        file.truncate(512 * MEBIBYTE)
    return path


@dataclasses.dataclass
class Steps:
    """The steps of an image's life, each begun by one call; and how long they usually take."""

    images: LibvirtImages
    seconds: dict = dataclasses.field(default_factory=dict)

    def build(self):
        self.images.tool("image-build", "debian")
        self.images.wait_build(state="building", seconds=60)

    def upload(self):
        self.build()
        self.images.wait_upload(provider=PROVIDER, state="uploading", seconds=60)

    def deletion(self):
        records = self.images.builds()
        oldest = min(records, key=lambda build: records[build]["state_time"])
        self.images.tool("dib-image-delete", f"debian-{oldest}")

    def measure(self):
        def seconds_of(begin, is_over) -> float:
            begin()
            begun = time.monotonic()
            wait_for(is_over, "the step ends", 120)
            return time.monotonic() - begun

        def is_in(state) -> bool:
            return state in {record["state"] for record in self.images.builds().values()}

        self.seconds["build"] = seconds_of(self.build, lambda: not is_in("building"))
        self.images.wait_settled()
        self.seconds["upload"] = seconds_of(self.upload, self.images.is_settled)
        self.seconds["deletion"] = seconds_of(self.deletion, self.images.is_settled)


# LV-19, LV-62
def test_a_builder_that_is_killed_loses_no_image_and_leaves_nothing(libvirt_site, tmp_path):
    images = LibvirtImages(libvirt_site, sparse_file(tmp_path / "sparse"), **{"image-format": "raw"})
    builder = images.builder()
    images.wait_upload(provider=PROVIDER, seconds=300)
    steps = Steps(images)
    steps.measure()
    for number in range(KILLS):
        name = ("build", "upload", "deletion")[number % 3]
        before = set(images.volumes_by_build().values())
        getattr(steps, name)()
        time.sleep(steps.seconds[name] * (number // 3) / (KILLS / 3))
        builder.kill()
        ready = set(images.volumes_by_build().values())
        assert ready <= set(images.host.volumes()), "what is ready is there"
        assert ready & before, "an image that was ready stays ready"
        builder = images.builder()
        images.wait_settled()
