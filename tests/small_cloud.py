"""An OpenStack with one flavor and one image, as far as a launcher reads it, that can be broken and mended.

It launches nothing unless `launches` is set; then each server is there at once.
"""
import http.server
import json
import pathlib
import ssl
import subprocess
import threading
import time
import uuid

from services import LOOPBACK, free_port, make_certificates, wait_for

PASSWORD = "correct-horse"


def provider(name="cloud", labels=("small", "large", "other")):
    """A provider of this cloud."""
    return {"name": name, "driver": "openstack", "cloud": "vendor",
            "cloud-images": [{"name": "debian", "image-name": "debian"}],
            "pools": [{"name": "main", "labels": [
                {"name": label, "cloud-image": "debian", "flavor-name": "m1.small"} for label in labels]}]}


def make_certificate(folder: pathlib.Path, name: str, host: str, days: int = 30) -> pathlib.Path:
    """A certificate with key for `host`, signed by the authority in `folder`; with 0 `days` it has expired."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    (folder / f"{name}.ext").write_text(f"subjectAltName = {host}\n")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=cloud")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
            f"{name}.crt", "-days", str(days), "-extfile", f"{name}.ext")
    made = time.time()
    if not days:
        wait_for(lambda: time.time() >= made + 1, "the second in which it ends is over")
    path = folder / f"{name}.pem"
    path.write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text())
    return path


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        """Clients that hang up, as during a handshake that they do not like, are no news."""


class SmallCloud:
    """All services below one address. It listens from `start` to `stop`, each time on the same port."""

    def __init__(self, folder: pathlib.Path, scheme: str = "http"):
        self.folder = folder
        self.port = free_port()
        self.url = f"{scheme}://{LOOPBACK}:{self.port}"
        self.password = PASSWORD  # the one that it takes
        self.misbehave = None     # called with each request in place of an answer
        self.misbehave_at = {}    # the same by path
        self.launches = False
        self.servers = {}         # by id
        self.server = None
        folder.mkdir(parents=True)
        if scheme == "https":
            make_certificates(folder)

    def clouds_yaml(self) -> pathlib.Path:
        """The file that a provider needs for this cloud, which it calls `vendor`."""
        auth = {"auth_url": f"{self.url}/identity/v3", "username": "ci", "password": PASSWORD, "project_name": "ci",
                "user_domain_name": "Default", "project_domain_name": "Default"}
        path = self.folder / "clouds.yaml"
        path.write_text(json.dumps({"clouds": {"vendor": {"auth": auth, "cacert": str(self.folder / "ca.pem")
                                                          if self.url.startswith("https") else None}}}))
        return path

    def start(self, certificate: pathlib.Path | None = None):
        self.server = Server((LOOPBACK, self.port), self._handler())
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # Each thread shakes hands for itself.
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def _handler(self):
        cloud = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer(lambda _: (200, cloud.read(self.path.split("?")[0])))

            def do_POST(self):
                is_login = self.path.endswith("/auth/tokens")
                self.answer(cloud.log_in if is_login else cloud.create)

            def do_DELETE(self):
                cloud_id = self.path.rsplit("/", 1)[1]
                self.answer(lambda _: (204, None) if cloud.servers.pop(cloud_id, None) else (404, {"message": "no server"}))

            def answer(self, reply):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                misbehave = cloud.misbehave or cloud.misbehave_at.get(self.path.split("?")[0])
                if misbehave:
                    misbehave(self)
                    return
                status, value = reply(body)
                self.send(status, b"" if value is None else json.dumps(value).encode())

            def send(self, status: int, body: bytes, length: int | None = None):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("X-Subject-Token", "a-token")
                self.send_header("Content-Length", str(len(body) if length is None else length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        return Handler

    def log_in(self, body: bytes):
        given = json.loads(body)["auth"]["identity"]["password"]["user"]["password"]
        if given != self.password:
            return 401, {"error": {"code": 401, "title": "Unauthorized",
                                   "message": "The request you have made requires authentication."}}
        services = {"compute": "/compute/v2.1", "network": "/network", "image": "/image"}
        catalog = [{"type": name, "name": name, "endpoints": [
            {"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": self.url + path}]}
            for name, path in services.items()]
        return 201, {"token": {"expires_at": "2099-01-01T00:00:00.000000Z", "project": {"id": "p1", "name": "ci"},
                               "catalog": catalog}}

    def create(self, body: bytes):
        if not self.launches:
            return 403, {"message": "this cloud launches nothing"}
        wanted = json.loads(body)["server"]
        server = {"id": str(uuid.uuid4()), "name": wanted["name"], "status": "ACTIVE", "metadata": wanted["metadata"],
                  "flavor": {"vcpus": 1, "ram": 2048}, "OS-EXT-AZ:availability_zone": "nova", "hostId": "h",
                  "addresses": {"net": [{"version": 4, "addr": LOOPBACK, "OS-EXT-IPS:type": "fixed",
                                         "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01"}]}}
        self.servers[server["id"]] = server
        return 202, {"server": server}

    def read(self, path: str):
        """The answer to a GET: of most lists, that there is nothing."""
        version = {"status": "CURRENT", "links": [{"rel": "self", "href": f"{self.url}{path}"}]}
        server = self.servers.get(path.rsplit("/", 1)[1])
        if server:
            return {"server": server}
        known = {
            "/compute/v2.1/servers/detail": {"servers": list(self.servers.values())},
            "/compute/v2.1/": {"version": {**version, "id": "v2.1", "version": "2.90", "min_version": "2.1"}},
            "/image": {"versions": [{**version, "id": "v2.9", "links": [
                {"rel": "self", "href": f"{self.url}/image/v2/"}]}]},
            "/compute/v2.1/flavors/detail": {"flavors": [{"id": "1", "name": "m1.small", "vcpus": 1, "ram": 2048}]},
            "/compute/v2.1/limits": {"limits": {"absolute": {"maxTotalInstances": 10, "maxTotalCores": 40,
                                                             "maxTotalRAMSize": 81920}}},
            "/image/v2/images": {"images": [{"id": "i1", "name": "debian", "status": "active"}]},
        }
        return known.get(path, {path.removesuffix("/detail").rsplit("/", 1)[1]: []})
