"""A client of requests over HTTP (docs/spec/http-requests.md), and launchers that serve it."""
import http.client
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess

import yaml

from nodepool_helpers import BIN
from services import free_port, wait_for
from web_client import web_config

REQUESTS = "/api/v1/requests"
ELECTION = "/nodepool/elections/leases"


def make_token(config: pathlib.Path, name: str, *options) -> tuple[str, dict]:
    """The text of a new token, and its entry for the secure file."""
    printed = subprocess.run([BIN / "nodepool", "-c", config, "token", name, *options], check=True, capture_output=True,
                             text=True, timeout=60).stdout
    text = re.search(rf"^({re.escape(name)}\.\w+)$", printed, re.M)[1]
    return text, yaml.safe_load(printed[printed.index("webapp-tokens:"):])["webapp-tokens"][0]


class Answer:
    def __init__(self, response: http.client.HTTPResponse):
        self.status = response.status
        self.headers = dict(response.getheaders())
        self.text = response.read().decode()

    @property
    def json(self) -> dict:
        return json.loads(self.text)

    @property
    def id(self) -> str:
        return self.headers["Location"].rsplit("/", 1)[1]


class LeaseClient:
    """Asks the first of its web servers that can be reached and is ready."""

    def __init__(self, ports, token: str | None, tls: ssl.SSLContext | None = None):
        self.ports = ports
        self.token = token
        self.tls = tls
        self.source = ""  # the client's own address; any of this host without one

    def ask(self, method: str, path: str, body=None, timeout: float = 70, **headers) -> Answer:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        answer, fault = None, None
        for port in self.ports:
            connection = self._connection(port, timeout)
            try:
                connection.request(method, path, data, headers)
                answer = Answer(connection.getresponse())
                if answer.status != 503:
                    break
            except (OSError, http.client.HTTPException) as error:
                fault = error
            finally:
                connection.close()
        if answer is None:
            raise fault
        return answer

    def _connection(self, port: int, timeout: float) -> http.client.HTTPConnection:
        options = {"timeout": timeout, "source_address": (self.source, 0)}
        if self.tls:
            return http.client.HTTPSConnection("localhost", port, context=self.tls, **options)
        return http.client.HTTPConnection("127.0.0.1", port, **options)

    def make(self, labels=("small",), **settings) -> str:
        """The id of a new request."""
        answer = self.ask("POST", REQUESTS, {"labels": labels if isinstance(labels, dict) else list(labels), **settings})
        assert answer.status == 201, answer.text
        return answer.id

    def show(self, lease: str, wait: int = 0) -> Answer:
        return self.ask("GET", f"{REQUESTS}/{lease}" + (f"?wait={wait}" if wait else ""))

    def held(self, lease: str) -> dict:
        """The request once it is held."""
        answer = self.show(lease, wait=60)
        assert answer.status == 200 and answer.json["state"] == "held", answer.text
        return answer.json

    def renew(self, lease: str) -> Answer:
        return self.ask("POST", f"{REQUESTS}/{lease}/renew")

    def end(self, lease: str) -> Answer:
        return self.ask("DELETE", f"{REQUESTS}/{lease}")

    def list(self) -> list[dict]:
        return self.ask("GET", "/api/v1/leases").json["leases"]


class LeaseSite:
    """Launchers of an Installation with tokens."""

    def __init__(self, site, **settings):
        self.site = site
        self.settings = settings
        self.secure = site.folder / "secure.yaml"
        self.entries = []
        self.launchers = {}  # by port
        self.seconds_between_sweeps = 1
        self.texts = {}

    def token(self, name: str, *options) -> str:
        """A new token, in force for launchers that start later or are told to reload."""
        self.texts[name], entry = make_token(self.site.config("token"), name, *options)
        self.entries.append(entry)
        self.secure.write_text(yaml.safe_dump({"webapp-tokens": self.entries}))
        return self.texts[name]

    def start(self, port: int | None = None, options=()):
        """The port of a launcher that serves."""
        port = port or free_port()
        config = web_config(self.site, port, **self.settings)
        named = config.rename(config.with_name(f"launcher-{port}.yaml"))
        process = self.site.launcher(named, wait=False, name=f"launcher-{port}",
                                     options=("-s", self.secure, *options),
                                     seconds_between_sweeps=self.seconds_between_sweeps)
        self.launchers[port] = process
        tls = self.settings.get("tls")
        client = LeaseClient([port], None, tls and tls.client())

        def is_ready():
            assert process.is_running(), process.output()[-4000:]
            try:
                return client.ask("GET", "/ready").status == 200
            except OSError:
                return False

        wait_for(is_ready, "the launcher is ready", 60)
        return port

    def client(self, name: str) -> LeaseClient:
        return LeaseClient(list(self.launchers), self.texts[name])

    def keeper(self):
        """The port of the launcher that keeps the leases; None while none does."""
        tree = self.site.observer()
        contenders = sorted(tree.children(ELECTION), key=lambda name: name[-10:])
        if not contenders:
            return None
        try:
            identifier = tree.zk.get(f"{ELECTION}/{contenders[0]}")[0].decode()
        except Exception:  # it is gone
            return None
        pid = int(identifier.rsplit("-", 1)[1])
        return next((port for port, process in self.launchers.items() if process.pid == pid), None)

    def kill_keeper(self) -> int:
        """Kills the keeper's launcher; its port."""
        port = wait_for(self.keeper, "there is a keeper", 30)
        process = self.launchers[port]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return port


def owners(tree) -> dict[str, str]:
    """The first contender's data for each node that has one."""
    found = {}
    for node in tree.children("/nodepool/nodes"):
        contenders = sorted(tree.node_contenders(node), key=lambda name: name[-10:])
        if contenders:
            found[node] = tree.zk.get(f"/nodepool/nodes/{node}/lock/{contenders[0]}")[0].decode()
    return found


def assert_consistent(tree):
    """Each node in use is that of one lease, and each lease's nodes are in use for it."""
    leases = {name: tree.record(f"/nodepool/leases/{name}") for name in tree.children("/nodepool/leases")}
    of_leases = [node for lease in leases.values() for node in lease["nodes"]]
    assert len(of_leases) == len(set(of_leases)), "a node was given twice"
    owned = owners(tree)
    for name, lease in leases.items():
        for node in lease["nodes"]:
            assert owned.get(node) == f"lease:{name}"
            assert tree.node(node)["state"] == "in-use"
    in_use = [node for node, record in tree.nodes().items() if record["state"] == "in-use"]
    assert sorted(in_use) == sorted(of_leases), "a node has leaked"
