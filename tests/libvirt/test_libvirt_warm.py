"""Machines that go on from the saved memory of one that has booted, on a real libvirt."""
import time

import pytest
from services import wait_for

# The tiny guest has no program for networks that Nodepool knows. Without KVM the start of a program takes longer than
# a DHCP exchange, except for those of busybox.
NETWORK_HOOK = """#!/bin/sh
mkdir -p /etc/nodepool
cat >/etc/nodepool/network <<'EOF'
#!/bin/busybox sh
case $1 in
  stop)
    for process in /proc/[0-9]*; do
      if grep -q udhcpc $process/cmdline; then kill ${process#/proc/}; fi
    done ;;
  start) busybox udhcpc -i eth0 -b -R -S -t 10 -T 1 -s /etc/nodepool/network & ;;
  bound | renew)
    busybox ip address replace "$ip/$mask" dev "$interface"
    [ -z "$router" ] || busybox ip route replace default via "${router%% *}"
    for server in $dns; do echo "nameserver $server"; done >/etc/resolv.conf ;;
esac
EOF
chmod 755 /etc/nodepool/network
"""


@pytest.fixture
def warm_site(libvirt_site):
    label = {"warm-start": True, "userdata": NETWORK_HOOK}
    libvirt_site.settings["providers"] = [libvirt_site.provider(label)]
    return libvirt_site


def template_volumes(host) -> list[str]:
    return [name for name in host.volumes() if ".warm-start." in name]


def await_nothing_left(site):
    """Only the template stays."""
    host = site.host
    wait_for(lambda: not host.domains(), "no machine is left", 120)
    wait_for(lambda: host.volumes() == template_volumes(host), "no volume is left", 120)


# LV-47, LV-48
def test_machines_from_saved_memory_share_nothing_that_tells_them_apart(warm_site):
    host, tree = warm_site.host, warm_site.tree()
    launcher = warm_site.launcher()
    held = tree.use(tree.add_request(["small", "small"]))
    assert launcher.output().count("The memory of a booted machine of label small is saved") == 1
    nodes = [tree.node(node_id) for node_id, _ in held]
    told = [warm_site.login(node, "hostname; cat /etc/machine-id; cat /sys/class/net/eth0/address; "
                                  "head -c 32 /dev/urandom | base64; date +%s").split() for node in nodes]
    for node, (node_id, _), (name, machine_id, _, _, seconds) in zip(nodes, held, told):
        assert name == f"np{node_id}"
        assert machine_id == node["external_id"].removeprefix("local/").replace("-", "")
        assert abs(int(seconds) - time.time()) < 20
        assert [key.split()[0] for key in node["host_keys"]] == ["ssh-ed25519"]
    for first, second in zip(told[0][:4], told[1][:4]):
        assert first != second
    assert nodes[0]["interface_ip"] != nodes[1]["interface_ip"]
    assert nodes[0]["host_keys"] != nodes[1]["host_keys"]
    tree.give_back(held)
    for node_id, _ in held:
        tree.wait_node_gone(node_id, 60)
    assert host.domains() == []
    assert host.volumes() == template_volumes(host)


# LV-47
def test_the_memory_outlives_the_process_that_saved_it(warm_site):
    tree = warm_site.tree()
    launcher = warm_site.launcher()
    held = tree.use(tree.add_request(["small"]))
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)
    launcher.stop()
    launcher = warm_site.launcher()
    held = tree.use(tree.add_request(["small"]))
    assert warm_site.login(tree.node(held[0][0]), "hostname") == f"np{held[0][0]}"
    assert "is saved on host" not in launcher.output()
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)


# LV-49
def test_a_guest_whose_network_cannot_be_stopped_is_booted(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    libvirt_site.settings["providers"] = [libvirt_site.provider({"warm-start": True})]
    launcher = libvirt_site.launcher()
    held = tree.use(tree.add_request(["small"]))
    wait_for(lambda: "/etc/nodepool/network can do it" in launcher.output(), "the reason is logged", 10)
    assert libvirt_site.login(tree.node(held[0][0]), "hostname") == f"np{held[0][0]}"
    assert template_volumes(host) == []
    tree.give_back(held)
    tree.wait_node_gone(held[0][0], 60)
