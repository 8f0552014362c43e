"""Fleets with their launch templates, and labels that may be of several types or in several places."""
import re

import pytest
from services import free_port, wait_for
from web_client import get

from test_aws_quota import STANDARD, waits

SUBNETS = [f"subnet-0123456789abcdef{number}" for number in range(3)]
PREFIX = "nodepool-launch-template-"


def fleet_label(aws_site, name="small", strategy="lowest-price", types=("m5.large", "m5.xlarge"), **settings) -> dict:
    usual = dict(aws_site.provider()["pools"][0]["labels"][0])
    del usual["instance-type"]
    return {**usual, "name": name, "fleet": {"instance-types": list(types), "allocation-strategy": strategy}, **settings}


def with_labels(aws_site, *labels, pool=None, more_labels=(), top=None, **settings):
    provider = aws_site.provider(**settings)
    provider["pools"][0]["labels"] = list(labels)
    for key, value in (pool or {}).items():
        if value is None:
            del provider["pools"][0][key]
        else:
            provider["pools"][0][key] = value
    return aws_site.config(providers=[provider], labels=[{"name": name} for name in [*(label["name"] for label in labels), *more_labels]],
                           **(top or {}))


# AWS-27
@pytest.mark.parametrize("market", ["on-demand", "spot"])
def test_a_node_of_a_fleet(aws_site, market):
    account, tree = aws_site.account, aws_site.tree()
    is_spot = market == "spot"
    strategy = "price-capacity-optimized" if is_spot else "prioritized"
    aws_site.launcher(with_labels(aws_site, fleet_label(aws_site, strategy=strategy, tags={"team": "ci"},
                                                        **{"use-spot": is_spot, "volume-size": 40})))
    held, node = aws_site.node(tree)
    instance, = account.instances("running")
    volume, = account.volumes()
    assert node["external_id"] == {"instance": instance.id}
    assert (instance.lifecycle == "spot") == is_spot
    assert instance.tags["team"] == "ci" and instance.tags["nodepool_node_id"] == held[0][0]
    assert volume.size == 40 and volume.tags == {key: value for key, value in instance.tags.items()
                                                 if not key.startswith("aws:")}
    vcpus = {"m5.large": 2, "m5.xlarge": 4}[instance.item.findtext("instanceType")]
    assert node["resources"]["L-34B43A08" if is_spot else STANDARD] == vcpus
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
    assert account.instances() == [] and account.count("CreateFleet") == 1


# AWS-3, AWS-25
def test_templates_are_kept_and_removed_as_labels_need_them(aws_site):
    account = aws_site.account
    small = fleet_label(aws_site)
    large = fleet_label(aws_site, "large", **{"volume-size": 80})
    spot = fleet_label(aws_site, "spot", "diversified", **{"use-spot": True})
    account.call("CreateLaunchTemplate", LaunchTemplateName=PREFIX + "of-another", LaunchTemplateData={"KeyName": "zuul"},
                 TagSpecifications=[{"ResourceType": "launch-template",
                                     "Tags": [{"Key": "nodepool_provider_name", "Value": "other"}]}])
    launcher = aws_site.launcher(with_labels(aws_site, small, large, spot))
    wait_for(lambda: account.count("CreateLaunchTemplate") == 2, "two labels share a template", 30)
    # A file that says the same of the provider does not replace it.
    started = account.count("DescribeLaunchTemplates")
    with_labels(aws_site, small, large, spot, more_labels=["unused"])
    wait_for(lambda: "was read again" in launcher.output(), "it is read", 30)
    aws_site.node(aws_site.tree())
    assert account.count("DescribeLaunchTemplates") == started
    launcher.kill()
    aws_site.launcher(with_labels(aws_site, small))
    wait_for(lambda: account.count("DeleteLaunchTemplate") == 1, "the unused template is removed", 30)
    assert account.count("CreateLaunchTemplate") == 2
    names = {item["params"]["LaunchTemplateName"] for item in account.calls("DeleteLaunchTemplate")}
    assert PREFIX + "of-another" not in names


# AWS-28
def test_the_errors_of_a_fleet(aws_site, statsd):
    account, tree = aws_site.account, aws_site.tree()
    account.set(no_capacity=[{"type": "m5.*"}])
    aws_site.launcher(with_labels(aws_site, fleet_label(aws_site), **{"launch-retries": 1}))
    request = tree.add_request(["small"])
    wait_for(lambda: statsd.lines("nodepool.launch.error.capacity:"), "the attempt is counted", 60)
    assert not statsd.lines("nodepool.launch.error.unknown:")
    account.set(no_capacity=[])
    tree.wait_request(request, "fulfilled", 120)
    tree.give_back(tree.use(request))
    account.control("/quotas", {"ec2": {STANDARD: 1}})
    request = tree.add_request(["small"])
    wait_for(lambda: statsd.lines("nodepool.launch.error.quota:"), "the attempt is counted", 60)
    account.control("/quotas", {"ec2": {STANDARD: 1000}})
    tree.use(request)


