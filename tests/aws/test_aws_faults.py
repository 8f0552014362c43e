"""Faults of EC2, and what is left when a launcher dies."""
from services import wait_for


def one_attempt(aws_site, **provider):
    return aws_site.config(providers=[aws_site.provider(**{"launch-retries": 1, **provider})])


# AWS-43
def test_an_internal_error_once_in_each_call(aws_site):
    launcher = aws_site.launcher(one_attempt(aws_site))
    for action in ("RunInstances", "DescribeInstances", "TerminateInstances"):
        aws_site.account.fault(action=action, count=1,
                               error={"code": "InternalError", "message": "an internal error", "status": 500})
    tree = aws_site.tree()
    held, _ = aws_site.node(tree)
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
    assert " WARNING " not in launcher.output()


# AWS-44
def test_a_lost_answer_makes_no_second_instance(aws_site):
    aws_site.account.fault(action="RunInstances", drop="after", count=1)
    aws_site.launcher(one_attempt(aws_site))
    aws_site.node(aws_site.tree())
    assert len(aws_site.account.instances()) == 1
    assert aws_site.account.count("RunInstances") == 2


# AWS-42
def test_throttling_costs_no_attempt(aws_site):
    aws_site.account.set(throttle={"RunInstances": {"rate": 1, "burst": 1}, "DescribeInstances": {"rate": 1, "burst": 1}})
    aws_site.launcher(one_attempt(aws_site))
    tree = aws_site.tree()
    tree.fulfil_timeout = 120
    tree.use(tree.add_request(["small"] * 6))
    assert aws_site.account.refused("RunInstances")
    assert len(aws_site.account.instances()) == 6


# AWS-39, AWS-40
def test_a_request_waits_for_quota(aws_site, statsd):
    aws_site.account.fault(action="RunInstances", count=2,
                           error={"code": "VcpuLimitExceeded", "message": "more vCPU than you may", "status": 400})
    aws_site.account.fault(action="RunInstances", count=1, skip=2,
                           error={"code": "VolumeLimitExceeded", "message": "too much", "status": 400})
    aws_site.launcher()
    aws_site.node(aws_site.tree())
    assert aws_site.account.count("RunInstances") >= 3
    wait_for(lambda: statsd.lines("nodepool.launch.error.quota:"), "the attempt is counted")


# AWS-41
def test_no_capacity(aws_site, statsd):
    aws_site.account.set(no_capacity=[{"type": "t3.*"}])
    aws_site.launcher(aws_site.config(providers=[aws_site.provider(**{"launch-retries": 2})]))
    tree = aws_site.tree()
    request = tree.add_request(["small"])
    wait_for(lambda: statsd.lines("nodepool.launch.error.capacity:"), "the attempt is counted", 60)
    assert aws_site.account.instances() == []
    assert tree.request(request)["state"] == "pending", "nobody else could serve it"
    aws_site.account.set(no_capacity=[])
    tree.wait_request(request, "fulfilled", 120)


# AWS-46
def test_an_instance_that_dies_while_pending(aws_site, statsd):
    aws_site.account.set(boot=[{"what": "die", "reason": "Server.InsufficientInstanceCapacity", "count": 1}])
    aws_site.launcher()
    aws_site.node(aws_site.tree())
    wait_for(lambda: statsd.lines("nodepool.launch.error.capacity:"), "the attempt is counted")


# AWS-48
def test_eventual_consistency(aws_site):
    aws_site.account.set(visible_after_ms=3000)
    aws_site.launcher(one_attempt(aws_site))
    tree = aws_site.tree()
    held, _ = aws_site.node(tree)
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
    assert aws_site.account.instances() == []


# AWS-55
def test_a_public_address_that_comes_later(aws_site):
    aws_site.account.set(public_ip_after_ms=2000)
    aws_site.launcher(one_attempt(aws_site))
    _, node = aws_site.node(aws_site.tree())
    assert node["public_ipv4"] == node["interface_ip"] is not None


