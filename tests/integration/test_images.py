"""The builder with a stand-in for disk-image-create and the fake cloud (builder.md)."""
import hashlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import uuid

import pytest

from images import ImageSite, image, is_alive
from nodepool_helpers import run
from services import ROOT, Sshd, wait_for


@pytest.fixture
def images(site):
    return ImageSite(site)


def fqdn() -> str:
    """This host's name, as a builder in Python tells it."""
    return run(sys.executable, "-c", "import socket; print(socket.getfqdn())").strip()


# An image's way from the command to a node that boots from it; LA-26, B-metadata, B-cli-list
def test_built_uploaded_booted(images):
    config = images.config([image(metadata={"os": "debian"})],
                           [images.provider(images=[{"name": "debian", "meta": {"arch": "amd64"}}])])
    builder = images.builder(config)
    build, number = images.wait_upload()
    record = images.builds()[build]
    assert record["formats"] == "qcow2"
    assert record["username"] == "zuul"
    assert record["builder_id"] == (images.images_dir() / "builder_id.txt").read_text()
    assert record["builder"] == fqdn()
    upload = images.uploads()[(build, number)]
    assert (number, upload["format"], upload["username"]) == ("0000000001", "qcow2", "zuul")
    cloud_image = images.cloud_images()[upload["external_id"]]
    assert re.fullmatch("[0-9a-f]{32}", cloud_image["metadata"].pop("nodepool_attempt"))
    assert cloud_image["metadata"] == {"os": "debian", "arch": "amd64", "nodepool_build_id": build,
                                       "nodepool_upload_id": number, "nodepool_provider_name": "fake-cloud"}
    assert re.fullmatch(r"debian-\d{10}", cloud_image["name"]) and upload["external_name"] == cloud_image["name"]
    content = (images.images_dir() / f"debian-{build}.qcow2").read_bytes()
    assert cloud_image["md5"] == hashlib.md5(content).hexdigest()
    assert cloud_image["sha256"] == hashlib.sha256(content).hexdigest()
    log = (images.log_dir() / f"debian-{build}.log").read_text()
    assert log.startswith("building: -x -t qcow2 --checksum") and log.endswith("\nExit code: 0\n")

    images.installation.launcher(config)
    request = images.tree.add_request(["small"])
    node = images.tree.node(images.tree.wait_request(request, "fulfilled")["nodes"][0])
    assert node["image_id"].endswith(f"/{build}/providers/fake-cloud/images/{number}")
    assert (node["username"], node["python_path"]) == ("zuul", "auto")

    listing = images.installation.tool("dib-image-list", config=config).stdout
    assert re.search(rf"\| debian-{build} \| debian \| \S+ +\| qcow2 +\| ready \|", listing), listing
    assert len(re.findall(r"\| debian \|", listing)) == 1
    listing = images.installation.tool("image-list", config=config).stdout
    assert re.search(rf"\| {build} \| {number} \| fake-cloud \| debian \| .* \| ready \|", listing), listing
    assert len(re.findall(r"\| debian \|", listing)) == 1
    builder.stop(number=signal.SIGINT)
    assert builder.wait() == 0


# B-upload-progress
def test_how_far_an_upload_has_come(images):
    config = images.config([image()], [images.provider(simulation={"upload-latency": 20})])
    images.builder(config)
    tool = images.installation.tool

    def progress():
        rows = json.loads(tool("image-list", "--detail", "--json", config=config).stdout)
        return rows and re.fullmatch(r"sending the file, (\d+) %", rows[0]["progress"] or "") and rows[0]

    row = wait_for(progress, "the list shows how far it has come", 60)
    assert row["state"] == "uploading" and row["format"] == "qcow2"
    shown = tool("image-list", "--detail", config=config).stdout
    assert "| Age " in shown and "| Format " in shown and "| Progress " in shown and "sending the file, " in shown
    assert "Progress" not in tool("image-list", config=config).stdout
    build, number = images.wait_upload()
    assert "progress" not in images.uploads()[(build, number)]


def age(tree, path, seconds=100_000):
    record = tree.record(path)
    tree.write(path, {**record, "state_time": record["state_time"] - seconds})


