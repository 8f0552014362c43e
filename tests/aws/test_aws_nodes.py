"""Nodes on EC2, from the request to the end of the instance."""
import base64
import time

import pytest
from nodepool_helpers import BIN, run
from services import wait_for


# AWS-4
def test_a_node_lives_and_dies(aws_site):
    account, tree = aws_site.account, aws_site.tree()
    launcher = aws_site.launcher(aws_site.config(providers=[
        aws_site.provider(pool={"node-attributes": {"rack": "none"}})]))
    held, node = aws_site.node(tree)
    node_id = held[0][0]
    instance, = account.instances("running")
    assert node["external_id"] == {"instance": instance.id}
    assert (node["cloud"], node["region"], node["az"]) == ("AWS", "us-west-2", "us-west-2a")
    assert node["public_ipv4"] == node["interface_ip"] == instance.public_ipv4
    assert node["private_ipv4"] == instance.private_ipv4
    assert node["public_ipv6"] is None and node["python_path"] == "auto" and node["image_id"] == "ubuntu"
    assert node["attributes"] == {"rack": "none"}
    assert {key.split()[0] for key in node["host_keys"]} >= {"ssh-ed25519", "ssh-rsa"}
    assert node["resources"] == {"cores": 1, "instances": 1, "ram": 4096, "L-1216C47A": 2}
    made, = account.calls("RunInstances")
    assert made["params"]["EbsOptimized"] == "false"
    assert not [name for name in made["params"] if name.startswith("MetadataOptions")]
    tree.give_back(held)
    tree.wait_node_gone(node_id)
    assert account.instances() == []
    # driver-aws.md 20
    assert account.count("RunInstances") == account.count("TerminateInstances") == 1
    assert "counterpart/secret" not in launcher.output()


# AWS-6
def test_an_image_by_filters(aws_site):
    image = {"name": "ubuntu", "username": "ubuntu", "connection-port": aws_site.account.ssh_port,
             "image-filters": [{"Name": "name", "Values": ["ubuntu/images/ubuntu-jammy-22.04-amd64-*"]},
                               {"name": "owner-id", "values": ["099720109477"]}]}
    aws_site.launcher(aws_site.config(providers=[aws_site.provider(image=image)]))
    tree = aws_site.tree()
    tree.use(tree.add_request(["small", "small"]))
    assert {call["params"]["ImageId"] for call in aws_site.account.calls("RunInstances")} == {"ami-0aaaaaaaaaaaaaaa2"}
    by_filters = [call for call in aws_site.account.calls("DescribeImages")
                  if "Filter.1.Name" in call["params"] and "Owner.1" not in call["params"]]
    assert len(by_filters) == 1


# AWS-7
@pytest.mark.parametrize("image_id", ["ami-0123456789abcdef0", "nonsense"])
def test_an_image_that_does_not_exist(aws_site, image_id):
    image = {"name": "ubuntu", "username": "ubuntu", "image-id": image_id}
    aws_site.launcher(aws_site.config(providers=[aws_site.provider(image=image, **{"launch-retries": 2})]))
    tree = aws_site.tree()
    tree.wait_request(tree.add_request(["small"]), "failed")
    assert aws_site.account.instances() == []


# AWS-9, AWS-15
def test_how_nodes_are_reached(aws_site):
    image = {"name": "ubuntu", "image-id": "ami-1e749f67", "username": "admin", "connection-type": "winrm",
             "shell-type": "cmd"}
    aws_site.launcher(aws_site.config(providers=[
        aws_site.provider(image=image, pool={"host-key-checking": False})]))
    _, node = aws_site.node(aws_site.tree())
    assert node["host_keys"] == []
    assert (node["connection_type"], node["connection_port"], node["shell_type"]) == ("winrm", 5986, "cmd")


# AWS-10, AWS-11, AWS-14, AWS-16, AWS-18
def test_what_a_label_may_want(aws_site):
    userdata = "#cloud-config\nmotd: grüße\n"
    label = {"userdata": userdata, "iam-instance-profile": {"name": "nodepool-profile"}, "imdsv2": "required",
             "ebs-optimized": True, "volume-size": 40, "volume-type": "gp3", "iops": 4000, "throughput": 250,
             "tags": {"team": "ci", "Name": "mine"},
             "dynamic-tags": {"tenant": "Tenant is {request.tenant_name}", "broken": "{request.nothing}"}}
    aws_site.launcher(aws_site.config(providers=[aws_site.provider(label=label)]))
    held, _ = aws_site.node(aws_site.tree(), tenant_name="tenant-1")
    params = aws_site.account.calls("RunInstances")[0]["params"]
    assert base64.b64decode(params["UserData"]).decode() == userdata
    assert params["IamInstanceProfile.Name"] == "nodepool-profile"
    assert (params["MetadataOptions.HttpTokens"], params["MetadataOptions.HttpEndpoint"]) == ("required", "enabled")
    instance, = aws_site.account.instances()
    tags = instance.tags
    assert tags["team"] == "ci" and tags["tenant"] == "Tenant is tenant-1" and "broken" not in tags
    assert tags["Name"] == f"np{held[0][0]}" and tags["nodepool_provider_name"] == "ec2"
    volume, = aws_site.account.volumes()
    assert (volume.size, volume.type, volume.iops, volume.throughput) == (40, "gp3", 4000, 250)
    assert volume.tags == tags


