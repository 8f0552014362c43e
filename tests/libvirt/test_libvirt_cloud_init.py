"""An ordinary Debian with systemd and cloud-init on a real libvirt: what cloud-init does with the seeds."""
import pytest
from nodepool_helpers import run

# Without KVM systemd takes minutes.
SECONDS = 1500
USER_DATA = "#!/bin/sh\necho run >>/var/tmp/runs\n"
DATA_SOURCES = {"nocloud": "nocloud", "config-drive": "configdrive"}  # as cloud-init calls them
# The command "cloud-init status --wait" does not wait for the end when a module has failed, such as the one for locales in
# an image without them.
WAIT_FOR_THE_END = "until [ -e /run/cloud-init/result.json ]; do sleep 1; done"
LEVELS = ("provider", "pool", "label")


@pytest.fixture
def keys(tmp_path) -> dict:
    """Private keys, one for each place where their public halves are listed."""
    paths = {level: tmp_path / f"key-{level}" for level in LEVELS}
    for path in paths.values():
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path)
    return paths


# LV-9, LV-10
@pytest.mark.parametrize("seed", DATA_SOURCES)
def test_cloud_init_takes_everything_from_the_seed(libvirt_site, keys, seed):
    host, tree = libvirt_site.host, libvirt_site.tree()
    public = {level: [path.with_suffix(".pub").read_text().strip()] for level, path in keys.items()}
    provider = libvirt_site.provider(
        {"seed": seed, "userdata": USER_DATA, "authorized-keys": public["label"], "memory": 1024},
        **{"authorized-keys": public["provider"], "host-keys": "inject", "boot-timeout": SECONDS, "launch-timeout": SECONDS})
    provider["cloud-images"][0]["volume"] = host.add_cloud_init_guest()
    provider["pools"][0]["authorized-keys"] = public["pool"]
    libvirt_site.launcher(libvirt_site.config(providers=[provider]))
    tree.fulfil_timeout = SECONDS
    held = tree.use(tree.add_request(["small"]))
    node = tree.node(held[0][0])
    # Each login checks the host key that cloud-init was given.
    assert [key.split()[0] for key in node["host_keys"]] == ["ssh-ed25519"]
    for key in keys.values():
        assert libvirt_site.login(node, "whoami", key=key) == "zuul"
    shown = libvirt_site.login(node, f"{WAIT_FOR_THE_END}; hostname; cat /var/tmp/runs; cloud-id", key=keys["label"])
    assert shown.split("\n") == [f"np{held[0][0]}", "run", DATA_SOURCES[seed]]
