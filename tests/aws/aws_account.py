"""What the tests do with a counterpart of AWS, by its control port, and Nodepool with a provider in it."""
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import urllib.request
import uuid
import xml.etree.ElementTree as ElementTree

from nodepool_helpers import BIN, Installation
from services import free_port, is_listening

# Not those of whoever runs the tests.
OWN = re.compile(r"AWS_|no_proxy$|NO_PROXY$")


def free_block(length: int) -> int:
    """The first of so many free ports in a row, below those that the kernel assigns."""
    while True:
        first = random.randrange(17000, 30000, 10)
        if not any(is_listening(port) for port in range(first, first + length)):
            return first


class Account:
    """An account of AWS whose faults can be chosen; the control port is that of the counterpart."""

    def __init__(self, state: pathlib.Path, commands: pathlib.Path):
        self.state = state
        self.commands = commands

    def up(self):
        port_file = self.state / "ssh-port"
        self.state.mkdir(exist_ok=True)
        self.ssh_port = int(port_file.read_text()) if port_file.exists() else free_port()
        port_file.write_text(str(self.ssh_port))
        self._run(self.commands / "aws-up", self.state, "--ssh-port", self.ssh_port, *self._ports())
        self.variables = {}
        for line in (self.state / "env.sh").read_text().splitlines():
            if line.startswith("export "):
                name, value = shlex.split(line)[1].split("=", 1)
                self.variables[name] = value

    def _ports(self) -> list:
        """Several that start at the same moment would choose the same ones. One that is left running keeps its own."""
        if (self.state / "env.sh").exists():
            return []
        return ["--port", free_block(4)]

    def down(self, *words):
        self._run(self.commands / "aws-down", self.state, *words)

    @staticmethod
    def _run(*words):
        done = subprocess.run([str(word) for word in words], timeout=600, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]

    def environment(self, **changes) -> dict[str, str]:
        """For a program that is to use the account; None removes a variable."""
        result = {name: value for name, value in os.environ.items() if not OWN.match(name)}
        result.update(self.variables)
        for name, value in changes.items():
            result.pop(name, None)
            if value is not None:
                result[name] = str(value)
        return result

    def control(self, path: str, body=None, method: str | None = None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.variables["AWS_CONTROL"] + path, data, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def reset(self):
        self.control("/reset", {})
        self.control("/log", method="DELETE")

    def set(self, **settings):
        self.control("/settings", settings)

    def fault(self, **fault):
        self.control("/faults", fault)

    def calls(self, action: str = "") -> list[dict]:
        return [call for call in self.control("/log") if not action or call["action"] == action]

    def refused(self, action: str = "") -> list[dict]:
        return [call for call in self.calls(action) if call.get("error")]

    def count(self, action: str) -> int:
        return len(self.calls(action))

    def call(self, action: str, **parameters):
        """A call outside signatures, log and faults."""
        answer = self.control("/call", {"action": action, "params": parameters})
        assert "result" in answer, answer
        return answer["result"]

    def instances(self, *states: str) -> list["Instance"]:
        """Those in one of the states; by default those that are not terminated."""
        found = [Instance(item) for reservation in self.call("DescribeInstances")["Reservations"]
                 for item in reservation["Instances"]]
        return [one for one in found if (one.state in states if states else one.state != "terminated")]

    def volumes(self) -> list["Volume"]:
        return [Volume(item) for item in self.call("DescribeVolumes")["Volumes"]]

    def run_instance(self, instance_type="t3.medium", **tags: str) -> str:
        """Makes an instance as somebody else does; returns its id."""
        specifications = [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]
        self.call("RunInstances", ImageId="ami-1e749f67", InstanceType=instance_type, MinCount=1, MaxCount=1,
                  **({"TagSpecifications": specifications} if tags else {}))
        return self.control("/resources?kind=instance")["instance"][-1]["id"]


class Listed:
    """Something as the control port shows it: the content of an <item> of EC2's answer."""

    def __init__(self, content: str):
        self.item = ElementTree.fromstring(f"<item>{content}</item>")
        self.tags = {tag.findtext("key"): tag.findtext("value") for tag in self.item.iterfind("tagSet/item")}


class Instance(Listed):
    def __init__(self, content: str):
        super().__init__(content)
        self.id = self.item.findtext("instanceId")
        self.state = self.item.findtext("instanceState/name")
        self.public_ipv4 = self.item.findtext("ipAddress")
        self.private_ipv4 = self.item.findtext("privateIpAddress")
        self.lifecycle = self.item.findtext("instanceLifecycle")


class Volume(Listed):
    def __init__(self, content: str):
        super().__init__(content)
        self.id = self.item.findtext("volumeId")
        self.type = self.item.findtext("volumeType")
        self.size, self.iops, self.throughput = (int(self.item.findtext(name) or 0)
                                                 for name in ("size", "iops", "throughput"))


class AwsSite(Installation):
    """Nodepool with one provider in the account."""

    def __init__(self, folder: pathlib.Path, hosts: str, account: Account):
        super().__init__(folder, hosts, chroot=f"/aws-{uuid.uuid4().hex}")
        self.account = account
        self.settings["providers"] = [self.provider()]

    def provider(self, label: dict | None = None, pool: dict | None = None, image: dict | None = None,
                 **settings) -> dict:
        usual = {"name": "ubuntu", "image-id": "ami-1e749f67", "username": "ubuntu",
                 "connection-port": self.account.ssh_port}
        return {
            "name": "ec2", "driver": "aws", "region-name": "us-west-2", "rate": 20,
            "boot-timeout": 60, "launch-timeout": 120,
            "cloud-images": [image or usual],
            "pools": [{"name": "main", "subnet-id": "subnet-0123456789abcdef0",
                       "security-group-id": "sg-0123456789abcdef0", **(pool or {}),
                       "labels": [{"name": "small", "cloud-image": "ubuntu", "instance-type": "t3.medium",
                                   "key-name": "zuul", **(label or {})}]}],
            **settings,
        }

    def begin_anew(self, name: str):
        """An empty account, and a tree and a folder that nothing has used."""
        self.account.reset()
        self.chroot = f"/aws-{uuid.uuid4().hex}"
        for server in self.settings["zookeeper-servers"]:
            server["chroot"] = self.chroot
        self.__dict__.pop("_observer", None)
        self.folder = self.folder.parent / name if self.folder.name.startswith("anew-") else self.folder / name
        self.folder.mkdir()

    def launcher(self, config=None, env=None, **named):
        return super().launcher(config, env=self.account.environment() if env is None else env, **named)

    def validate_online(self, env: dict[str, str], **settings) -> subprocess.CompletedProcess:
        config = self.config("online", providers=[self.provider(**settings)])
        return subprocess.run([BIN / "nodepool", "-c", config, "config-validate", "--online"], env=env,
                              capture_output=True, text=True, timeout=60)

    def node(self, tree, **extra) -> tuple[list, dict]:
        """A node in use, and its record."""
        held = tree.use(tree.add_request(["small"], **extra))
        return held, tree.node(held[0][0])