# B-rotation, B-rebuild-age: current and previous stay, everything older goes (builder.md 12)
def test_rotation(images):
    config = images.config([image()], [images.provider()], build_log_retention=1)
    images.builder(config)
    built = []
    for _ in range(3):
        build, _ = images.wait_upload(build=images.wait_build(known=built))
        built.append(build)
        if len(built) < 3:
            for offset, old in enumerate(reversed(built)):
                age(images.tree, f"/nodepool/images/debian/builds/{old}", 100_000)
    wait_for(lambda: set(images.builds()) == set(built[1:]), "the oldest build is gone")
    wait_for(lambda: {image["metadata"]["nodepool_build_id"] for image in images.cloud_images().values()}
             == set(built[1:]), "its upload is gone")
    wait_for(lambda: not [name for name in images.files() if built[0] in name], "its files are gone")
    assert {name for name in images.files() if built[2] in name} == {
        f"debian-{built[2]}.{end}" for end in ("qcow2", "qcow2.md5", "qcow2.sha256", "d")}
    logs = {path.name for path in images.log_dir().iterdir()}
    assert logs == {f"debian-{build}.log" for build in built[1:]}


# B-env, B-secure-env: the words and the environment of the command
def test_the_command_and_its_environment(images):
    record = images.folder / "record"
    config = images.config([image(env={"RECORD": record, "A": "b c"}, formats=["raw"])], [images.provider()],
                           elements_dir="/srv/elements")
    secure = images.folder / "secure.yaml"
    secure.write_text(json.dumps({"diskimages": [{"name": "debian", "env-vars": {"SECRET": "tops3cret"}}]}))
    builder = images.builder(config, "-s", secure, env={"OUTER": "1"})
    build = images.wait_build()
    words, *environment = record.read_text().splitlines()
    out = f"{images.images_dir()}/debian-{build}"
    assert words == (f"words: -x -t qcow2,raw --checksum --no-tmpfs --qemu-img-options compat=0.10 -o {out} "
                     "debian-minimal vm")
    for line in ("DIB_RELEASE=bookworm", "DIB_IMAGE_NAME=debian", f"DIB_IMAGE_FILENAME={out}",
                 "ELEMENTS_PATH=/srv/elements", "A=b c", "SECRET=tops3cret", "OUTER=1"):
        assert line in environment
    assert "tops3cret" not in builder.output()


# coordination.17.30, B-manual
def test_17_30_a_build_asked_for(images):
    config = images.config([image()], [images.provider()])
    images.builder(config)
    first = images.wait_build()
    images.wait_upload(build=first)
    tool = images.installation.tool
    assert tool("image-build", "unknown", config=config).returncode == 1
    assert tool("image-build", "debian", "--wait", config=config).returncode == 0
    assert images.tree.zk.exists("/nodepool/images/debian/request-build") is None
    second = images.wait_build(known=[first])
    images.wait_upload(build=second)
    assert set(images.builds()) == {first, second}


# coordination.17.31, D-42, B-cli-pause, B-zk-pause-upload
def test_17_31_a_paused_image_is_uploaded_but_not_built(images):
    pause = images.folder / "pause"
    pause.touch()
    config = images.config([image(env={"PAUSE_FILE": pause}), image("fedora")],
                           [images.provider(images=["debian", "fedora"])])
    images.builder(config)
    build = images.wait_build(state="building")
    tool = images.installation.tool
    for _ in range(2):
        assert tool("image-pause", "debian", config=config).returncode == 0
    assert "paused" in tool("dib-image-list", config=config).stdout
    pause.unlink()
    images.wait_upload(build=build)
    images.wait_upload("fedora")
    tool("image-build", "debian", config=config)
    assert re.search(r"\| debian \| True +\| pending ", tool("image-status", config=config).stdout)
    age(images.tree, f"/nodepool/images/debian/builds/{build}")
    # Whoever asks later is served: this image's turn has come and gone.
    tool("image-build", "fedora", "--wait", config=config, check=True)
    assert set(images.builds()) == {build}
    assert images.tree.zk.exists("/nodepool/images/debian/request-build")
    for _ in range(2):
        assert tool("image-unpause", "debian", config=config).returncode == 0
    images.wait_build(known=[build])
    assert tool("image-pause", "unknown", config=config).returncode == 1


