"""What the tests do with a counterpart of AWS, by its control port, and Nodepool with a provider in it."""
import pathlib
import re
import xml.etree.ElementTree as ElementTree

from counterpart import Counterpart, CounterpartSite


class Account(Counterpart):
    """An account of AWS whose faults can be chosen; the control port is that of the counterpart."""

    name = "aws"
    control_variable = "AWS_CONTROL"
    own = re.compile(r"AWS_|no_proxy$|NO_PROXY$")

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


class AwsSite(CounterpartSite):
    """Nodepool with one provider in the account."""

    def __init__(self, folder: pathlib.Path, hosts: str, account: Account):
        self.account = account
        super().__init__(folder, hosts, account)

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
