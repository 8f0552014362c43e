"""docs/operator/screens.md shows what is really printed, on terminals of 80 x 24 and of 160 x 50; the status on one of 80 x 50.

NODEPOOL_WRITE_SCREENS=1 writes the page anew.
"""
import http.server
import json
import os
import re
import textwrap
import threading
import time

import pytest

from images import image
from nodepool_helpers import BIN, ROOT, fake_provider
from terminal import Terminal

PAGE = ROOT / "docs/operator/screens.md"
SIZES = [(80, 24), (160, 50)]
SIZES_OF = {"status": [(80, 50), (160, 50)]}  # each problem has its remedy
COMMANDS = ["status", "list", "request-list", "image-status", "provider-list", "label-list"]
AGE = re.compile(r"(-?\d{2,}:\d\d:\d\d):\d\d")
FAULT = "logging in at https://identity.example.org/v3: 401 Unauthorized; tried again in 30 s"
WAITS = "uses 10 of 10 instances; raise its max-servers, or wait for nodes"


def uuid(number: int) -> str:
    return f"{0x4d1f0c2a + number * 0x1234567:08x}-7b1e-4a0c-9d3f-{number:012x}"


def since(days=0, hours=0, minutes=0) -> float:
    """A time so long ago, in the first seconds of its minute."""
    return time.time() - ((days * 24 + hours) * 60 + minutes) * 60 - 5


class ExampleSite:
    """The records of a launcher, a builder and two providers of which one cannot be used."""

    def __init__(self, site, port: int):
        self.tree = site.tree()
        self.config = site.config(
            webapp={"listen_address": "127.0.0.1", "port": port},
            labels=[{"name": "debian-small", "min-ready": 2}, {"name": "debian-large"}, {"name": "arm-board"}],
            diskimages=[image("debian-12")],
            providers=[self.cloud("cloud-a"), self.cloud("cloud-b")])
        self.add_components()
        self.add_nodes()
        self.waiting = self.add_requests()
        self.add_images()

    @staticmethod
    def cloud(name):
        provider = fake_provider(name, ["debian-small", "debian-large"])
        for label in provider["pools"][0]["labels"]:
            del label["cloud-image"]
            label["diskimage"] = "debian-12"
        return {**provider, "diskimages": [{"name": "debian-12"}]}

    def add(self, path, **record):
        self.tree.zk.create(f"/nodepool/{path}", json.dumps(record).encode(), makepath=True)

    def add_components(self):
        launcher = {"state": "running", "version": "0.1.0"}
        self.add("components/launcher/localhost0000000000", hostname="localhost", **launcher, providers={
            "cloud-a": {"state": "up", "since": since(days=3), "limit": {"instances": 5, "cores": 40}},
            "cloud-b": {"state": "failing", "since": since(hours=2, minutes=10), "fault": FAULT}})
        self.add("components/builder/nb01.example.org0000000000", hostname="nb01.example.org", **launcher)
        for number, provider in enumerate(["cloud-a", "cloud-b"]):
            self.add(f"components/pool/localhost{number:010}", hostname="localhost", state="running", name="main",
                     id=self.launcher_id(provider), provider_name=provider, locks_slots=True, paused=provider == "cloud-a",
                     supported_labels=["debian-small", "debian-large"])

    @staticmethod
    def launcher_id(provider):
        return f"localhost-PoolWorker.{provider}-main-{uuid(77).replace('-', '')}"

    def add_nodes(self):
        nodes = [("ready", "debian-small", 12), ("ready", "debian-small", 47), ("in-use", "debian-large", 5),
                 ("in-use", "debian-small", 33), ("deleting", "debian-large", 1)]
        for number, (state, label, minutes) in enumerate(nodes):
            node = self.tree.add_node(
                state=state, state_time=since(minutes=minutes), type=[label], provider="cloud-a", external_id=uuid(number),
                public_ipv4=f"203.0.113.{17 + number}", launcher=self.launcher_id("cloud-a"),
                resources={"instances": 1, "cores": 8 if label == "debian-large" else 2})
            if state == "in-use":
                self.tree.zk.create(f"/nodepool/nodes/{node}/lock/{uuid(number)}__lock__0000000000", b"", makepath=True)

    def add_requests(self) -> str:
        request = self.tree.add_request
        waiting = request(["debian-large", "debian-large"], requestor="zuul", state_time=since(minutes=17),
                          event_id=uuid(1).replace("-", ""))
        request(["debian-small"], requestor="NodePool:min-ready", priority="900", state_time=since(minutes=2))
        request(["debian-small"], requestor="zuul", state="fulfilled", state_time=since(minutes=1),
                event_id=uuid(2).replace("-", ""), nodes=["0000000000"])
        request(["debian-tiny"], requestor="zuul", state="failed", state_time=since(minutes=3),
                event_id=uuid(3).replace("-", ""), declined_by=[self.launcher_id("cloud-a"), self.launcher_id("cloud-b")])
        return waiting

    def add_images(self):
        build = {"builder": "nb01.example.org", "builder_id": uuid(4), "formats": "raw"}
        builds = "images/debian-12/builds"
        self.add(f"{builds}/{uuid(5).replace('-', '')}", state="ready", state_time=since(days=1, hours=3), **build)
        self.add(f"{builds}/{uuid(6).replace('-', '')}", state="failed", state_time=since(hours=3, minutes=20), **build)
        self.add(f"{builds}/{uuid(5).replace('-', '')}/providers/cloud-a/images/0000000001", state="ready",
                 state_time=since(days=1, hours=2), external_name="debian-12-1", external_id=uuid(8))
        self.add("images/rocky-9/pause")


