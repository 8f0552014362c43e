"""The daemon of the releases until 2017: launcher and builder in one process (operations.md 13.1)."""
import os
import signal
import subprocess
import time

import pytest

from images import ImageSite, image
from nodepool_helpers import BIN, fake_provider
from services import wait_for


@pytest.fixture
def images(site):
    return ImageSite(site)


# operations.13.1
def test_it_says_what_it_takes():
    done = subprocess.run([BIN / "nodepoold", "--help"], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    for option in ("-c", "-s", "-d", "-l", "-p", "--no-webapp", "--no-deletes", "--no-launches", "--no-builder",
                   "--build-workers", "--upload-workers", "--version"):
        assert f"  {option}" in done.stdout, option
    assert "/var/run/nodepool/nodepool.pid" in done.stdout


# operations.13.1
def test_it_builds_uploads_and_launches(images):
    config = images.config([image()], [images.provider()])
    daemon = images.installation.launcher(config, program="nodepoold")
    images.wait_upload()
    tree = images.tree
    held = tree.use(tree.add_request(["small"]))
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
    os.kill(daemon.pid, signal.SIGUSR2)
    wait_for(lambda: "nodepool.stack_dump: End debug handler" in daemon.output(), "it says what it does")
    assert tree.components("launcher") and tree.components("builder")
    daemon.send(signal.SIGINT)
    assert daemon.wait(40) == 0
    assert not tree.components("launcher") and not tree.components("builder")


# operations.13.1
def test_without_builder_no_image_is_built(images):
    config = images.config([image()], [images.provider()])
    images.installation.launcher(config, program="nodepoold", options=["--no-builder"])
    assert images.tree.components("launcher") and not images.tree.components("builder")
    assert not images.builds()


# operations.13.1
def test_without_deletes_nodes_stay_until_another_comes(site):
    config = site.config(providers=[fake_provider(simulation={"directory": str(site.folder / "cloud")})])
    site.launcher(config, program="nodepoold", options=["--no-deletes"])
    tree = site.tree()
    held = tree.use(tree.add_request(["small"]))
    tree.give_back(held)
    # Whoever deletes would have begun with the first of them.
    tree.use(tree.add_request(["small"]))
    used = held[0][0]
    assert tree.node(used)["state"] == "used" and not tree.node_contenders(used)
    site.launcher(config, program="nodepoold")
    tree.wait_node_gone(used)


# operations.13.1
def test_without_launches_requests_get_what_is_ready(site):
    config = site.config(labels=[{"name": "small", "min-ready": 1}],
                         providers=[fake_provider(simulation={"directory": str(site.folder / "cloud")})])
    idle = site.launcher(config, program="nodepoold", options=["--no-launches"])
    tree = site.tree()
    ready = tree.add_node(state_time=time.time())
    record = tree.wait_request(tree.add_request(["small"]), "fulfilled")
    assert record["nodes"] == [ready]
    waits = tree.add_request(["small"])
    wait_for(lambda: "has no free node of label small" in idle.output(), "it says why the request waits")
    assert tree.request(waits)["state"] == "requested" and list(tree.nodes()) == [ready]
    site.launcher(config, program="nodepoold")
    tree.wait_request(waits, "fulfilled")
