"""Images between builder, clouds and operator: more of builder.md 19."""
import os
import re
import shutil
import signal

import pytest

from images import ImageSite, image
from services import wait_for


@pytest.fixture
def images(site):
    return ImageSite(site)


# B-parents
def test_images_inherit_words_and_variables(images):
    records = {name: images.folder / f"record-{name}" for name in ("debian", "fedora")}
    base = {"name": "base", "abstract": True, "elements": ["base-element"],
            "env-vars": {"A": "of base", "B": "of base"}}
    common = {"name": "common", "abstract": True, "parent": "base", "elements": ["common-element"]}
    debian = {**image("debian", env={"RECORD": records["debian"], "B": "of debian"}), "parent": "common"}
    fedora = {**image("fedora", env={"RECORD": records["fedora"]}), "parent": "base", "elements": ["fedora-element"]}
    images.builder(images.config([base, common, debian, fedora], [images.provider(images=["debian", "fedora"])]))
    for name, elements, variable in (("debian", "base-element common-element debian-minimal vm", "B=of debian"),
                                     ("fedora", "base-element fedora-element", "B=of base")):
        images.wait_build(name)
        words, *environment = records[name].read_text().splitlines()
        assert words.endswith(f" {elements}")
        assert "A=of base" in environment and variable in environment


# B-log
def test_the_log_grows_with_the_build_and_ends_with_its_code(images):
    config, builder, pause, pid = images.start_paused()
    log = images.log_dir() / f"debian-{images.wait_build(state='building')}.log"
    wait_for(lambda: log.read_text().startswith("building: "), "what is printed is there while it builds")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: log.read_text().endswith("\nExit code: -9\n"), "the signal is told")


# B-dib-delete, B-no-manifest
def test_a_deleted_build_vanishes_with_all_it_has(images):
    config = images.config([image()], [images.provider()])
    images.builder(config)
    build, _ = images.wait_upload()
    tool = images.installation.tool
    tool("image-pause", "debian", config=config, check=True)
    shutil.rmtree(images.images_dir() / f"debian-{build}.d")
    tool("dib-image-delete", f"debian-{build}", config=config, check=True)
    wait_for(lambda: images.builds() == {} and images.cloud_images() == {} and images.files() == set(),
             "records, image and files are gone")


# B-empty-secure
def test_an_empty_secure_file_holds_up_nothing(images):
    secure = images.folder / "secure.yaml"
    secure.write_text("")
    config = images.config([image()], [images.provider()])
    images.builder(config, "-s", secure)
    images.wait_upload()
    images.config([image(), image("fedora")], [images.provider(images=["debian", "fedora"])])
    images.wait_upload("fedora")


# B-upload-contained
def test_a_provider_that_takes_no_image_hinders_no_other(images):
    broken = images.provider("fake-a", images=[{"name": "debian", "meta": {"SHOULD_FAIL": "true"}}])
    config = images.config([image()], [broken, images.provider("fake-b")])
    builder = images.builder(config)
    build, _ = images.wait_upload(provider="fake-b")
    wait_for(lambda: f"Uploading build debian-{build} to provider fake-a failed" in builder.output(), "the other fails")
    assert images.cloud_images("fake-a") == {}
    images.installation.launcher(config)
    node, = images.tree.wait_request(images.tree.add_request(["small"]), "fulfilled")["nodes"]
    assert images.tree.node(node)["provider"] == "fake-b"


# B-info-erase
def test_a_provider_that_is_given_up_can_be_erased(images):
    both = [images.provider("fake-a"), images.provider("fake-b")]
    config = images.config([image()], both)
    images.builder(config)
    build, _ = images.wait_upload(provider="fake-a")
    images.wait_upload(provider="fake-b")
    foreign = images.tree.add_node(provider="fake-b")
    tool = images.installation.tool
    for provider in ("fake-a", "fake-b"):
        assert build in tool("info", provider, config=config, check=True).stdout
    images.config([image()], both[:1])
    tool("erase", "fake-b", "--force", config=config, check=True)
    gone = tool("info", "fake-b", config=config)
    assert gone.returncode == 1 and "fake-b is not configured, and there are no records of it" in gone.stderr
    assert not re.search(r"\| fake-b \|", tool("image-list", config=config, check=True).stdout)
    assert build in tool("info", "fake-a", config=config, check=True).stdout
    assert len(images.uploads(provider="fake-a")) == len(images.cloud_images("fake-a")) == 1
