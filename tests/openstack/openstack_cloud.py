"""What the tests do with an OpenStack, by the cloud's own client library."""
import os
import pathlib
import re
import subprocess
import uuid

import yaml

from nodepool_helpers import Installation
from services import wait_for

LABELS = {
    "small": {"flavor-name": "m1.small"},
    "tiny": {"flavor-name": "m1.tiny"},
    "slow": {"flavor-name": "m1.small", "instance-properties": {"fake:spawn_delay": "10"}},
    # Nova deletes a server that is being started only when that has ended.
    "stuck": {"flavor-name": "m1.small", "instance-properties": {"fake:spawn_delay": "40"}},
    "error": {"flavor-name": "t.error"},
    "fail-delete": {"flavor-name": "t.fail-delete"},
    "volume": {"flavor-name": "v1.volume", "boot-from-volume": True, "volume-size": 5},
}


class Commands:
    """What starts and stops a cloud whose state is in a folder; starting resumes what was stopped."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.prefix = "cloud" if (folder / "cloud-up").exists() else "openstack"

    def _run(self, name: str, *words):
        done = subprocess.run([self.folder / f"{self.prefix}-{name}", *words], timeout=900, capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr[-4000:]

    def up(self, state: pathlib.Path):
        self._run("up", state)

    def down(self, state: pathlib.Path, *words):
        self._run("down", state, *words)


class Cloud:
    """A running cloud, seen by a user and by its administrator."""

    def __init__(self, state: pathlib.Path, commands: pathlib.Path):
        self.state = state
        self.commands = Commands(commands)
        self.clouds_yaml = state / "clouds.yaml"

    def up(self):
        self.commands.up(self.state)
        self.api = self.connect("ci")

    def down(self, *words):
        self.commands.down(self.state, *words)

    def connect(self, name: str):
        # Imported here: the library is installed with the cloud, and the tests are skipped without one.
        import openstack
        config = openstack.config.OpenStackConfig(config_files=[str(self.clouds_yaml)])
        return openstack.connection.Connection(config=config.get_one(name))

    def restart(self):
        self.down()
        self.up()

    def servers(self, **metadata) -> list:
        return [server for server in self._servers_of(self.api)
                if all(server.metadata.get(key) == value for key, value in metadata.items())]

    @staticmethod
    def _servers_of(connection) -> list:
        """A busy nova lists servers for some time after it has deleted them."""
        return [server for server in connection.compute.servers() if server.status != "DELETED"]

    def floating_ips(self) -> list:
        return list(self.api.network.ips(project_id=self.api.current_project_id))

    def images(self) -> list:
        """Those that some Nodepool made."""
        return [image for image in self.api.image.images() if "nodepool_provider_name" in (image.properties or {})]

    def clear(self):
        for connection in (self.api, self.connect("small")):
            for server in connection.compute.servers():
                connection.compute.delete_server(server, ignore_missing=True)
            wait_for(lambda c=connection: not self._servers_of(c) or self._delete_again(c), "the project is empty",
                     120, pause=1)
            for ip in connection.network.ips(project_id=connection.current_project_id):
                connection.network.delete_ip(ip)
        for image in self.images():
            self.api.image.delete_image(image.id, ignore_missing=True)
        for port in self.api.network.ports(project_id=self.api.current_project_id):
            self.api.network.delete_port(port, ignore_missing=True)

    @staticmethod
    def _delete_again(connection):
        for server in connection.compute.servers():
            connection.compute.delete_server(server, ignore_missing=True)
        return False

    def calls(self) -> "Calls":
        return Calls(self.state / "log")


class Calls:
    """The calls to services from now on, by their access logs."""

    LINE = re.compile(r'"(GET|POST|PUT|DELETE|PATCH) (\S+) HTTP')

    def __init__(self, logs: pathlib.Path):
        self.logs = logs
        self.sizes = {path: path.stat().st_size for path in logs.glob("*.log")}

    def counted(self, service: str) -> dict[str, int]:
        """By method and path; ids are replaced by "ID". Whoever else asks the service is counted, too."""
        path = self.logs / f"{service}.log"
        with open(path, "rb") as log:
            log.seek(self.sizes.get(path, 0))
            text = log.read().decode(errors="replace")
        found = {}
        for method, target in self.LINE.findall(text):
            name = method + " " + re.sub(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", "ID", target).split("?")[0]
            found[name] = found.get(name, 0) + 1
        return found


class OpenstackSite(Installation):
    """Nodepool with one provider in the cloud."""

    def __init__(self, folder: pathlib.Path, hosts: str, cloud: Cloud):
        super().__init__(folder, hosts, chroot=f"/openstack-{uuid.uuid4().hex}")
        self.cloud = cloud
        self.settings["labels"] = [{"name": name} for name in LABELS]
        self.settings["providers"] = [self.provider()]
        self.settings["zookeeper-timeout"] = 10.0

    def tree(self, **options):
        tree = super().tree(**options)
        tree.fulfil_timeout = 300  # a real cloud on a busy machine
        return tree

    def provider(self, name="real", cloud="ci-direct", networks=("dual",), labels=tuple(LABELS), pool=None,
                 **settings):
        return {
            "name": name, "driver": "openstack", "cloud": cloud, "launch-timeout": 120,
            "cloud-images": [{"name": "cirros", "username": "cirros"}],
            "pools": [{"name": "main", "networks": list(networks), "host-key-checking": False, **(pool or {}),
                       "labels": [{"name": label, "cloud-image": "cirros", **LABELS[label]} for label in labels]}],
            **settings,
        }

    def launcher(self, *arguments, **options):
        os.environ["OS_CLIENT_CONFIG_FILE"] = str(self.cloud.clouds_yaml)
        return super().launcher(*arguments, **options)

    def image_provider(self, images=("tiny",), **settings):
        """A provider whose nodes boot the first of `images`, which are uploaded to it."""
        provider = self.provider(labels=(), **settings)
        provider["diskimages"] = [{"name": name, "meta": {"os_distro": "tiny"}} for name in images]
        if images:
            provider["pools"][0]["labels"] = [{"name": "small", "diskimage": images[0], "flavor-name": "m1.small"}]
        return provider

    def write_clouds(self, **changes) -> pathlib.Path:
        """A clouds.yaml of the test's own; `changes` by cloud."""
        content = yaml.safe_load(self.cloud.clouds_yaml.read_text())
        for name, settings in changes.items():
            content["clouds"][name.replace("_", "-")] = settings
        path = self.folder / "clouds.yaml"
        path.write_text(yaml.safe_dump(content))
        return path
