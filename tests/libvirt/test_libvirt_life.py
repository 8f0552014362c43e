"""What happens to machines of a real libvirt, and to libvirt itself, while nodes live."""
import os
import signal

from services import wait_for


# LV-17
def test_a_reboot_changes_nothing_and_a_power_off_ends_the_machine(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    libvirt_site.launcher()
    held = tree.use(tree.add_request(["small"]))
    node_id = held[0][0]
    node = tree.node(node_id)
    as_root = node | {"username": "root"}
    name, = host.domains()
    boot = libvirt_site.login(as_root, "cat", "/proc/sys/kernel/random/boot_id")
    libvirt_site.login(as_root, "sync; nohup sh -c 'sleep 1; reboot' >/dev/null 2>&1 &")

    def has_rebooted() -> bool:
        try:
            return libvirt_site.login(as_root, "cat", "/proc/sys/kernel/random/boot_id") != boot
        except AssertionError:  # it is not reachable at the moment
            return False

    wait_for(has_rebooted, "the machine is back at its address", 400)
    assert host.domains() == [name] and tree.node(node_id)["state"] == "in-use"
    libvirt_site.login(as_root, "nohup sh -c 'sleep 1; poweroff' >/dev/null 2>&1 &")
    wait_for(lambda: not host.domains(), "the machine ends", 120)
    assert tree.node(node_id)["state"] == "in-use", "the record is its owner's"
    tree.give_back(held)
    tree.wait_node_gone(node_id, 60)
    wait_for(lambda: host.volumes() == [], "nothing is left", 30)


# LV-34
def test_ready_nodes_whose_machines_were_destroyed_are_replaced(libvirt_site):
    host, tree = libvirt_site.host, libvirt_site.tree()
    config = libvirt_site.config(labels=[{"name": "small", "min-ready": 1}])
    launcher = libvirt_site.launcher(config)
    old = wait_for(lambda: ready_nodes(tree), "a node is ready", 400)
    launcher.kill()
    for name in host.domains():
        host.virsh("destroy", name)
    libvirt_site.launcher(config)
    wait_for(lambda: ready_nodes(tree) and not set(ready_nodes(tree)) & set(old), "another node is ready", 600)
    wait_for(lambda: all(old[0] not in volume for volume in host.volumes()), "the old volumes are gone", 60)


def ready_nodes(tree) -> list[str]:
    return [node_id for node_id in tree.children("/nodepool/nodes") if (tree.node(node_id) or {}).get("state") == "ready"]


# LV-33
def test_a_libvirtd_that_is_stopped_is_noticed(libvirt_site):
    host = libvirt_site.host
    launcher = libvirt_site.launcher()
    wait_for(lambda: "Host local is connected" in launcher.output(), "the host is connected", 30)
    pid = host.daemon_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: "does not answer keep-alive messages" in launcher.output(), "the connection is given up", 30)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: launcher.output().count("Host local is connected") == 2, "the host is connected again", 90)