# AWS-18, AWS-19
def test_the_root_volume_of_an_image_with_several_disks(aws_site):
    image = {"name": "ubuntu", "image-id": "ami-0aaaaaaaaaaaaaaa5", "username": "ec2-user",
             "connection-port": aws_site.account.ssh_port}
    aws_site.launcher(aws_site.config(providers=[
        aws_site.provider(image=image, label={"volume-size": 20, "volume-type": "gp2"})]))
    held, _ = aws_site.node(tree := aws_site.tree())
    params = aws_site.account.calls("RunInstances")[0]["params"]
    assert params["BlockDeviceMapping.1.DeviceName"] == "/dev/xvda"
    assert params["BlockDeviceMapping.1.Ebs.VolumeSize"] == "20"
    assert len(aws_site.account.volumes()) == 1
    tree.give_back(held)
    wait_for(lambda: aws_site.account.volumes() == [], "the volume is deleted", 30)


# AWS-12, AWS-13
@pytest.mark.parametrize("pool", [{"public-ip-address": False}, {"public-ipv4": False, "public-ipv6": True},
                                  {"public-ipv6": True}])
def test_addresses(aws_site, pool):
    # sshd of the counterpart does not answer at IPv6 addresses.
    aws_site.launcher(aws_site.config(providers=[aws_site.provider(pool={"host-key-checking": False, **pool})]))
    _, node = aws_site.node(aws_site.tree())
    has_ipv4 = pool.get("public-ip-address", pool.get("public-ipv4", True))
    assert (node["public_ipv4"] is not None) == has_ipv4
    assert (node["public_ipv6"] is not None) == pool.get("public-ipv6", False)
    assert node["interface_ip"] == (node["public_ipv4"] or node["public_ipv6"] or node["private_ipv4"])


# AWS-20
def test_a_spot_instance(aws_site):
    aws_site.launcher(aws_site.config(providers=[aws_site.provider(label={"use-spot": True})]))
    aws_site.node(aws_site.tree())
    instance, = aws_site.account.instances()
    assert instance.lifecycle == "spot"


# AWS-17
def test_an_unknown_type_fails_only_its_own_label(aws_site):
    provider = aws_site.provider()
    pool = provider["pools"][0]
    pool["labels"].append({**pool["labels"][0], "name": "huge", "instance-type": "t3.enormous"})
    aws_site.launcher(aws_site.config(providers=[provider], labels=[{"name": "small"}, {"name": "huge"}]))
    tree = aws_site.tree()
    tree.wait_request(tree.add_request(["huge"]), "failed")
    tree.use(tree.add_request(["small"]))


# AWS-53
def test_an_old_record_with_a_plain_id(aws_site):
    made = aws_site.account.run_instance()
    tree = aws_site.tree()
    node = tree.add_node(provider="ec2", state="used", external_id=made)
    empty = tree.add_node(provider="ec2", state="used", external_id="")
    aws_site.launcher()
    tree.wait_node_gone(node)
    tree.wait_node_gone(empty)
    wait_for(lambda: aws_site.account.instances() == [], "the instance is terminated", 30)


# AWS-72
def test_lists_in_pages(aws_site):
    aws_site.account.set(page_size=5)
    aws_site.launcher()
    tree = aws_site.tree()
    held = tree.use(tree.add_request(["small"] * 12))
    tree.give_back(held)
    for node_id, _ in held:
        tree.wait_node_gone(node_id, 60)
    assert aws_site.account.instances() == []
    assert any("NextToken" in call["params"] for call in aws_site.account.calls("DescribeInstances"))


# AWS-73
def test_a_burst_keeps_the_rate(aws_site):
    aws_site.launcher(aws_site.config(providers=[aws_site.provider(rate=4)]))
    tree = aws_site.tree()
    start = time.time()
    tree.use(tree.add_request(["small"] * 20))
    seconds = time.time() - start
    times = sorted(call["time"] for call in aws_site.account.calls("RunInstances"))
    assert len(times) == 20
    # On a busy machine calls arrive closer than they were sent.
    assert times[-1] - times[0] >= 0.8 * 19 * 0.25
    assert aws_site.account.count("DescribeInstances") <= 2 * seconds + 3
    assert all("InstanceId.1" not in call["params"] for call in aws_site.account.calls("DescribeInstances"))


FLEET = {"instance-types": ["m5.large", "m6i.large"], "allocation-strategy": "lowest-price"}


@pytest.mark.parametrize("label", [{}, {"dedicated-host": True, "instance-type": "m5.large"}, {"fleet": FLEET}])
def test_the_adapter_keeps_its_contract(aws_site, label):
    provider = aws_site.provider(label=label, pool={"availability-zone": "us-west-2a"}, rate=0)
    if "fleet" in label:
        del provider["pools"][0]["labels"][0]["instance-type"]
    config = aws_site.config(providers=[provider])
    run(BIN / "nodepool-driver-test", "-c", config, "--provider", "ec2", "--cancellations", "4",
        env=aws_site.account.environment())
    assert aws_site.account.instances("pending", "running") == []
