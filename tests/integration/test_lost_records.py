"""Images in a cloud whose records are gone (D-99)."""
import json
import signal

import pytest

from images import ImageSite, image
from services import wait_for


@pytest.fixture
def images(site):
    return ImageSite(site)


def uploaded(images, **settings):
    """The configuration, and the key of an upload whose builder has ended."""
    config = images.config([image()], [images.provider(**settings)])
    builder = images.builder(config)
    key = images.wait_upload()
    builder.stop(number=signal.SIGINT)
    builder.wait()
    return config, key


def upload_path(key):
    build, number = key
    return f"/nodepool/images/debian/builds/{build}/providers/fake-cloud/images/{number}"


def aliens(images, config):
    listed = images.installation.tool("alien-image-list", "--json", config=config, check=True)
    return {row["image_id"] for row in json.loads(listed.stdout)}


# D-99
def test_a_lost_tree_costs_no_images(images):
    config, _ = uploaded(images)
    lost = set(images.cloud_images())
    images.tree.zk.delete("/nodepool/images", recursive=True)
    launcher = images.installation.launcher(config)
    wait_for(lambda: "have our mark" in launcher.output(), "the launcher has looked twice")
    assert aliens(images, config) == lost
    # It is built anew: the tree knows one upload, and not the other.
    images.builder(config)
    images.wait_upload()
    node, = images.tree.wait_request(images.tree.add_request(["small"]), "fulfilled")["nodes"]
    images.tree.zk.delete(f"/nodepool/nodes/{node}", recursive=True)
    wait_for(lambda: "Deleting leaked instance" in launcher.output(), "two more looks")
    assert aliens(images, config) == lost <= set(images.cloud_images())


# D-99
def test_what_a_builder_left_is_deleted(images):
    config, key = uploaded(images)
    images.tree.zk.delete(upload_path(key), recursive=True)
    images.installation.launcher(config)
    wait_for(lambda: not images.cloud_images(), "the launcher, which never saw the record, deletes the image")


# D-99
def test_what_is_held_back_waits_for_the_operator(images):
    config, key = uploaded(images, max_leaked_share=0)
    images.tree.zk.delete(upload_path(key), recursive=True)
    launcher = images.installation.launcher(config)
    wait_for(lambda: "more than 0 % of what was uploaded" in launcher.output(), "it is said")
    assert aliens(images, config) == set(images.cloud_images()) != set()
    images.config([image()], [images.provider(max_leaked_share=100)])
    wait_for(lambda: not images.cloud_images(), "the changed setting is the operator's word")
