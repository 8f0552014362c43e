"""Many nodes at once under the limit of an account's calls."""
import collections
import os

from services import wait_for

AT_ONCE = int(os.environ.get("NODEPOOL_TEST_AWS_AT_ONCE", "60"))
PER_SECOND = 20


# AWS-42, AWS-73
def test_many_nodes_under_a_limit_of_calls(aws_site, statsd, capsys):
    account, tree = aws_site.account, aws_site.tree()
    account.set(throttle={"*": {"rate": PER_SECOND, "burst": PER_SECOND}})
    provider = aws_site.provider(pool={"host-key-checking": False}, rate=100, **{"launch-retries": 1})
    aws_site.launcher(aws_site.config(providers=[provider]))
    account.control("/log", method="DELETE")
    requests = [tree.add_request(["small"]) for _ in range(AT_ONCE)]
    tree.fulfil_timeout = 60 + AT_ONCE
    held = [node for request in requests for node in tree.use(request)]
    assert len(account.instances()) == AT_ONCE
    tree.give_back(held)
    wait_for(lambda: not tree.children("/nodepool/nodes"), "every node is gone", 60 + AT_ONCE)
    assert account.instances() == []
    assert not statsd.lines("nodepool.launch.error.")

    calls = account.calls()
    counts = collections.Counter(call["action"] for call in calls)
    refused = collections.Counter(call["action"] for call in calls if call.get("error"))
    seconds = calls[-1]["time"] - calls[0]["time"]
    assert set(call["error"] for call in calls if call.get("error")) <= {"RequestLimitExceeded"}
    # A busy machine may call too slowly to be refused.
    is_refused = bool(refused["RunInstances"] or refused["TerminateInstances"])
    assert not is_refused or statsd.lines("nodepool.provider.ec2.api_rate.ec2_changes:"), "the lower rate is a metric"
    own = counts["RunInstances"] + counts["TerminateInstances"]
    with capsys.disabled():
        print(f"\n{AT_ONCE} nodes in {seconds:.0f} s: {own / AT_ONCE:.2f} calls a node beside shared lists; "
              f"calls {dict(counts)}, refused {dict(refused)}")
    assert own <= 3 * AT_ONCE
    assert counts["RunInstances"] - refused["RunInstances"] == AT_ONCE
    # Shared lists do not grow with the number of nodes.
    assert counts["DescribeInstances"] <= 2 * seconds + 10
