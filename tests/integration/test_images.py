"""The builder with a stand-in for disk-image-create and the fake cloud (builder.md)."""
import json
import os
import pathlib
import re
import signal
import time
import uuid

import pytest

from images import ImageSite, image
from services import wait_for


@pytest.fixture
def images(site):
    return ImageSite(site)


# An image's way from the command to a node that boots from it; LA-26
def test_built_uploaded_booted(images):
    config = images.config([image(metadata={"os": "debian"})],
                           [images.provider(images=[{"name": "debian", "meta": {"arch": "amd64"}}])])
    builder = images.builder(config)
    build, number = images.wait_upload()
    record = images.builds()[build]
    assert record["formats"] == "qcow2"
    assert record["username"] == "zuul"
    assert record["builder_id"] == (images.images_dir() / "builder_id.txt").read_text()
    upload = images.uploads()[(build, number)]
    assert (number, upload["format"], upload["username"]) == ("0000000001", "qcow2", "zuul")
    cloud_image = images.cloud_images()[upload["external_id"]]
    assert cloud_image["metadata"] == {"os": "debian", "arch": "amd64", "nodepool_build_id": build,
                                       "nodepool_upload_id": number, "nodepool_provider_name": "fake-cloud"}
    assert re.fullmatch(r"debian-\d{10}", cloud_image["name"]) and upload["external_name"] == cloud_image["name"]
    assert cloud_image["md5"] == "0123456789abcdef" * 2 and cloud_image["sha256"] == "0123456789abcdef" * 4
    log = (images.log_dir() / f"debian-{build}.log").read_text()
    assert log.startswith("building: -x -t qcow2 --checksum") and log.endswith("\nExit code: 0\n")

    images.installation.launcher(config)
    request = images.tree.add_request(["small"])
    node = images.tree.node(images.tree.wait_request(request, "fulfilled")["nodes"][0])
    assert node["image_id"].endswith(f"/{build}/providers/fake-cloud/images/{number}")
    assert (node["username"], node["python_path"]) == ("zuul", "auto")

    listing = images.installation.tool("dib-image-list", config=config).stdout
    assert re.search(rf"\| debian-{build} \| debian \| \S+ +\| qcow2 +\| ready \|", listing), listing
    listing = images.installation.tool("image-list", config=config).stdout
    assert re.search(rf"\| {build} \| {number} \| fake-cloud \| debian \| .* \| ready \|", listing), listing
    builder.stop(number=signal.SIGINT)
    assert builder.wait() == 0
