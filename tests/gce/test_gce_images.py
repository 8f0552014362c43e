"""Images of the builder in Google Cloud: upload, faults, crashes, deletion, leaks."""
import os
import pathlib
import random
import tarfile

import pytest
from images import ImageSite
from services import wait_for

COPY = pathlib.Path(__file__).resolve().parent.parent / "data" / "copy-image"
BUCKET = "nodepool-images"
# Random data, which cannot be compressed: several parts.
SIZE = int(os.environ.get("NODEPOOL_TEST_GCE_IMAGE_BYTES", 20 << 20))
CALLS = ["objects.insert", "objects.insert.part", "images.insert", "globalOperations.get", "images.get", "objects.delete"]


class GceImages(ImageSite):
    """Builds of the diskimage `debian`, which are copies of one file, and a provider that takes them."""

    def __init__(self, site, file: pathlib.Path):
        super().__init__(site)
        self.project = site.project
        self.file = file

    def config(self, images: bool = True, **settings):
        entry = {"name": "debian", "dib-cmd": str(COPY), "elements": ["any"], "env-vars": {"IMAGE": str(self.file)}}
        provider = self.installation.provider(**{
            "object-storage": {"bucket-name": BUCKET}, "image-import-timeout": 60,
            "diskimages": [{"name": "debian"}] if images else [], **settings})
        return super().config([entry] if images else [], [provider])

    def builder(self, config=None, *options, wait=True):
        return super().builder(config or self.config(), *options, wait=wait, env=self.project.environment())

    def ready(self, seconds: float = 120) -> dict:
        """The record of an upload that is ready."""
        key = self.wait_upload(provider="gce", seconds=seconds)
        return self.uploads(provider="gce")[key]

    def left(self) -> tuple:
        return ({one["name"] for one in self.project.images()}, self.project.resources("objects"))


@pytest.fixture
def images(gce_site, tmp_path):
    file = tmp_path / "image"
    file.write_bytes(random.Random(1).randbytes(SIZE))
    return GceImages(gce_site, file)


# GCE-57
def test_an_image_is_made_of_the_file(images):
    project = images.project
    project.fault(action="objects.delete", error={"code": "backendError", "message": "no", "status": 503}, count=100)
    builder = images.builder()
    wait_for(lambda: project.calls("objects.delete"), "the image is made", 120)
    stored, = project.resources("objects")
    path, = (project.state / "objects").iterdir()
    with tarfile.open(path) as archive:
        member, = archive.getmembers()
        content = archive.extractfile(member)
        assert (member.name, member.size) == ("disk.raw", 1 << 30)
        assert content.read(SIZE) == images.file.read_bytes()
        assert not content.read(1 << 20).strip(b"\0")
    project.control("/faults", method="DELETE")
    record = images.ready()
    image, = project.images()
    assert image["status"] == "READY" and image["family"] == "debian"
    assert record["external_id"] == record["external_name"] == image["name"]
    assert image["labels"]["nodepool_provider_name"] == "gce"
    wait_for(lambda: project.resources("objects") == [], "the object is removed", 60)
    assert stored["name"].endswith(".tar.gz") and "ya29." not in builder.output()


# GCE-58
@pytest.mark.parametrize("fault", [{"action": "objects.insert.part", "skip": 1, "drop": "before"},
                                   {"action": "objects.insert.part", "skip": 1, "drop": "after"},
                                   {"action": "objects.insert.part", "skip": 2, "drop": "after"},
                                   {"action": "objects.insert.part", "skip": 1,
                                    "error": {"code": "uploadBroken", "message": "gone", "status": 410}},
                                   {"action": "images.insert", "drop": "after"}])
def test_an_upload_that_is_interrupted(images, fault):
    images.project.fault(count=1, **fault)
    builder = images.builder()
    images.ready()
    assert images.left() == ({image["name"] for image in images.project.images()}, [])
    assert "failed" not in builder.output()


# GCE-58
def test_an_import_that_fails(images):
    images.project.set(image_fail=1)
    builder = images.builder()
    wait_for(lambda: "The image could not be imported." in builder.output(), "the log has Google's text", 120)
    images.ready()
    assert images.project.resources("objects") == []


# GCE-57
@pytest.mark.parametrize("action", CALLS)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_builder_that_is_killed(images, action, moment):
    project = images.project
    if moment == "after":
        project.fault(action=action, drop="after", count=1)
    project.fault(action=action, delay_ms=30000, drop="before", count=1)
    builder = images.builder()
    wait_for(lambda: project.control("/faults") == [], f"{action} hangs", 120)
    builder.kill()
    images.builder()
    record = images.ready()
    wait_for(lambda: images.left() == ({record["external_id"]}, []), "only the image that is used is left", 60)


# GCE-59
def test_deletion(images):
    images.builder()
    record = images.ready()
    images.project.fault(action="images.delete", drop="after", count=1)
    images.installation.tool("dib-image-delete", *[f"debian-{build}" for build in images.builds()], config=images.config())
    wait_for(lambda: record["external_id"] not in images.left()[0], "the image is deleted", 60)


# GCE-59
@pytest.mark.parametrize("moment", ["before", "after", "later"])
def test_a_builder_that_is_killed_in_a_deletion(images, moment):
    """Google never gets the call; it does the work and the answer is lost; it does the work when the builder is dead."""
    project = images.project
    builder = images.builder()
    old = images.ready()["external_id"]
    hang = {"action": "images.delete", "delay_ms": 30000, "drop": "before", "count": 1}
    if moment == "after":
        project.fault(action="images.delete", drop="after", count=1)
    project.fault(**(hang if moment != "later" else {"action": "images.delete", "delay_ms": 5000, "count": 1}))
    images.installation.tool("dib-image-delete", *[f"debian-{build}" for build in images.builds()], config=images.config())
    wait_for(lambda: project.control("/faults") == [], "images.delete hangs", 60)
    builder.kill()
    project.control("/faults", method="DELETE")
    images.builder()

    def is_replaced():
        uploads = [one for one in images.uploads(provider="gce").values() if one["state"] == "ready"]
        return len(uploads) == 1 and uploads[0]["external_id"] != old and images.left() == ({uploads[0]["external_id"]}, [])

    wait_for(is_replaced, "only the next image is left", 120)
