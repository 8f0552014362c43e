"""Keys of machines on a real libvirt: the one that logs in, and those that machines show."""
from services import wait_for

# What cloud-init does with the host key of its vendor data, for a guest that has none.
TAKE_HOST_KEY = """#!/bin/sh
rm -f /etc/ssh/ssh_host_*
umask 077
sed -n '/BEGIN OPENSSH/,/END OPENSSH/s/^ *//p' vendor-data >/etc/ssh/ssh_host_ed25519_key
ssh-keygen -y -f /etc/ssh/ssh_host_ed25519_key >/etc/ssh/ssh_host_ed25519_key.pub
"""


# LV-3
def test_the_key_that_the_launcher_makes_logs_in(libvirt_site):
    key = libvirt_site.folder / "keys" / "here"
    provider = libvirt_site.provider(**{"authorized-keys": [], "key": str(key)})
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    tree = libvirt_site.tree()
    held = tree.use(tree.add_request(["small"]))
    assert libvirt_site.login(tree.node(held[0][0]), "whoami", key=key) == "zuul"
    # LV-45
    assert "PRIVATE KEY" not in launcher.output()


# LV-10
def test_a_machine_shows_the_host_key_that_it_was_given(libvirt_site):
    provider = libvirt_site.provider({"userdata": TAKE_HOST_KEY, "seed": "nocloud"}, **{"host-keys": "inject"})
    libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    tree = libvirt_site.tree()
    held = tree.use(tree.add_request(["small"]))
    node = tree.node(held[0][0])
    assert len(node["host_keys"]) == 1
    assert libvirt_site.login(node, "whoami") == "zuul"


# LV-10
def test_a_machine_with_another_host_key_is_not_handed_out(libvirt_site):
    provider = libvirt_site.provider(**{"host-keys": "inject", "launch-retries": 1})
    launcher = libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    tree = libvirt_site.tree()
    tree.wait_request(tree.add_request(["small"]), "failed", 300)
    assert "are not those that the cloud has of it" in launcher.output()
    wait_for(lambda: not libvirt_site.host.volumes(), "nothing is left", 60)