def test_a_failing_build_is_held_off_until_the_configuration_is_mended(images):  # D-40, B-failed-build
    config = images.config([image(env={"FAIL": "127"})], [images.provider()])
    builder = images.builder(config)
    wait_for(lambda: "ended with 127" in builder.output(), "the build fails")
    assert "Next attempt in 60 s" in builder.output()
    wait_for(lambda: not images.files(), "its files are removed")
    failed, = images.builds().values()
    assert failed["state"] == "failed" and "ended with 127" in failed["error"], failed
    images.config([image()], [images.provider()])
    images.wait_upload()
    wait_for(lambda: [build["state"] for build in images.builds().values()] == ["ready"], "the failure is over")
    assert builder.output().count("ended with 127") == 1


# B-missing-output, B-timeout
@pytest.mark.parametrize("settings, told", [
    ({"dib_cmd": "/no/such/command"}, "cannot be run: No such file"),
    ({"dib_cmd": "no-such-command"}, "there is no program no-such-command"),
    ({"dib_cmd": "'unclosed"}, "a quote is not closed"),
    ({"env": {"SKIP_FORMAT": "qcow2"}}, "it made no qcow2 file"),
    ({"env": {"SIZE": "0"}}, "its qcow2 file is empty"),
    ({"env": {"PAUSE_FILE": "pause"}, "build_timeout": 1}, "took longer than build-timeout"),
])
def test_builds_that_come_to_nothing(images, settings, told):
    (images.folder / "pause").touch()
    env = {key: images.folder / value if value == "pause" else value for key, value in settings.get("env", {}).items()}
    entry = image(env=env)
    entry.update({key.replace("_", "-"): value for key, value in settings.items() if key != "env"})
    builder = images.builder(images.config([entry], [images.provider()]))
    wait_for(lambda: told in builder.output(), f"the log says {told}")
    wait_for(lambda: not images.files(), "no file is left")
    failed, = images.builds().values()
    assert failed["state"] == "failed" and told in failed["error"], failed
    assert builder.is_running()


def test_a_hundred_megabytes_of_garbage_in_the_log(images):
    config = images.config([image(env={"LOG_BYTES": 100_000_000})], [images.provider()])
    builder = images.builder(config)
    build = images.wait_build(seconds=60)
    assert (images.log_dir() / f"debian-{build}.log").stat().st_size > 100_000_000
    status = pathlib.Path(f"/proc/{builder.pid}/status").read_text()
    assert int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) < 200_000


# --- The end of the process at any moment ----------------------------------------------

def test_killed_while_building(images):  # B-kill-build
    config, builder, pause, pid = images.start_paused()
    build = images.wait_build(state="building")
    (images.images_dir() / f"debian-{build}.qcow2").write_text("half")
    builder.kill()
    wait_for(lambda: not is_alive(pid), "the command ends as well")
    assert images.builds()[build]["state"] == "building"
    pause.unlink()
    images.builder(config)
    new, _ = images.wait_upload(build=images.wait_build(known=[build]))
    wait_for(lambda: set(images.builds()) == {new}, "the abandoned record is removed")
    wait_for(lambda: not [name for name in images.files() if build in name], "its files are removed")


def test_killed_while_uploading(images):
    config = images.config([image()], [images.provider(simulation={"upload-latency": 600})])
    builder = images.builder(config)
    build, number = images.wait_upload(state="uploading")
    builder.kill()
    config = images.config([image()], [images.provider()])
    images.builder(config)
    images.wait_upload(build=build)
    wait_for(lambda: len(images.uploads()) == 1, "the abandoned record is removed")
    assert (build, number) not in images.uploads()
    assert len(images.cloud_images()) == 1


# The image is in the cloud, the record does not say `ready` yet: it is deleted with the record.
def test_killed_between_upload_and_record(images):
    hook = images.folder / "hook"
    hook.write_text(f"#!/bin/sh\n[ ! -e {images.folder}/killed ] || exit 0\ntouch {images.folder}/killed\n"
                    "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)\nsleep 1000\n")
    hook.chmod(0o755)
    config = images.config([image()], [images.provider(post_upload_hook=str(hook))])
    builder = images.builder(config, wait=False)
    assert builder.wait() == -signal.SIGKILL
    (first, record), = images.uploads().items()
    assert record["state"] == "uploading" and set(images.cloud_images()) == {record["external_id"]}
    images.builder(config)
    images.wait_upload()
    wait_for(lambda: len(images.uploads()) == 1 and len(images.cloud_images()) == 1, "one image is left")
    assert record["external_id"] not in images.cloud_images() and first not in images.uploads()


