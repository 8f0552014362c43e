"""The driver author's kit: examples/driver is built against an installed Nodepool and nothing else of it."""
import os
import pathlib
import re
import shutil

import pytest

from nodepool_helpers import BIN, ROOT, run
from services import Process, wait_for

TOOLS = ["bwrap", "ssh-keygen", "ssh", "setsid", "cmake"]

pytestmark = pytest.mark.skipif(any(shutil.which(tool) is None for tool in TOOLS), reason="bubblewrap is missing")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation with the example's driver in it."""
    folder = tmp_path_factory.mktemp("kit")
    prefix = folder / "usr"
    run("cmake", "--install", BIN.parent, "--prefix", prefix)
    # Away from the tree, so that nothing of it is found by chance.
    source = folder / "source"
    shutil.copytree(ROOT / "examples/driver", source)
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run("cmake", "-S", source, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1", *launcher)
    run("cmake", "--build", folder / "build", "-j", "2")
    run("cmake", "--install", folder / "build")
    return prefix


@pytest.fixture
def key(tmp_path):
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key")
    return tmp_path / "key"


def bubble_provider(tmp_path, key):
    octet = os.getpid() % 200 + 20
    return {"name": "local", "driver": "bubble", "state-dir": str(tmp_path / "bubbles"),
            "network": f"127.{octet}", "authorized-key": key.with_suffix(".pub").read_text().strip(),
            "pools": [{"name": "main", "labels": [{"name": "small"}]}]}


def processes_of(folder: pathlib.Path):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes() and b"bwrap" in path.read_bytes():
                found.append(path)
        except OSError:
            pass
    return found


# D-86
def test_a_request_is_served_by_a_driver_from_outside_the_tree(site, prefix, key, tmp_path):
    config = site.config(providers=[bubble_provider(tmp_path, key)])
    site.observer()
    launcher = Process([prefix / "bin/nodepool-launcher", "-d", "--cleanup-interval", "1", "-c", config],
                       tmp_path / "launcher.log")
    site.started.append(launcher)
    tree = site.tree()
    request_id = tree.add_request(["small"])
    request = tree.wait_request(request_id, "fulfilled", 60)
    node = tree.node(request["nodes"][0])
    assert node["host_keys"] and node["username"] == "zuul" and node["connection_port"] == 2222
    words = ["ssh", "-i", key, "-p", node["connection_port"], "-o", "StrictHostKeyChecking=no", "-o",
             "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", f"zuul@{node['interface_ip']}", "uname -n"]
    assert run(*words).strip() == f"np{request['nodes'][0]}"
    tree.change_node(request["nodes"][0], state="used")
    tree.zk.delete(f"/nodepool/requests/{request_id}")
    tree.wait_node_gone(request["nodes"][0])
    wait_for(lambda: not processes_of(tmp_path / "bubbles"), "the container is gone")


def test_the_programs_know_nothing_of_the_driver(prefix):
    for program in ("nodepool-launcher", "nodepool-builder", "nodepool"):
        assert not re.search("bubble", run("nm", "-C", prefix / "bin" / program), re.IGNORECASE)
    assert "bubble::Adapter::Create" in run("nm", "-C", prefix / "lib/nodepool/drivers/bubble.so")


def test_nothing_of_the_tree_is_named_in_what_is_installed(prefix):
    for path in [*prefix.glob("include/**/*.h"), *prefix.glob("lib/cmake/**/*")]:
        if path.is_file():
            assert str(ROOT) not in path.read_text(), path


# The contract of adapters, run by the installed program.
def test_the_example_keeps_the_contract(site, prefix, key, tmp_path):
    config = site.config(providers=[bubble_provider(tmp_path, key)])
    output = run(prefix / "bin/nodepool-driver-test", "-c", config, "--provider", "local", "--cancellations", "6")
    assert ", 0 failed" in output, output
    assert "passed   creations that are told to stop at any await" in output
    assert not processes_of(tmp_path / "bubbles")
