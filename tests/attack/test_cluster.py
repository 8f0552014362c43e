"""A Kubernetes API server whose watches bring more than a launcher may take."""
import contextlib
import http.server
import json
import threading

import pytest
import yaml

from nodepool_helpers import fake_provider
from services import LOOPBACK, wait_for

LABELS = [{"name": "empty"}, {"name": "other"}]


def objects(padding: int):
    """New objects without end."""
    number = 0
    while True:
        lines = []
        while sum(map(len, lines)) < 100_000:
            number += 1
            metadata = {"name": f"n{number}", "resourceVersion": str(number), "annotations": {"a": "x" * padding}}
            lines.append(json.dumps({"type": "ADDED", "object": {"metadata": metadata}}) + "\n")
        yield "".join(lines).encode()


def one_line():
    while True:
        yield b"x" * 1_000_000


class Cluster(http.server.ThreadingHTTPServer):
    """It makes everything that it is asked for, has nothing in its lists, and sends `flood()` to each watch."""

    daemon_threads = True

    def __init__(self, flood):
        super().__init__((LOOPBACK, 0), Handler)
        self.flood = flood
        self.url = f"http://{LOOPBACK}:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status: int, content: dict):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(201, body)

    def do_DELETE(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(404, {"reason": "NotFound"})

    def do_GET(self):
        if "watch=true" in self.path:
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            with contextlib.suppress(OSError):
                for piece in self.server.flood():
                    self.wfile.write(piece)
        elif "/secrets/" in self.path:
            self.answer(200, {"data": {"token": "dG9rZW4=", "ca.crt": "QVVUSA=="}})
        else:
            self.answer(200, {"metadata": {"resourceVersion": "1"}, "items": []})

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("flood, words", [
    (lambda: objects(0), "there is no end of new objects"), (lambda: objects(3_000_000), "there is no end of new objects"),
    (one_line, "a line of the answer is longer than"),
], ids=["many", "large", "one-line"])
# K8S-100
def test_watches_without_end(site, measured, monkeypatch, tmp_path, request, flood, words):
    cluster = Cluster(flood)
    request.addfinalizer(cluster.shutdown)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    content = {"apiVersion": "v1", "kind": "Config", "current-context": "ci",
               "clusters": [{"name": "c", "cluster": {"server": cluster.url}}],
               "users": [{"name": "u", "user": {"token": "t"}}],
               "contexts": [{"name": "ci", "context": {"cluster": "c", "user": "u"}}]}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(content))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    provider = {"name": "cluster", "driver": "kubernetes", "context": "ci",
                "pools": [{"name": "main", "labels": [{"name": "empty", "type": "namespace"}]}]}
    launcher = site.start(labels=LABELS, providers=[fake_provider(labels=["other"]), provider])
    with measured(f"watches without end: {request.node.callspec.id}", launcher):
        tree = site.observer()
        tree.use(tree.add_request(["empty"]))
        tree.use(tree.add_request(["other"]))
        wait_for(lambda: words in launcher.process.output(), "the watch is refused", 120)
        tree.use(tree.add_request(["empty"]))