def test_killed_while_deleting(images):
    config = images.config([image()], [images.provider(simulation={"delete-latency": 600})])
    builder = images.builder(config)
    build, number = images.wait_upload()
    images.installation.tool("dib-image-delete", f"debian-{build}", config=config, check=True)
    images.wait_upload(build=build, state="deleting")
    wait_for(lambda: not [name for name in images.files() if build in name], "the files go first")
    builder.kill()
    assert images.builds()[build]["state"] == "deleting" and len(images.cloud_images()) >= 1
    config = images.config([image()], [images.provider()])
    images.builder(config)
    wait_for(lambda: build not in images.builds(), "the record is removed")
    assert build not in {entry["metadata"]["nodepool_build_id"] for entry in images.cloud_images().values()}


# coordination.17.33
def test_17_33_a_deleted_upload_is_made_again(images):
    config = images.config([image()], [images.provider()])
    images.builder(config)
    build, number = images.wait_upload()
    words = ["image-delete", "--provider", "fake-cloud", "--image", "debian", "--build-id", build, "--upload-id"]
    tool = images.installation.tool
    assert tool(*words, "0000009999", config=config).stderr == "nodepool: Image upload not found\n"
    assert tool(*words, number, config=config).stdout == ""
    wait_for(lambda: [key[1] for key in images.uploads()] == ["0000000002"], "the next upload stands alone")
    wait_for(lambda: len(images.cloud_images()) == 1, "the cloud has one image")
    assert tool("dib-image-delete", "debian-none", config=config).stderr == "nodepool: Build debian-none not found\n"


# --- Several providers and formats ---------------------------------------------------------

# LA-40, LA-39, B-vhd-and-qcow2, B-formats
def test_providers_want_different_formats(images):
    providers = [images.provider("fake-a", simulation={"image-format": "vhd"}), images.provider("fake-b")]
    images.builder(images.config([image()], providers))
    build, number = images.wait_upload(provider="fake-a")
    images.wait_upload(provider="fake-b", build=build)
    assert images.uploads(provider="fake-a")[(build, number)]["format"] == "vhd"
    assert [entry["format"] for entry in images.cloud_images("fake-a").values()] == ["vhd"]
    assert [entry["format"] for entry in images.cloud_images("fake-b").values()] == ["qcow2"]
    assert images.builds()[build]["formats"] == "qcow2,vhd"


# B-prune, B-intermediate: delete-after-upload keeps what is wanted and what is not uploaded yet
def test_files_go_after_the_upload(images):
    providers = [images.provider("fake-a", simulation={"image-format": "raw"}),
                 images.provider("fake-b"),
                 images.provider("fake-c", images=[{"name": "debian", "meta": {"SHOULD_FAIL": "true"}}],
                                 simulation={"image-format": "vhd"})]
    pause = images.folder / "pause"
    pause.touch()
    entry = image(env={"PAUSE_FILE": pause}, delete_after_upload=True, keep_formats=["qcow2"])
    images.builder(images.config([entry], providers))
    half = images.images_dir() / f"debian-{images.wait_build(state='building')}.vhd"
    nobodys = images.images_dir() / f"debian-{uuid.uuid4().hex}.vhd"
    for path in (half, nobodys):
        path.write_text("half")
    wait_for(lambda: not nobodys.exists(), "the files are looked at")
    assert half.exists()
    pause.unlink()
    build, _ = images.wait_upload(provider="fake-a")
    images.wait_upload(provider="fake-b")
    wait_for(lambda: {name for name in images.files() if name.endswith((".raw", ".qcow2", ".vhd"))}
             == {f"debian-{build}.qcow2", f"debian-{build}.vhd"}, "the raw file is removed, the others stay")
    assert f"debian-{build}.raw.md5" not in images.files()
    assert images.cloud_images("fake-c") == {}


# B-reload-provider-add, B-reload-provider-remove
def test_a_provider_added_and_an_image_taken_from_one(images):
    builder = images.builder(images.config([image()], [images.provider("fake-a")]))
    build, _ = images.wait_upload(provider="fake-a")
    images.config([image()], [images.provider("fake-a"), images.provider("fake-b")])
    images.wait_upload(provider="fake-b", build=build)
    images.config([image()], [images.provider("fake-a"), images.provider("fake-b", images=[])])
    wait_for(lambda: images.uploads(provider="fake-b") == {} and images.cloud_images("fake-b") == {},
             "the obsolete upload is removed")
    assert len(images.cloud_images("fake-a")) == 1
    assert builder.is_running()


