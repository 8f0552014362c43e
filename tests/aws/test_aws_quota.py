"""Limits of the account, of pools and of tenants by AWS's quota codes."""
import pytest
from services import wait_for

STANDARD, SPOT, GP2 = "L-1216C47A", "L-34B43A08", "L-D18FCD1D"


def two_labels(aws_site, second: dict, **settings):
    provider = aws_site.provider(**settings)
    labels = provider["pools"][0]["labels"]
    labels.append({**labels[0], "name": "other", **second})
    return aws_site.config(providers=[provider], labels=[{"name": "small"}, {"name": "other"}])


def waits(tree, request):
    """Waits until the request is seen to wait for capacity."""
    wait_for(lambda: any(pool["paused"] for pool in tree.components("pool").values()), "the pool waits", 60)
    assert tree.request(request)["state"] in ("requested", "pending")


# AWS-30, AWS-31
@pytest.mark.parametrize("second", [{"use-spot": True}, {"instance-type": "g5.xlarge"}])
def test_each_family_and_market_has_its_own_limit(aws_site, second):
    aws_site.account.control("/quotas", {"ec2": {STANDARD: 3, SPOT: 100}})
    aws_site.launcher(two_labels(aws_site, second))
    tree = aws_site.tree()
    held = tree.use(tree.add_request(["small"]))
    waiting = tree.add_request(["small"], priority="300")
    waits(tree, waiting)
    tree.use(tree.add_request(["other"], priority="100"))
    tree.give_back(held)
    tree.use(waiting)


# AWS-33
def test_limits_of_a_pool_by_code(aws_site):
    aws_site.launcher(two_labels(aws_site, {"use-spot": True}, pool={"max-resources": {STANDARD: 2}}))
    tree = aws_site.tree()
    tree.use(tree.add_request(["small"]))
    waits(tree, tree.add_request(["small"], priority="300"))
    tree.use(tree.add_request(["other"], priority="100"))


# AWS-33
def test_limits_of_a_tenant_by_code(aws_site):
    aws_site.launcher(aws_site.config(**{"tenant-resource-limits": [{"tenant-name": "one", STANDARD: 2}]}))
    tree = aws_site.tree()
    tree.use(tree.add_request(["small"], tenant_name="one"))
    waiting = tree.add_request(["small"], tenant_name="one")
    tree.use(tree.add_request(["small"], tenant_name="two"))
    assert tree.request(waiting)["state"] == "requested"


# AWS-34
def test_the_storage_of_volumes(aws_site):
    aws_site.account.control("/quotas", {"ebs": {GP2: 0.05}})
    aws_site.launcher(two_labels(aws_site, {"volume-type": "gp3", "volume-size": 40},
                                 label={"volume-type": "gp2", "volume-size": 40}))
    tree = aws_site.tree()
    held = tree.use(tree.add_request(["small"]))
    waiting = tree.add_request(["small"], priority="300")
    waits(tree, waiting)
    tree.use(tree.add_request(["other"], priority="100"))
    tree.give_back(held)
    tree.use(waiting)


# AWS-36
def test_foreign_instances_count(aws_site):
    aws_site.account.control("/quotas", {"ec2": {STANDARD: 5}})
    foreign = aws_site.account.run_instance("m5.large")
    launcher = aws_site.launcher()
    tree = aws_site.tree()
    tree.use(tree.add_request(["small"]))
    request = tree.add_request(["small"])
    waits(tree, request)
    aws_site.account.call("TerminateInstances", InstanceIds=[foreign])
    # The account is read every five minutes, and when the configuration of the provider changes.
    aws_site.config(providers=[aws_site.provider(rate=19)])
    tree.fulfil_timeout = 90
    tree.use(request)
    assert launcher.is_running()


# AWS-37
def test_without_the_right_to_read_quotas(aws_site):
    aws_site.account.fault(service="servicequotas", error={"code": "AccessDeniedException", "message": "no", "status": 400})
    launcher = aws_site.launcher()
    aws_site.node(aws_site.tree())
    assert launcher.output().count("The quotas of ec2 could not be read") == 1


# AWS-38
def test_quotas_in_pages(aws_site):
    aws_site.account.set(page_size=5)
    aws_site.account.control("/quotas", {"ec2": {STANDARD: 3}})
    aws_site.launcher()
    tree = aws_site.tree()
    tree.use(tree.add_request(["small"]))
    waits(tree, tree.add_request(["small"]))