# AWS-29
def test_an_instance_that_ec2_lists_late(aws_site):
    account, tree = aws_site.account, aws_site.tree()
    account.set(visible_after_ms=5000)
    aws_site.launcher(with_labels(aws_site, fleet_label(aws_site), **{"launch-retries": 1}))
    held, _ = aws_site.node(tree)
    assert len(account.instances()) == 1
    tree.give_back(held)
    tree.wait_node_gone(held[0][0])
    assert account.instances() == []


# AWS-35
def test_a_fleet_instance_counts_after_its_launch(aws_site):
    account, tree = aws_site.account, aws_site.tree()
    account.control("/quotas", {"ec2": {STANDARD: 6}})
    other = {**aws_site.provider()["pools"][0]["labels"][0], "name": "other", "instance-type": "m5.xlarge"}
    aws_site.launcher(with_labels(aws_site, fleet_label(aws_site, types=["m5.xlarge"]), other))
    held = tree.use(tree.add_request(["small"]))
    waiting = tree.add_request(["other"])
    waits(tree, waiting)
    assert account.refused("RunInstances") == []
    tree.give_back(held)
    tree.use(waiting)


def test_the_next_subnet_and_the_next_type(aws_site):
    account, tree = aws_site.account, aws_site.tree()
    label = {**aws_site.provider()["pools"][0]["labels"][0], "instance-types": ["m5.large", "m6i.large"]}
    del label["instance-type"]
    launcher = aws_site.launcher(with_labels(aws_site, label, pool={"subnet-id": None, "subnet-ids": SUBNETS[:2]},
                                             **{"launch-retries": 1, "prices": {"m5.large": 0.096}}))
    account.set(no_capacity=[{"az": "us-west-2a"}])
    held, node = aws_site.node(tree)
    assert node["az"] == "us-west-2b"
    assert f"The machine is m5.large in {SUBNETS[1]}; no capacity for m5.large in {SUBNETS[0]}" in launcher.output()
    assert re.fullmatch(rf"Launched as m5.large in {SUBNETS[1]}; no capacity for m5.large in {SUBNETS[0]} until ..:.. UTC; "
                        r"0.096 per hour", node["comment"])
    account.set(no_capacity=[{"type": "m5.*"}])
    held += tree.use(tree.add_request(["small"]))
    assert sorted(one.item.findtext("instanceType") for one in account.instances()) == ["m5.large", "m6i.large"]
    # The first subnet is not asked again for a while.
    assert [call["params"]["NetworkInterface.1.SubnetId"] for call in account.refused("RunInstances")] == \
        [SUBNETS[0], SUBNETS[1]]


# AWS-81
def test_what_a_node_costs_and_why_it_is_what_it_is(aws_site, statsd):
    """A fleet on the spot market, and a label without a choice."""
    tree = aws_site.tree()
    usual = aws_site.provider()["pools"][0]["labels"][0]
    plain = {**usual, "name": "plain"}
    fleet = fleet_label(aws_site, types=["m5.large", "m6i.large"], **{"use-spot": True})
    prices = {kind: {"on-demand": 0.096, "spot": 0.04} for kind in ("m5.large", "m6i.large")}
    port = free_port()
    aws_site.launcher(with_labels(aws_site, fleet, plain, prices=prices,
                                  top={"webapp": {"listen_address": "127.0.0.1", "port": port}}))
    _, node = aws_site.node(tree)
    assert re.fullmatch(r"Launched as m(5|6i).large spot in us-west-2a, chosen by AWS \(lowest-price\); 0.04 per hour",
                        node["comment"]), node["comment"]
    assert node["hourly_price"] == 0.04
    (other, _), = tree.use(tree.add_request(["plain"]))
    assert tree.node(other)["comment"] is None and "hourly_price" not in tree.node(other)
    wait_for(lambda: 'nodepool_hourly_cost{provider="ec2",label="small"} 0.04' in get(port, "/metrics")[2], "the cost", 60)
    metrics = [line for line in get(port, "/metrics")[2].splitlines() if line.startswith("nodepool_machines_launched")]
    assert 'nodepool_machines_launched_total{provider="ec2",type="t3_medium"} 1' in metrics, metrics
    assert re.search(r'nodepool_machines_launched_total\{provider="ec2",type="m(5|6i)_large_spot"\} 1', metrics[0]), metrics


def test_several_zones_without_a_subnet(aws_site):
    account, tree = aws_site.account, aws_site.tree()
    label = aws_site.provider()["pools"][0]["labels"][0]
    aws_site.launcher(with_labels(aws_site, label, pool={
        "subnet-id": None, "security-group-id": None, "availability-zones": ["us-west-2a", "us-west-2b"]}))
    account.set(no_capacity=[{"az": "us-west-2a"}])
    _, node = aws_site.node(tree)
    assert node["az"] == "us-west-2b"