# B-image-remove, D-44
def test_an_image_taken_out_of_the_configuration_vanishes(images):
    images.builder(images.config([image(), image("fedora")], [images.provider(images=["debian", "fedora"])]))
    images.wait_upload("debian")
    images.wait_upload("fedora")
    images.config([image()], [images.provider()])
    wait_for(lambda: images.tree.children("/nodepool/images") == ["debian"], "the image's node is gone")
    wait_for(lambda: len(images.cloud_images()) == 1 and not [f for f in images.files() if "fedora" in f],
             "its images and files are gone")


def test_a_lost_file_that_a_provider_lacks_is_built_again(images):  # D-45
    images.builder(images.config([image()], [images.provider(images=[{"name": "debian", "pause": True}])]))
    build = images.wait_build()
    (images.images_dir() / f"debian-{build}.qcow2").unlink()
    images.config([image()], [images.provider()])
    images.wait_upload(build=images.wait_build(known=[build]))


# B-hook, B-hook-fail
def test_the_hook_runs_after_the_upload_and_may_refuse(images):
    hook = images.folder / "hook"
    hook.write_text("#!/bin/sh\necho \"$1 $2\" > \"$3.post\"\necho refused\n[ ! -e $(dirname $0)/refuse ]\n")
    hook.chmod(0o755)
    (images.folder / "refuse").touch()
    config = images.config([image()], [images.provider(post_upload_hook=str(hook))])
    builder = images.builder(config)
    wait_for(lambda: "post-upload-hook" in builder.output() and "failed" in builder.output(), "the hook refuses")
    wait_for(lambda: images.cloud_images() == {}, "the image is deleted again")
    (images.folder / "refuse").unlink()
    images.config([image()], [images.provider(post_upload_hook=f"{images.folder}/./hook")])
    build, number = images.wait_upload()
    post = (images.images_dir() / f"debian-{build}.qcow2.post").read_text()
    assert post == f"fake-cloud {images.uploads()[(build, number)]['external_id']}\n"


# D-mixed
def test_drivers_with_and_without_images(images):
    static = {"name": "static-hosts", "driver": "static", "pools": [{"name": "main", "nodes": []}]}
    builder = images.builder(images.config([image()], [static, images.provider()]))
    images.wait_upload()
    assert "static-hosts" not in builder.output()


# builder.md 15, from the process itself
def test_statistics_are_sent(images, statsd):
    builder = images.builder(images.config([image()], [images.provider()]))
    images.wait_upload()
    for key, value in {"nodepool.dib_image_build.debian.qcow2.size": "4096|g",
                       "nodepool.dib_image_build.debian.status.rc": "0|g",
                       "nodepool.image_update.debian.fake-cloud": "1|c"}.items():
        wait_for(lambda: value in {line.split(":", 1)[1] for _, line in statsd.lines(re.escape(key) + ":")}, f"{key} is sent")
    wait_for(lambda: statsd.lines(rf"nodepool\.builder\.{re.escape(fqdn())}\.image\.debian\.build\.state:0"),
             "the state is sent")
    assert builder.is_running()


# operations.16.23
def test_a_failed_build_is_counted(images, statsd):
    images.builder(images.config([image(env={"FAIL": 3})], [images.provider()]))
    wait_for(lambda: statsd.last("nodepool.dib_image_build.debian.status.rc") == "3|g", "the exit code is sent")
    wait_for(lambda: re.fullmatch(r"\d+\.\d{6}\|ms", statsd.last("nodepool.dib_image_build.debian.status.duration") or ""),
             "how long it took is sent")
    last = wait_for(lambda: statsd.last("nodepool.dib_image_build.debian.status.last_build"), "when it ended is sent")
    assert abs(float(last.removesuffix("|g")) - time.time()) < 120
    assert statsd.lines(r"nodepool\.dib_image_build\.debian\.[^.]*\.size") == []


# --- Several builders ------------------------------------------------------------------------

