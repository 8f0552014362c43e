"""Nodes on dedicated hosts."""
from services import wait_for

M5 = "L-8B7BF662"


def on_hosts(aws_site, **settings):
    return aws_site.provider(label={"dedicated-host": True, "instance-type": "m5.large"},
                             pool={"availability-zone": "us-west-2a"}, **settings)


def held_hosts(account) -> list[str]:
    return [host["id"] for host in account.control("/resources?kind=host")["host"]
            if not host["state"].startswith("released")]


# AWS-21
def test_a_host_is_allocated_used_and_released(aws_site):
    account, tree = aws_site.account, aws_site.tree()
    config = aws_site.config(providers=[on_hosts(aws_site)])
    aws_site.launcher(config)
    held, node = aws_site.node(tree)
    instance, = account.instances()
    host, = held_hosts(account)
    assert node["external_id"] == {"instance": instance.id, "host": host}
    assert node["resources"] == {"cores": 0, "instances": 1, "ram": 0, M5: 1}
    assert host in aws_site.tool("list", config=config, check=True).stdout
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)
    assert held_hosts(account) == [] and account.instances() == []
    assert account.refused("ReleaseHosts") == []


# AWS-22
def test_failed_launches_leave_no_host(aws_site):
    account, tree = aws_site.account, aws_site.tree()
    account.fault(action="RunInstances", error={"code": "InvalidParameterCombination", "message": "no", "status": 400})
    aws_site.launcher(aws_site.config(providers=[on_hosts(aws_site, **{"launch-retries": 2})]))
    tree.wait_request(tree.add_request(["small"]), "failed", 90)
    wait_for(lambda: held_hosts(account) == [], "the hosts are released", 30)
    assert account.count("AllocateHosts") == 2


# AWS-23
def test_the_quota_of_hosts(aws_site):
    account, tree = aws_site.account, aws_site.tree()
    account.fault(action="AllocateHosts", count=1, error={"code": "HostLimitExceeded", "message": "no", "status": 400})
    account.control("/quotas", {"ec2": {M5: 1}})
    aws_site.launcher(aws_site.config(providers=[on_hosts(aws_site)]))
    held = tree.use(tree.add_request(["small"]))
    waiting = tree.add_request(["small"])
    wait_for(lambda: any(pool["paused"] for pool in tree.components("pool").values()), "the pool waits", 60)
    tree.give_back(held)
    tree.use(waiting)


# AWS-24
def test_a_host_that_cannot_be_released_yet(aws_site):
    account, tree = aws_site.account, aws_site.tree()
    account.set(hosts_cannot_release=True)
    launcher = aws_site.launcher(aws_site.config(providers=[on_hosts(aws_site)]))
    held, _ = aws_site.node(tree)
    node_id = held[0][0]
    tree.give_back(held)
    wait_for(lambda: "cannot be released yet" in launcher.output(), "the release is refused", 60)
    assert tree.node(node_id)["state"] == "deleting" and account.instances() == []
    account.set(hosts_cannot_release=False)
    tree.wait_node_gone(node_id, 90)
    assert held_hosts(account) == []
