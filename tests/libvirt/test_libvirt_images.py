"""Images that the driver fetches to a real libvirt."""
import hashlib
import http.server
import pathlib
import threading

import pytest
from services import wait_for


class ImageServer(http.server.ThreadingHTTPServer):
    """Serves one file, and counts how often it was asked for."""

    def __init__(self, image: pathlib.Path):
        super().__init__(("127.0.0.1", 0), Handler)
        self.image = image
        self.requests = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/guest.qcow2"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        self.send_response(200)
        self.send_header("Content-Length", str(self.server.image.stat().st_size))
        self.end_headers()
        with self.server.image.open("rb") as image:
            while piece := image.read(1 << 20):
                self.wfile.write(piece)

    def log_message(self, *_):
        pass


@pytest.fixture
def image_server(libvirt_host):
    server = ImageServer(pathlib.Path(libvirt_host.settings["guest"] + ".qcow2"))
    yield server
    server.shutdown()
    server.server_close()


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
