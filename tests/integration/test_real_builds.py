"""The builder with the real disk-image-create (builder.md 20). Needs root and loop devices."""
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from images import ImageSite
from nodepool_helpers import ROOT
from services import files_of_processes, wait_for

ELEMENTS = ROOT / "tests/data/elements"
BUILD_SECONDS = 400  # that a build may take: beside other tests on a slow machine it has taken 122

pytestmark = pytest.mark.skipif(
    os.getuid() != 0 or not all(map(shutil.which, ("disk-image-create", "sudo", "qemu-img")))
    or subprocess.run(["losetup", "-f"], capture_output=True).returncode != 0,
    reason="needs root, loop devices, sudo and python3-diskimage-builder")


@pytest.fixture
def images(site):
    result = ImageSite(site)
    result.work = site.folder / "work"
    result.work.mkdir()
    return result


def image(images, env=None, **settings):
    variables = {"HOME": images.work, "TMPDIR": images.work, "DIB_IMAGE_CACHE": images.work / "cache",
                 "DIB_JOURNAL_SIZE": 4, **(env or {})}
    return {"name": "tiny", "elements": ["tiny-root", "manifests"], "release": "1",
            "env-vars": {key: str(value) for key, value in variables.items()}, **settings}


def start(images, entry, simulation=None):
    config = images.config([entry], [images.provider(images=["tiny"], simulation=simulation)],
                           elements_dir=str(ELEMENTS))
    return config, images.builder(config)


def mounts(folder: pathlib.Path) -> set[str]:
    """What is mounted below the folder, by us or in the builds' own namespaces."""
    found = set()
    for table in files_of_processes("mounts"):
        try:
            found |= {line for line in table.read_text().splitlines() if str(folder) in line}
        except OSError:
            pass
    return found


def loop_devices(folder: pathlib.Path) -> str:
    output = subprocess.run(["losetup", "-a"], capture_output=True, text=True).stdout
    return "\n".join(line for line in output.splitlines() if str(folder) in line)


def processes(folder: pathlib.Path) -> list[str]:
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words and b"nodepool-builder" not in words and b"pytest" not in words:
            found.append(words[:200])
    return found


def is_command(entry: pathlib.Path, folder: pathlib.Path) -> bool:
    """Whether the process is the command that the builder runs: the leader of a session of its own."""
    try:
        is_leader = int(entry.name) == os.getsid(int(entry.name))
        words = (entry / "cmdline").read_bytes()
        return is_leader and b"disk-image-create" in words and str(folder).encode() in words
    except OSError:
        return False


def temporary(images) -> list[str]:
    return [path.name for path in images.work.iterdir() if path.name.startswith(("dib_build", "dib_image"))]


def assert_nothing_left(images):
    wait_for(lambda: not processes(images.work) and not mounts(images.work), "no process and no mount is left", 60)
    wait_for(lambda: not loop_devices(images.work) and not temporary(images), "no temporary file is left", 10)


@pytest.mark.long
def test_an_image_of_disk_image_create_boots(images):
    config, builder = start(images, image(images, formats=["raw"]))
    build, number = images.wait_upload("tiny", seconds=BUILD_SECONDS)
    record, = images.cloud_images().values()
    path = images.images_dir() / f"tiny-{build}.qcow2"
    assert record["md5"] == hashlib.md5(path.read_bytes()).hexdigest()
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert record["size"] == path.stat().st_size > 1_000_000
    assert (images.images_dir() / f"tiny-{build}.raw").exists()
    assert (images.images_dir() / f"tiny-{build}.d/dib-manifests").is_dir()
    log = (images.log_dir() / f"tiny-{build}.log").read_text()
    assert "Build completed successfully" in log and log.endswith("\nExit code: 0\n")
    images.installation.launcher(config)
    images.tree.wait_request(images.tree.add_request(["small"]), "fulfilled")
    images.installation.tool("dib-image-delete", f"tiny-{build}", config=config, check=True)
    images.installation.tool("image-pause", "tiny", config=config, check=True)
    wait_for(lambda: not [name for name in images.files() if build in name], "all files are removed")
    builder.stop(number=signal.SIGINT, seconds=40)
    assert_nothing_left(images)


@pytest.mark.long
def test_a_failing_element(images):
    config, builder = start(images, image(images, env={"DIB_TEST_FAIL": 3}))
    wait_for(lambda: "ended with 3" in builder.output(), "the build fails", BUILD_SECONDS)
    log, = images.log_dir().iterdir()
    assert log.read_text().endswith("\nExit code: 3\n")
    wait_for(lambda: not images.files(), "no file is left of it")
    failed, = images.builds("tiny").values()
    assert failed["state"] == "failed" and "ended with 3" in failed["error"], failed
    assert_nothing_left(images)


# builder.md 8.6, 20.6, D-41: told to end, disk-image-create unmounts and removes what it has made
@pytest.mark.long
def test_a_build_that_takes_too_long_leaves_nothing(images):
    # Beside other tests on a slow machine it takes long until the build works in its chroot.
    _, builder = start(images, image(images, env={"DIB_TEST_SLEEP": 1000}, **{"build-timeout": 120}))
    wait_for(lambda: len(mounts(images.work)) >= 4, "the build works in its chroot", 120)
    wait_for(lambda: "took longer than build-timeout" in builder.output(), "time is up", BUILD_SECONDS)
    assert_nothing_left(images)


@pytest.mark.parametrize("how", ["stop", "kill", "kill-command"])
def test_an_ended_build_leaves_nothing(images, how):
    _, builder = start(images, image(images, env={"DIB_TEST_SLEEP": 1000}))
    wait_for(lambda: len(mounts(images.work)) >= 4, "the build works in its chroot", BUILD_SECONDS)
    if how == "stop":
        builder.stop(number=signal.SIGINT, seconds=60)
        assert builder.wait() == 0
    elif how == "kill":
        builder.kill()
    else:
        # It has no time to tidy up.
        log, = images.log_dir().iterdir()
        command, = [int(entry.name) for entry in pathlib.Path("/proc").glob("[0-9]*") if is_command(entry, images.folder)]
        os.kill(command, signal.SIGKILL)
        wait_for(lambda: "ended with -9" in builder.output(), "the end of the command is seen")
        assert not processes(images.work) and not mounts(images.work)
        assert log.read_text().endswith("\nExit code: -9\n")
    assert_nothing_left(images)


# D-46: qcow2 needs an option that qemu-img refuses for vmdk
def test_formats_that_exclude_each_other(images):
    config, builder = start(images, image(images, formats=["vmdk"]))
    build, _ = images.wait_upload("tiny", seconds=BUILD_SECONDS)
    assert images.builds("tiny")[build]["formats"] == "qcow2,vmdk"
    for name in ("qcow2", "vmdk"):
        path = images.images_dir() / f"tiny-{build}.{name}"
        told = subprocess.run(["qemu-img", "info", path], capture_output=True, text=True, check=True).stdout
        assert f"file format: {name}" in told
        assert (path.parent / f"{path.name}.md5").read_text()[:32] == hashlib.md5(path.read_bytes()).hexdigest()
