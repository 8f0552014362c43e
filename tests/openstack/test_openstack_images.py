"""Images in a real glance: built, uploaded, booted from and removed."""
import hashlib
import os
import re
import shutil
import signal

import pytest
import yaml

from images import ImageSite, image
from nodepool_helpers import ROOT
from services import wait_for

REAL = os.getuid() == 0 and all(map(shutil.which, ("disk-image-create", "sudo", "qemu-img")))


@pytest.fixture
def images(openstack_site, monkeypatch):
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(openstack_site.cloud.clouds_yaml))
    return ImageSite(openstack_site)


def real_image(images):
    """A few megabytes made by disk-image-create itself."""
    work = images.folder / "work"
    work.mkdir(exist_ok=True)
    variables = {"HOME": work, "TMPDIR": work, "DIB_IMAGE_CACHE": work / "cache", "DIB_JOURNAL_SIZE": 4}
    return {"name": "tiny", "elements": ["tiny-root", "manifests"], "release": "1",
            "env-vars": {key: str(value) for key, value in variables.items()}}


def assert_is_in_the_cloud(images, build, number):
    """What glance has is the file, by its own sums."""
    upload = images.uploads("tiny", "real")[(build, number)]
    path = images.images_dir() / f"tiny-{build}.qcow2"
    found = images.installation.cloud.api.image.get_image(upload["external_id"])
    content = path.read_bytes()
    assert (found.status, found.size, found.disk_format) == ("active", len(content), "qcow2")
    assert found.checksum == hashlib.md5(content).hexdigest()
    assert found.hash_value == hashlib.new(found.hash_algo, content).hexdigest()
    assert found.name == upload["external_name"] and found.visibility == "private"
    marks = {key: found.properties[key] for key in found.properties if key.startswith("nodepool_")}
    assert re.fullmatch("[0-9a-f]{32}", marks.pop("nodepool_attempt"))
    assert marks == {"nodepool_build_id": build, "nodepool_upload_id": number, "nodepool_provider_name": "real"}
    return found


# LA-26, O-node: the image has the metadata of the disk image, the provider's own over it.
@pytest.mark.parametrize("command", [pytest.param("disk-image-create", marks=pytest.mark.skipif(
    not REAL, reason="needs root, sudo and python3-diskimage-builder")), "stand-in"])
def test_built_uploaded_booted_removed(images, command):
    site, tree = images.installation, images.tree
    entry = real_image(images) if command == "disk-image-create" else image("tiny")
    entry["metadata"] = {"os_distro": "any", "made_by": "tests"}
    provider = site.image_provider(pool={"node-attributes": {"zone": "north"}})
    config = images.config([entry], [provider], elements_dir=str(ROOT / "tests/data/elements"))
    builder = images.builder(config)
    build, number = images.wait_upload("tiny", "real", seconds=180)
    in_cloud = assert_is_in_the_cloud(images, build, number)
    said = {**in_cloud.to_dict(), **in_cloud.properties}
    assert (said["os_distro"], said["made_by"]) == ("tiny", "tests")
    if command == "disk-image-create":
        path = images.images_dir() / f"tiny-{build}.qcow2"
        assert in_cloud.properties["owner_specified.openstack.sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    launcher = site.launcher(config)
    held = tree.use(tree.add_request(["small"]))
    node = tree.node(held[0][0])
    assert node["attributes"] == {"zone": "north"}
    assert node["image_id"].endswith(f"/{build}/providers/real/images/{number}")
    server, = site.cloud.servers(nodepool_node_id=held[0][0])
    assert server.image["id"] == in_cloud.id
    listed = site.tool("alien-image-list", "--json", config=config, check=True)
    assert listed.stdout.strip() == "[]"
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)
    launcher.stop()
    images.config([entry], [site.image_provider(images=())])
    wait_for(lambda: not site.cloud.images(), "the image leaves the cloud with the configuration", 60)
    wait_for(lambda: not images.uploads("tiny", "real"), "so does its record")
    builder.stop(number=signal.SIGINT)


def test_imported(images, monkeypatch):
    """Staged and imported, where clouds.yaml says so."""
    cloud = images.installation.cloud
    settings = yaml.safe_load(cloud.clouds_yaml.read_text())["clouds"]["ci-direct"]
    path = images.installation.write_clouds(ci_direct={**settings, "image_use_import": True})
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    calls = cloud.calls()
    images.builder(images.config([image("tiny")], [images.installation.image_provider()]))
    build, number = images.wait_upload("tiny", "real", seconds=60)
    assert_is_in_the_cloud(images, build, number)
    counted = calls.counted("glance")
    assert counted.get("POST /v2/images/ID/import") == 1, counted


def start_long_upload(images):
    """A builder in the middle of an upload, its configuration, and the upload's key."""
    config = images.config([image("tiny", env={"SIZE": "3G"})], [images.installation.image_provider()])
    builder = images.builder(config)
    key = images.wait_upload("tiny", "real", state="uploading", seconds=60)
    wait_for(lambda: [entry.status for entry in images.installation.cloud.images()] == ["saving"],
             "glance receives the file", 60)
    return builder, config, key


def test_killed_while_uploading(images):
    site = images.installation
    builder, config, key = start_long_upload(images)
    left, = site.cloud.images()
    builder.kill()
    path = images.images_dir() / f"tiny-{key[0]}.qcow2"
    os.truncate(path, 1000)  # so that the next one takes no time
    for kind in ("md5", "sha256"):
        path.with_name(f"{path.name}.{kind}").unlink(missing_ok=True)
    images.builder(config)
    new = images.wait_upload("tiny", "real", build=key[0], seconds=120)
    assert new != key
    wait_for(lambda: set(images.uploads("tiny", "real")) == {new}, "the abandoned record is removed")
    assert left.id not in [entry.id for entry in site.cloud.images()], "its id was in the record"
    entry, = site.cloud.images()
    assert entry.id == images.uploads("tiny", "real")[new]["external_id"] and entry.status == "active"


def test_stopped_while_uploading(images):
    builder, _, _ = start_long_upload(images)
    builder.stop(number=signal.SIGINT, seconds=30)
    assert builder.wait() == 0
    wait_for(lambda: not images.installation.cloud.images(), "nothing is left in the cloud", 30)
