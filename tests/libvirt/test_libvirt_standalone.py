"""`nodepool standalone` with the smallest file, on a computer that has libvirt as Debian installs it and nothing of ours."""
import hashlib
import json
import pathlib
import signal
import subprocess

import pytest
import yaml
from nodepool_helpers import BIN, run
from pages import Page
from quickstart.private_libvirt import PrivateLibvirt
from services import Process, free_port, wait_for

from libvirt_host import BOOT_SECONDS, DRIVERS
from network_filters import define_filters

# Of Debian's package libvirt-daemon-config-network.
DEFAULT_NETWORK = """<network><name>default</name><bridge name='virbr0'/><forward/>
<ip address='192.168.122.1' netmask='255.255.255.0'><dhcp><range start='192.168.122.2' end='192.168.122.254'/></dhcp></ip></network>
"""
AT_THE_SYSTEMS_PLACE = 'mount --bind "$1/run" /run/libvirt; shift; exec "$@"'
POOLS = "lib/images"  # /var/lib/libvirt/images of libvirtd


@pytest.fixture
def computer(libvirt_host, tmp_path_factory):
    """A libvirtd without pools, and with the network and the filters of Debian's packages."""
    libvirt = PrivateLibvirt(tmp_path_factory.mktemp("system"))
    libvirt.start()
    description = libvirt.folder / "default.xml"
    description.write_text(DEFAULT_NETWORK)
    libvirt.virsh("net-define", description)
    libvirt.virsh("net-start", "default")
    define_filters(libvirt.try_virsh)
    yield libvirt
    for name in libvirt.virsh("list", "--name").split():
        libvirt.try_virsh("destroy", name)
    libvirt.try_virsh("net-destroy", "default")
    libvirt.remove()


class Standalone:
    """The file of the specification, with the test's image, and with what lets it run beside other tests and without KVM."""

    def __init__(self, computer, image_server, folder: pathlib.Path):
        content, = Page.read("docs/spec/driver-libvirt.md").section("1. What it is for").blocks("yaml")
        settings = yaml.safe_load(content)
        provider, = settings["providers"]
        self.image, = provider["cloud-images"]
        self.image |= {"url": image_server.url, "username": "zuul",
                       "checksum": "sha256:" + hashlib.sha256(image_server.image.read_bytes()).hexdigest()}
        provider |= {"accelerator": "tcg", "boot-timeout": BOOT_SECONDS, "launch-timeout": BOOT_SECONDS}
        for label in provider["pools"][0]["labels"]:
            label |= {"vcpus": 1, "memory": 512}
        self.state = folder / "state"
        settings |= {"embedded-zookeeper": {"state-dir": str(self.state), "port": free_port()},
                     "webapp": {"listen_address": "127.0.0.1", "port": free_port()}}
        self.config = folder / "nodepool.yaml"
        self.config.write_text(yaml.safe_dump(settings))
        self.computer = computer
        self.log = folder / "standalone.log"
        self.process = self.client = None

    def start(self):
        self.process = Process(["unshare", "--mount", "--propagation", "private", "sh", "-euc", AT_THE_SYSTEMS_PLACE, "sh",
                                self.computer.folder, BIN / "nodepool", "standalone", "--drivers-dir", DRIVERS, "-c",
                                self.config], self.log)

    def stop(self):
        self.process.send(signal.SIGTERM)
        assert self.process.wait(60) == 0

    def request(self) -> dict:
        """The node that a client has got, and keeps until it is stopped."""
        self.client = Process([BIN / "nodepool", "-c", self.config, "request", "debian", "--wait", "--wait-for-server"],
                              self.log.with_name("client.log"))
        return wait_for(self.node_in_use, "a node is in use", BOOT_SECONDS)

    def node_in_use(self) -> dict | None:
        done = subprocess.run([BIN / "nodepool", "-c", self.config, "list", "--json", "--wait-for-server"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return next((node for node in json.loads(done.stdout) if node["state"] == "in-use"), None)

    @property
    def key(self) -> pathlib.Path:
        return self.state / "libvirt/here"

    def login(self, node: dict) -> str:
        return run("ssh", "-F", "none", "-i", self.key, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o",
                   "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", f"zuul@{node['public_ipv4']}", "hostname").strip()


@pytest.fixture
def site(computer, image_server, tmp_path):
    standalone = Standalone(computer, image_server, tmp_path)
    yield standalone
    for process in (standalone.client, standalone.process):
        if process:
            process.kill()


# LV-46
def test_the_smallest_file_serves_nodes_on_an_empty_computer(site, computer, image_server):
    assert computer.virsh("pool-list", "--all", "--name").split() == []
    keys = []
    for _ in range(2):
        site.start()
        node = site.request()
        assert site.login(node) == f"np{node['id']}"
        keys.append(site.key.read_bytes())
        assert "Autostart:      yes" in computer.virsh("pool-info", "nodepool")
        assert (computer.folder / POOLS / "nodepool").is_dir()
        site.client.stop()
        wait_for(lambda: computer.virsh("list", "--name").split() == [], "the machine is deleted", 60)
        site.stop()
    assert keys[0] == keys[1] and image_server.requests == 1, "key and image are used again"
