"""What others do with a real libvirt host, and the quota that is left."""
from services import wait_for

FOREIGN = "foreign"
DESCRIPTION = f"""<domain type='qemu'><name>{FOREIGN}</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type machine='q35'>hvm</type></os></domain>"""


# LV-25
def test_the_quota_follows_foreign_domains_at_once(libvirt_site, statsd):
    """Without the host's events it would be read again after five minutes."""
    host, tree = libvirt_site.host, libvirt_site.tree()
    provider = libvirt_site.provider()
    provider["hosts"] = [{"name": "local", "uri": provider.pop("uri"), "cores": 1}]
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    description = libvirt_site.folder / "foreign.xml"
    description.write_text(DESCRIPTION)

    def wait_cores(cores: int):
        wait_for(lambda: statsd.last("nodepool.provider.here.host.local.cores") == f"{cores}|g", "the host is read again", 15)

    def is_declined() -> bool:
        request = tree.add_request(["small"])
        wait_for(lambda: tree.request(request)["state"] != "requested", "the request is considered", 15)
        is_failed = tree.request(request)["state"] == "failed"
        tree.zk.delete(f"/nodepool/requests/{request}")
        return is_failed

    host.virsh("create", "--paused", description)
    wait_cores(1)
    wait_for(is_declined, "the quota is read again", 30)
    assert "it would exceed quota: cores" in launcher.output()
    host.virsh("destroy", FOREIGN)
    wait_cores(0)
    wait_for(lambda: not is_declined(), "the quota is read again", 30)
    tree.add_request(["small"])
    wait_for(host.domains, "a machine is started", 60)
