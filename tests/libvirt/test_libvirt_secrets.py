"""What the programs write about a section of the driver libvirt that has secrets in it."""
import socket

from services import wait_for

from libvirt_host import DRIVERS

SECRETS = {"userdata": "userdata-that-nobody-may-see", "url": "password-of-the-web-server", "uri": "password-of-the-host"}


# LV-45
def test_secrets_of_the_section_are_never_written(libvirt_site):
    """Hosts and images that cannot be reached are in every message about them; a machine is made of the user data."""
    site = libvirt_site
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        provider = site.provider({"userdata": f"#!/bin/sh\n# {SECRETS['userdata']}\n"}, **{"launch-retries": 1})
        provider["hosts"] = [{"name": "local", "uri": provider.pop("uri")},
                             {"name": "away", "uri": f"qemu+ssh://user:{SECRETS['uri']}@127.0.0.1:{port}/system"},
                             {"name": "lost", "uri": f"qemu+libssh2://user:{SECRETS['uri']}@127.0.0.1:{port}/system"}]
        provider["cloud-images"].append({"name": "fetched", "username": "zuul", "checksum": "sha256:" + "0" * 64,
                                         "url": f"http://user:{SECRETS['url']}@127.0.0.1:{port}/image.qcow2"})
        provider["pools"][0]["labels"].append({"name": "large", "cloud-image": "fetched"})
        config = site.config(labels=[{"name": "small"}, {"name": "large"}], providers=[provider])
        launcher = site.launcher(config)
        tree = site.tree()
        request = tree.add_request(["small"])
        wait_for(lambda: "Host away cannot be used" in launcher.output() and "Host lost cannot be used" in launcher.output(),
                 "the hosts cannot be reached", 90)
        wait_for(lambda: "cannot be fetched" in launcher.output() or "fetching" in launcher.output(), "nor can the image", 90)
        wait_for(lambda: "waiting for an address" in launcher.output(), "the machine is started", 90)
        name, = site.host.domains()
        site.host.virsh("destroy", name)
        tree.wait_request(request, "failed", 90)
        shown = [launcher.output()]
        for words in (["config-validate"], ["info", "here"], ["list", "--detail"], ["alien-list"]):
            done = site.tool("--drivers-dir", DRIVERS, *words, config=config, timeout=120)
            shown.append(done.stdout + done.stderr)
        # A mistake is quoted with its line.
        provider["hosts"][1]["uir"] = provider["hosts"][1].pop("uri")
        mistaken = site.config("mistaken", labels=[{"name": "small"}, {"name": "large"}], providers=[provider])
        done = site.tool("--drivers-dir", DRIVERS, "config-validate", config=mistaken)
        assert done.returncode == 1
        shown.append(done.stdout + done.stderr)
    for secret in SECRETS.values():
        assert not any(secret in text for text in shown), secret
