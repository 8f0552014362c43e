"""Many nodes at once: how long it takes, how many requests, how much memory."""
import os
import time

from services import wait_for

# A thousand take about fifteen minutes on two cores.
COUNT = int(os.environ.get("NODEPOOL_TEST_KUBERNETES_AT_ONCE", "60"))
WRITES_OF_A_POD = 6  # namespace, account, secret, role, binding, pod


def memory(launcher) -> int:
    """The peak, in KiB."""
    with open(f"/proc/{launcher.pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def calls(launcher, method: str, part: str = "") -> int:
    lines = [line for line in launcher.output().splitlines() if f"nodepool.http: {method} " in line and part in line]
    return len(lines)


# K8S-45
def test_many_pods_at_once(kubernetes_site):
    cluster, tree = kubernetes_site.cluster, kubernetes_site.tree()
    for number in range(COUNT // 250 + 1):
        cluster.control("POST", "/nodes", {"name": f"storm-{number}", "cpu": 64, "memory": "256Gi", "pods": 250})
    launcher = kubernetes_site.start(kubernetes_site.provider(**{"launch-timeout": 1200}))
    before = memory(launcher)
    begun = time.monotonic()
    requests = [tree.add_request(["pod-small"]) for _ in range(COUNT)]
    tree.fulfil_timeout = 1200
    held = [node for request in requests for node in tree.use(request)]
    launched = time.monotonic() - begun
    assert len(cluster.namespaces()) == COUNT
    assert "Launch attempt" not in launcher.output()
    writes, reads = calls(launcher, "POST"), calls(launcher, "GET")
    tree.give_back(held)
    wait_for(lambda: not tree.nodes(), "all nodes are gone", 1200)
    deleted = time.monotonic() - begun - launched
    print(f"\n{COUNT} pods: launched in {launched:.1f} s, deleted in {deleted:.1f} s; {writes} POST, {reads} GET, "
          f"{calls(launcher, 'DELETE')} DELETE; memory {before} KiB before, {memory(launcher)} KiB at most")
    assert writes <= WRITES_OF_A_POD * COUNT + COUNT // 10
    assert reads <= 2 * COUNT + launched / 10 + 20, "one for the token, and lists that follow the time"
    for number in range(COUNT // 250 + 1):
        cluster.control("POST", "/nodes", {"name": f"storm-{number}", "remove": True})
