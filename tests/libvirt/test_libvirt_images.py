"""Images that the driver fetches to a real libvirt."""
import hashlib
import pathlib

from services import wait_for


def fetched(site, server, checksum: str):
    """A configuration whose image is the server's."""
    provider = site.provider()
    provider["cloud-images"] = [{"name": "tiny", "url": server.url, "checksum": checksum, "username": "zuul"}]
    return site.config(providers=[provider])


# LV-22
def test_an_image_is_fetched_once_and_machines_boot_from_it(libvirt_site, image_server):
    tree = libvirt_site.tree()
    digest = hashlib.sha256(image_server.image.read_bytes()).hexdigest()
    libvirt_site.launcher(fetched(libvirt_site, image_server, f"sha256:{digest}"))
    held = tree.use(tree.add_request(["small", "small"]))
    assert libvirt_site.login(tree.node(held[0][0]), "whoami") == "zuul"
    assert image_server.requests == 1
    name = f"np.here.cloud.{digest[:16]}.qcow2"
    volumes = libvirt_site.host.volumes()
    assert name in volumes and f"{name}.unfinished" not in volumes
    path = pathlib.Path(libvirt_site.host.virsh("vol-path", name, "nodepool").strip())
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest, "machines have not changed it"


# LV-22
def test_an_image_with_another_checksum_is_refused_and_leaves_nothing(libvirt_site, image_server):
    launcher = libvirt_site.launcher(fetched(libvirt_site, image_server, "sha512:" + "0" * 128))
    wait_for(lambda: "but checksum says" in launcher.output(), "the image is refused", 120)
    wait_for(lambda: libvirt_site.host.volumes() == [], "nothing is left", 30)