# coordination.17.32, B-offline-builder
def test_17_32_two_builders_build_once_and_upload_what_they_have(images):
    pause = images.folder / "pause"
    pause.touch()
    configs = [images.config([image(env={"PAUSE_FILE": pause})], [images.provider()], name) for name in ("one", "two")]
    builders = [images.builder(config) for config in configs]
    build = images.wait_build(state="building")
    pause.unlink()
    images.wait_upload(build=build)
    assert set(images.builds()) == {build}
    holder = next(name for name in ("one", "two") if images.files(name))
    other = {"one": "two", "two": "one"}[holder]
    assert images.files(other) == set()
    components = images.tree.components("builder")
    assert len(components) == 2
    builders[0 if holder == "one" else 1].stop(number=signal.SIGINT)
    images.installation.tool("dib-image-delete", f"debian-{build}", config=configs[0], check=True)
    new = images.wait_build(known=[build])
    wait_for(lambda: build not in images.builds(), "the other builder removes the record")
    assert [name for name in images.files(holder) if build in name]
    images.builder(configs[0 if holder == "one" else 1])
    wait_for(lambda: not [name for name in images.files(holder) if build in name], "its files are removed at its start")
    images.wait_upload(build=new)


# coordination.17.29: kazoo's lock keeps the image from being built; D-09, B-stale-building, B-python-beside
def test_17_29_component_and_locks(images):
    lock = images.tree.zk.Lock("/nodepool/images/debian/builds/lock")
    images.tree.zk.ensure_path("/nodepool/images/debian/builds")
    assert lock.acquire(timeout=10)
    images.builder(images.config([image(), image("fedora")], [images.provider(images=["debian", "fedora"])]))
    (name, component), = images.tree.components("builder").items()
    assert component["hostname"] == os.uname().nodename and name.startswith(os.uname().nodename)
    assert component["state"] == "running" and component["kind"] == "builder"
    # Records that somebody left; one is not ours to touch while the lock is held.
    left = {name: uuid.uuid4().hex for name in ("debian", "fedora")}
    for name, build in left.items():
        images.tree.zk.create(f"/nodepool/images/{name}/builds/{build}", makepath=True,
                              value=json.dumps({"state": "building", "state_time": time.time()}).encode())
    images.tree.zk.create("/nodepool/images/debian/request-build")
    images.wait_build("fedora")
    wait_for(lambda: left["fedora"] not in images.builds("fedora"), "the stale record without a lock is removed")
    assert {build: record["state"] for build, record in images.builds().items()} == {left["debian"]: "building"}
    lock.release()
    images.wait_build(known=[left["debian"]])
    wait_for(lambda: left["debian"] not in images.builds(), "the stale record is removed")
    wait_for(lambda: images.tree.zk.exists("/nodepool/images/debian/request-build") is None, "the request is served")


# coordination.17.34, B-export-import
def test_17_34_export_and_import(images):
    config = images.config([image()], [images.provider()])
    builder = images.builder(config)
    tool = images.installation.tool
    first, _ = images.wait_upload()
    tool("dib-image-delete", f"debian-{first}", config=config, check=True)
    build, number = images.wait_upload(build=images.wait_build(known=[first]))
    wait_for(lambda: set(images.builds()) == {build}, "the first build is removed")
    builder.stop(number=signal.SIGINT)
    saved = images.folder / "saved.json"
    tool("image-pause", "debian", config=config, check=True)
    tool("export-image-data", str(saved), config=config, check=True)
    assert saved.stat().st_mode & 0o777 == 0o600
    before = (images.builds(), images.uploads())
    images.tree.zk.delete("/nodepool", recursive=True)
    tool("import-image-data", str(saved), config=config, check=True)
    assert (images.builds(), images.uploads()) == before
    assert images.tree.zk.exists("/nodepool/images/debian/pause")
    images.builder(config)
    tool("image-delete", "--provider", "fake-cloud", "--image", "debian", "--build-id", build, "--upload-id", number,
         config=config, check=True)
    assert number == "0000000001"
    wait_for(lambda: list(images.uploads()) == [(build, "0000000003")], "the next number that others give, too")
    tool("image-unpause", "debian", config=config, check=True)
    tool("image-build", "debian", "--wait", config=config, check=True)
    images.wait_build(known=[first, build])


# --- Files ---------------------------------------------------------------------------------------