class WebServer(http.server.ThreadingHTTPServer):
    """Answers as a launcher does that is asked why requests wait."""

    def __enter__(self):
        threading.Thread(target=self.serve_forever).start()
        return super().__enter__()

    def __exit__(self, *args):
        self.shutdown()
        super().__exit__(*args)


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        waits = [{"provider": "cloud-a", "pool": "main", "reason": "capacity", "text": WAITS}]
        body = json.dumps({"requests": [{"id": self.server.waiting, "waits": waits}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def example(site):
    with WebServer(("localhost", 0), Answer) as server:
        example = ExampleSite(site, server.server_port)
        server.waiting = example.waiting
        yield example


def section(command: str) -> str:
    return f"## nodepool {command}\n"


def block(size, lines) -> str:
    """A screen in the page; seconds of ages are always the same."""
    shown = AGE.sub(r"\1:05", "\n".join(lines))
    return f"{size[0]} x {size[1]}:\n\n{textwrap.indent(shown, '    ')}\n"


def test_the_page_shows_what_is_printed(example):
    with Terminal() as terminal:
        sections = []
        for command in COMMANDS:
            text = section(command)
            for size in SIZES_OF.get(command, SIZES):
                lines = terminal.show([BIN / "nodepool", "-c", example.config, *command.split()], *size)
                assert len(lines) < size[1], "it is one screen\n" + "\n".join(lines)
                text += "\n" + block(size, lines)
            sections.append(text)
    page = PAGE.read_text()
    introduction = page[:page.index(section(COMMANDS[0]))]
    current = introduction + "\n".join(sections)
    if os.environ.get("NODEPOOL_WRITE_SCREENS"):
        PAGE.write_text(current)
    assert PAGE.read_text() == current, "NODEPOOL_WRITE_SCREENS=1 writes it anew"


def test_what_is_piped_or_wide_has_every_column(example, site):
    piped = site.tool("list", config=example.config, check=True).stdout
    with Terminal() as terminal:
        wide = terminal.show([BIN / "nodepool", "-c", example.config, "list", "--wide"], 200, 24)
        chosen = terminal.show([BIN / "nodepool", "-c", example.config, "list", "--output", "columns=Server ID,id"], 80, 24)
    assert [AGE.sub("AGE", line) for line in wide] == [AGE.sub("AGE", line) for line in piped.splitlines()]
    assert chosen[1].split() == ["|", "Server", "ID", "|", "ID", "|"] and uuid(0) in chosen[3]


def test_detail_is_a_block_for_each_node_where_a_table_does_not_fit(example):
    with Terminal() as terminal:
        shown = terminal.show([BIN / "nodepool", "-c", example.config, "list", "--detail"], 80, 100)
    fields = [line.split(":", 1)[0] for line in shown]
    assert fields[:7] == ["ID", "Provider", "Label", "Server ID", "Public IPv4", "State", "Age"]
    assert fields.count("ID") == 5 and shown[3].split() == ["Server", "ID:", uuid(0)]


def test_columns_are_chosen_for_scripts_too(example, site):
    done = site.tool("list", "--output", "columns=state,ID", "--json", config=example.config, check=True)
    assert json.loads(done.stdout)[0] == {"state": "ready", "id": "0000000000"}
    for wrong, complaint in (("columns=no", 'there is no column "no"; there is id, provider,'),
                             ("json", "it has the form columns=A,B"), ("columns=", "it names no column")):
        refused = site.tool("list", "--output", wrong, config=example.config)
        assert refused.returncode == 2 and complaint in refused.stderr, refused.stderr