# AWS-45
def test_a_launcher_that_dies_before_it_knows_the_instance(aws_site):
    aws_site.account.fault(action="RunInstances", drop="after", count=1)
    aws_site.account.fault(action="RunInstances", delay_ms=60000, count=1, skip=1)
    launcher = aws_site.launcher()
    tree = aws_site.tree()
    request = tree.add_request(["small"])
    wait_for(lambda: aws_site.account.instances(), "the instance is made", 30)
    launcher.kill()
    tree.zk.delete(f"/nodepool/requests/{request}")
    aws_site.launcher()
    wait_for(lambda: aws_site.account.instances() == [], "the leaked instance is terminated", 60)


# AWS-50
def test_a_ready_spot_node_that_is_interrupted_is_replaced(aws_site):
    config = aws_site.config(labels=[{"name": "small", "min-ready": 1}],
                             providers=[aws_site.provider(label={"use-spot": True})])
    aws_site.launcher(config)
    tree = aws_site.tree()

    def ready():
        return [node_id for node_id, node in tree.nodes().items() if node["state"] == "ready"]

    first, = wait_for(ready, "a node is ready", 60)
    aws_site.account.control("/interrupt", {})
    tree.wait_node_gone(first, 60)
    wait_for(ready, "another node is ready", 60)


# AWS-50
def test_a_notice_of_an_interruption(aws_site, statsd):
    config = aws_site.config(labels=[{"name": "small", "min-ready": 1}],
                             providers=[aws_site.provider(label={"use-spot": True})])
    launcher = aws_site.launcher(config)
    account, tree = aws_site.account, aws_site.tree()

    def ready():
        return [node_id for node_id, node in tree.nodes().items() if node["state"] == "ready"]

    request = tree.add_request(["small"])
    (used, _), = tree.use(request)
    first, = wait_for(ready, "a node is ready", 60)
    account.control("/interrupt", {"notice_ms": 120000})
    wait_for(lambda: (tree.node(first) or {"state": "deleting"})["state"] == "deleting", "it is not handed out", 30)
    record = wait_for(lambda: (tree.node(used) or {}).get("comment") and tree.node(used), "the other is noted", 30)
    assert record["state"] == "in-use" and "marked-for-termination" in record["comment"]
    line, = [line for line in launcher.output().splitlines() if "The machine of a node in use" in line]
    assert request in line and used in line and "marked-for-termination" in line
    wait_for(lambda: set(ready()) - {first}, "another node is ready", 60)
    assert statsd.lines("nodepool.provider.ec2.taken.ready:") and statsd.lines("nodepool.provider.ec2.taken.in-use:")


# AWS-56
def test_leaked_instances_and_volumes(aws_site):
    account, tree = aws_site.account, aws_site.tree()
    aws_site.launcher()
    held, node = aws_site.node(tree)
    former = held[0][0]
    tree.give_back(held)
    tree.wait_node_gone(former)

    def volume(provider, node_id):
        tags = [{"Key": "nodepool_provider_name", "Value": provider}, {"Key": "nodepool_node_id", "Value": node_id}]
        before = {one.id for one in account.volumes()}
        account.call("CreateVolume", AvailabilityZone="us-west-2a", Size=1,
                     TagSpecifications=[{"ResourceType": "volume", "Tags": tags}])
        return next(one.id for one in account.volumes() if one.id not in before)

    leaked, unknown, foreign = volume("ec2", former), volume("ec2", "0000009999"), volume("other", former)
    account.run_instance(nodepool_provider_name="ec2", nodepool_node_id=former)
    other = account.run_instance(nodepool_provider_name="other", nodepool_node_id=former)
    wait_for(lambda: [one.id for one in account.instances()] == [other], "the instance is terminated", 60)

    wait_for(lambda: leaked not in [one.id for one in account.volumes()], "the known node's volume is deleted", 60)
    assert {unknown, foreign} <= {one.id for one in account.volumes()}


def test_the_console_of_a_node_without_host_keys(aws_site):
    image = {"name": "ubuntu", "image-id": "ami-1e749f67", "username": "ubuntu", "connection-port": 1}
    launcher = aws_site.launcher(one_attempt(aws_site, image=image, **{"boot-timeout": 4}))
    tree = aws_site.tree()
    request = tree.add_request(["small"])
    instance, = wait_for(lambda: aws_site.account.instances("running"), "the instance runs", 30)
    aws_site.account.control("/console", {"id": instance.id, "text": "Kernel panic: no init\n"})
    tree.wait_request(request, "failed", 60)
    assert "Kernel panic: no init" in launcher.output()
