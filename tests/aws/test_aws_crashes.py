"""A launcher that is killed in the middle of each call leaves nothing, and no second machine."""
import pytest
from services import wait_for

from test_aws_hosts import held_hosts

KINDS = {
    "on demand": {},
    "spot": {"use-spot": True},
    "fleet": {"instance-type": None, "fleet": {"instance-types": ["m5.large", "m6i.large"],
                                               "allocation-strategy": "lowest-price"}},
    "dedicated host": {"instance-type": "m5.large", "dedicated-host": True},
}
LAUNCH = {"on demand": ["RunInstances", "DescribeInstances"], "spot": ["RunInstances", "DescribeInstances"],
          "fleet": ["CreateFleet", "DescribeInstances"],
          "dedicated host": ["AllocateHosts", "DescribeHosts", "RunInstances", "DescribeInstances"]}
DELETION = {"on demand": ["TerminateInstances", "DescribeInstances"],
            "spot": ["TerminateInstances"], "fleet": ["TerminateInstances"],
            "dedicated host": ["TerminateInstances", "DescribeInstances", "ReleaseHosts", "DescribeHosts"]}
# Where the launcher dies: EC2 never gets the call; it does the work and the answer is lost; it does the work when the
# launcher is dead already.
MOMENTS = ["before", "after", "later"]


def cases(calls: dict) -> list:
    return [pytest.param(kind, action, moment, id=f"{kind}-{action}-{moment}")
            for kind, actions in calls.items() for action in actions for moment in MOMENTS
            # For a list the moments are the same.
            if moment == "before" or not action.startswith("Describe")]


def settings(aws_site, kind: str) -> dict:
    label = aws_site.provider()["pools"][0]["labels"][0]
    label = {key: value for key, value in {**label, **KINDS[kind]}.items() if value is not None}
    provider = aws_site.provider(pool={"availability-zone": "us-west-2a"})
    provider["pools"][0]["labels"] = [label]
    return provider


def stop_at(account, action: str, moment: str):
    """The next call of the action hangs; the function says whether it does."""
    hang = {"action": action, "delay_ms": 30000, "drop": "before", "count": 1}
    if moment == "before":
        account.fault(**hang)
    elif moment == "after":
        account.fault(action=action, drop="after", count=1)
        account.fault(**hang)
    else:
        account.fault(action=action, delay_ms=5000, count=1)
    return lambda: account.control("/faults")[-1].get("hits")


def held(account) -> list:
    return account.instances("pending", "running") + held_hosts(account)


def machines(kind: str) -> int:
    return 2 if kind == "dedicated host" else 1


# AWS-45
@pytest.mark.parametrize("kind, action, moment", cases(LAUNCH))
def test_killed_in_a_launch(aws_site, kind, action, moment):
    account, tree = aws_site.account, aws_site.tree()
    config = aws_site.config(providers=[settings(aws_site, kind)])
    launcher = aws_site.launcher(config)
    hangs = stop_at(account, action, moment)
    request = tree.add_request(["small"])
    wait_for(hangs, f"{action} hangs", 30)
    launcher.kill()
    account.control("/faults", method="DELETE")
    aws_site.launcher(config)
    tree.fulfil_timeout = 60
    nodes = tree.use(request)
    if moment == "later":
        wait_for(lambda: len([call for call in account.calls(action) if call.get("result") or call.get("error")]) >= 2,
                 "the call of the dead launcher is carried out, too", 30)
    wait_for(lambda: len(held(account)) == machines(kind), "only the node's machine is left", 60)
    instance, = account.instances("pending", "running")
    assert instance.tags["nodepool_node_id"] == nodes[0][0]
    tree.give_back(nodes)
    tree.wait_node_gone(nodes[0][0], 60)
    wait_for(lambda: not held(account) and not tree.nodes(), "nothing is left", 30)


# AWS-45
@pytest.mark.parametrize("kind, action, moment", cases(DELETION))
def test_killed_in_a_deletion(aws_site, kind, action, moment):
    account, tree = aws_site.account, aws_site.tree()
    config = aws_site.config(providers=[settings(aws_site, kind)])
    launcher = aws_site.launcher(config)
    nodes = tree.use(tree.add_request(["small"]))
    hangs = stop_at(account, action, moment)
    tree.give_back(nodes)
    wait_for(hangs, f"{action} hangs", 30)
    launcher.kill()
    account.control("/faults", method="DELETE")
    aws_site.launcher(config)
    tree.wait_node_gone(nodes[0][0], 60)
    wait_for(lambda: not held(account) and not tree.nodes(), "nothing is left", 30)