def test_foreign_files_stay_and_old_builds_are_known(images):  # B-foreign-file, B-legacy-id
    folder = images.images_dir()
    foreign = ["ubuntu-2204.iso", "notes-1.txt", "debian.qcow2", "notes-1234567890.txt", "core", "debian-abc.d"]
    for name in foreign:
        (folder / name).write_text("mine")
    old = "0000000007"
    for end in ("qcow2", "qcow2.md5", "raw-new"):
        (folder / f"debian-{old}.{end}").write_text("old")
    (folder / f"debian-{old}.d").mkdir()
    (folder / f"debian-{old}.d" / "x").write_text("")
    images.tree.zk.create(f"/nodepool/images/debian/builds/{old}", json.dumps(
        {"state": "ready", "state_time": time.time(), "formats": "qcow2"}).encode(), makepath=True)
    config = images.config([image()], [images.provider()])
    images.builder(config)
    assert images.wait_upload()[0] == old
    assert f"| debian-{old} | debian |" in images.installation.tool("dib-image-list", config=config).stdout
    images.installation.tool("dib-image-delete", f"debian-{old}", config=config, check=True)
    images.wait_build(known=[old])
    wait_for(lambda: old not in images.builds() and not [n for n in images.files() if old in n], "the old build goes")
    assert set(foreign) <= images.files()


def test_a_full_disk_ends_the_build_not_the_builder(images):
    small = images.images_dir()
    if os.system(f"mount -t tmpfs -o size=256k tmpfs {small} 2>/dev/null") != 0:
        pytest.skip("needs the right to mount")
    try:
        (small / "filler").write_bytes(bytes(150_000))
        command = images.folder / "big-image-create"
        command.write_text("#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\nhead -c 400000 /dev/zero > $2.qcow2\n")
        command.chmod(0o755)
        entry = {**image(), "dib-cmd": str(command)}
        builder = images.builder(images.config([entry], [images.provider()]))
        wait_for(lambda: "Build debian-" in builder.output() and "failed: " in builder.output(), "the build fails")
        wait_for(lambda: images.files() == {"filler"}, "what it left is removed")
        images.config([image()], [images.provider()])
        images.wait_upload()
        assert builder.is_running()
        builder.stop(number=signal.SIGINT)
    finally:
        os.system(f"umount {small}")


def test_an_images_directory_that_is_missing(images):
    config = images.config([image()], [images.provider()])
    folder = images.images_dir()
    folder.rmdir()
    folder.touch()
    builder = images.builder(config, wait=False)
    assert builder.wait() == 1
    assert f"images-dir {folder} cannot be made" in builder.output()
    folder.unlink()
    builder = images.builder(config)
    images.wait_upload()
    shutil.rmtree(folder)
    images.installation.tool("image-build", "debian", config=config, check=True)
    wait_for(lambda: f"{folder}: No such file or directory" in builder.output(), "it is told")
    assert builder.is_running()


def test_a_bad_configuration_changes_nothing(images):  # B-bad-config
    config = images.config([image()], [images.provider()])
    builder = images.builder(config)
    build, _ = images.wait_upload()
    config.write_text("diskimages: [\n")
    wait_for(lambda: "nodepool-one.yaml" in builder.output(), "it is told")
    age(images.tree, f"/nodepool/images/debian/builds/{build}")
    images.wait_upload(build=images.wait_build(known=[build]))
    images.config([image(), image("fedora")], [images.provider(images=["debian", "fedora"])])
    images.wait_upload("fedora")


# --- ZooKeeper ---------------------------------------------------------------------------------------

def test_the_session_is_lost_during_a_build(private_site):  # B-reconnect
    images = ImageSite(private_site)
    config, builder, pause, pid = images.start_paused()
    build = images.wait_build(state="building")
    builder.pause()
    wait_for(lambda: images.tree.components("builder") == {}, "the session expires", 40)
    builder.resume()
    wait_for(lambda: not is_alive(pid), "the build without a lock is ended")
    pause.unlink()
    images.wait_upload(build=images.wait_build(known=[build]))
    wait_for(lambda: build not in images.builds(), "the lost record is removed")
    assert len(images.tree.components("builder")) == 1


def test_a_short_break_of_the_connection_does_not_matter(private_site):  # B-reconnect
    images = ImageSite(private_site)
    private_site.settings["zookeeper-timeout"] = 60.0
    config, builder, pause, pid = images.start_paused()
    build = images.wait_build(state="building")
    private_site.zookeeper.stop()
    private_site.zookeeper.start()
    pause.unlink()
    images.wait_upload(build=build, seconds=60)


