"""How a builder ends (builder.md 2.3, 8.6)."""
import signal
import time

import pytest

from images import ImageSite, image, is_alive
from services import wait_for


@pytest.fixture
def images(site):
    return ImageSite(site)


# SIGTERM ends it at once; the build is ended by its supervisor (D-65)
def test_terminated_while_building(images):
    config, builder, pause, pid = images.start_paused()
    builder.stop(number=signal.SIGTERM)
    assert builder.wait() == 0
    wait_for(lambda: not is_alive(pid), "the command ends as well")


def test_stopped_while_building(images):  # D-41
    config, builder, pause, pid = images.start_paused()
    build = images.wait_build(state="building")
    builder.stop(number=signal.SIGINT, seconds=20)
    assert builder.wait() == 0
    assert not is_alive(pid)
    assert images.builds()[build]["state"] == "failed"
    assert images.tree.contenders("/nodepool/images/debian/builds/lock") == []
    assert images.tree.components("builder") == {}


# D-41: as disk-image-create does it, but without its tidying up
def test_a_build_that_is_told_to_stop_leaves_no_temporary_directories(images):
    command = images.folder / "image-create"
    command.write_text('#!/bin/sh\necho "+ TMP_BUILD_DIR=$(mktemp -d "$TMPDIR/dib_build.XXXXXXXX")"\n'
                       'trap "exit 1" TERM\nwhile true; do sleep 0.1; done\n')
    command.chmod(0o755)
    entry = {**image(env={"TMPDIR": images.folder}), "dib-cmd": str(command)}
    builder = images.builder(images.config([entry], [images.provider()]))
    build = images.wait_build(state="building")
    log = images.log_dir() / f"debian-{build}.log"
    wait_for(lambda: log.exists() and "TMP_BUILD_DIR=" in log.read_text(), "the command has made its directory")
    assert list(images.folder.glob("dib_build.*"))
    builder.stop(number=signal.SIGINT, seconds=20)
    assert builder.wait() == 0
    assert images.builds()[build]["state"] == "failed"
    assert not list(images.folder.glob("dib_build.*"))


def start_finishing(images):
    """A builder that waits for its build to end: the build, the builder, file to remove, id of the command."""
    config, builder, pause, pid = images.start_paused("--finish-builds")
    build = images.wait_build(state="building")
    builder.send(signal.SIGINT)
    wait_for(lambda: "Stopping once what runs has ended (builds: 1, uploads: 0)" in builder.output(), "it waits")
    return build, builder, pause, pid


def test_a_stop_waits_for_the_build_where_it_is_told_to(images):  # D-41
    build, builder, pause, pid = start_finishing(images)
    assert builder.is_running() and is_alive(pid)
    pause.unlink()
    assert builder.wait() == 0
    assert images.builds()[build]["state"] == "ready"
    assert images.uploads() == {}
    assert images.tree.components("builder") == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_a_stop_that_waits(images, number):  # D-41
    build, builder, pause, pid = start_finishing(images)
    start = time.monotonic()
    builder.send(number)
    assert builder.wait() == -number
    assert time.monotonic() - start < 5
    wait_for(lambda: not is_alive(pid), "the command ends as well")
    assert images.builds()[build]["state"] == "building"


def test_stopped_while_uploading(images):  # B-stop-upload
    config = images.config([image()], [images.provider(simulation={"upload-latency": 600})])
    builder = images.builder(config)
    build, number = images.wait_upload(state="uploading")
    start = time.monotonic()
    builder.stop(number=signal.SIGINT)
    assert builder.wait() == 0
    assert time.monotonic() - start < 10
    assert images.cloud_images() == {}
    images.builder(images.config([image()], [images.provider()]))
    images.wait_upload(build=build)
    wait_for(lambda: (build, number) not in images.uploads(), "the record is removed")