@pytest.fixture
def validated(images, tmp_path):
    """An image whose uploads are validated by a script, a launcher and a builder."""
    class Validated:
        script = tmp_path / "check"
        told = tmp_path / "told"

        def check(self, lines: str):
            self.script.write_text(f"#!/bin/sh\nenv > {self.told}\n{lines}\n")
            self.script.chmod(0o755)

        def start(self, **validate):
            self.config = images.config([image(validate={"command": str(self.script), "timeout": 120, **validate})],
                                        [images.provider()])
            self.launcher = images.installation.launcher(self.config)
            self.builder = images.builder(self.config)
            return self

    return Validated()


# VAL-1, VAL-2, VAL-3, VAL-10
def test_an_upload_is_tried_before_it_is_used(images, validated, tmp_path):
    gate = tmp_path / "gate"
    validated.check(f"while [ ! -e {gate} ]; do sleep 0.05; done")
    validated.start()
    wait_for(validated.told.exists, "a machine has booted and is checked", 60)
    (build, number), upload = next(iter(images.uploads().items()))
    assert upload["state"] == "uploading" and re.fullmatch(r"validating: node \d+ has booted and is checked", upload["progress"])
    told = dict(line.split("=", 1) for line in validated.told.read_text().splitlines() if "=" in line)
    node = images.tree.node(told["NODEPOOL_NODE"])
    assert node["type"] == ["nodepool-validation-of-small"] and node["state"] == "in-use"
    assert told["NODEPOOL_HOST"] == node["interface_ip"] and told["NODEPOOL_BUILD"] == build
    assert told["NODEPOOL_EXTERNAL_ID"] == upload["external_id"]
    request = images.tree.add_request(["small"])
    assert "image" in images.tree.wait_request(request, "failed")["decline_reasons"][0]
    gate.touch()
    images.wait_upload()
    images.tree.wait_node_gone(told["NODEPOOL_NODE"])
    request = images.tree.add_request(["small"])
    node = images.tree.node(images.tree.wait_request(request, "fulfilled")["nodes"][0])
    assert node["image_id"].endswith(f"/{build}/providers/fake-cloud/images/{number}")


# VAL-4
def test_an_upload_that_is_no_good_is_not_used(images, validated):
    validated.check("echo no route to host; exit 3")
    validated.start()
    key = images.wait_upload(state="failed", seconds=60)
    assert images.uploads()[key]["error"] == "the check of its machine ended with 3: no route to host"
    wait_for(lambda: not images.tree.nodes() and not images.cloud_images(), "nothing of it is left", 60)
    assert "no route to host" in images.installation.tool("status", config=validated.config).stdout


# VAL-7
def test_a_builder_that_is_killed_in_a_validation(images, validated):
    validated.check("sleep 60")
    validated.start()
    wait_for(validated.told.exists, "a machine has booted and is checked", 60)
    validated.builder.kill()
    validated.told.unlink()
    validated.check("exit 0")
    images.builder(validated.config)
    images.wait_upload(seconds=60)
    wait_for(lambda: len(images.cloud_images()) == 1 and not images.tree.nodes(), "nothing of the first one is left", 60)


# VAL-2: the script of docs/images.md, word for word.
def test_the_check_of_the_documents(tmp_path):
    text = (ROOT / "docs/images.md").read_text()
    script = tmp_path / "check"
    script.write_text(textwrap.dedent(re.search(r"(?:^    .*\n|^\n)*?^    #!/bin/sh\n(?:    .*\n)+", text, re.M).group()).lstrip())
    script.chmod(0o755)
    sshd = Sshd(tmp_path / "sshd")
    key = sshd.login_key()
    # As ssh, but with the key of this test; a builder's user has one of its own.
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin/ssh"
    ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F none -i {key} "$@"\n')
    ssh.chmod(0o755)
    machine = {"NODEPOOL_HOST": "127.0.0.1", "NODEPOOL_PORT": str(sshd.port), "NODEPOOL_HOST_KEYS": sshd.host_key,
               "NODEPOOL_USER": pwd.getpwuid(os.getuid()).pw_name, "PATH": f"{ssh.parent}:{os.environ['PATH']}"}

    def check(**changes):
        return subprocess.run([script], env={**os.environ, **machine, **changes}, capture_output=True, text=True, timeout=60)

    sshd.start()
    try:
        good = check()
        assert good.returncode == 0 and "Filesystem" in good.stdout, good.stderr
        other = Sshd(tmp_path / "other").host_key
        assert "verification failed" in check(NODEPOOL_HOST_KEYS=other).stderr
    finally:
        sshd.stop()
    assert check().returncode != 0
