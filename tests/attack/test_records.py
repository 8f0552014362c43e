"""Records that others than Nodepool have written."""
import json

import pytest

from alike import alike
from bounds import scaled
from services import wait_for
from web_client import get

CONTROL = "\x1b[2J\x1b[31mOWNED\x1b]0;title\x07\r\x00\x7f\x9b\u202e\u2066"
RAW = [CONTROL[0], "\r", "\x00", "\x7f", "\x9b", "\u202e", "\u2066"]


@pytest.fixture
def launcher(site):
    return site.start()


def serves(site, launcher) -> bool:
    """A request is fulfilled, and all lists are what they should be."""
    tree = site.observer()
    tree.use(tree.add_request(["small"]))
    json.loads(get(launcher.web_port, "/api/v1/nodes")[2])
    json.loads(get(launcher.web_port, "/api/v1/requests")[2])
    return get(launcher.web_port, "/node-list")[0] == 200


def test_texts_for_terminals(site, launcher, measured):
    tree = site.observer()
    with measured("control characters in records", launcher):
        tree.add_request([CONTROL], requestor=CONTROL)
        tree.add_node(state="hold", provider=CONTROL, comment=CONTROL, hostname=CONTROL, type=[CONTROL])
        wait_for(lambda: "OWNED" in launcher.process.output(), "the log names the label")
        wait_for(lambda: "OWNED" in get(launcher.web_port, "/node-list")[2], "the node is listed")
        assert serves(site, launcher)
        for shown in (launcher.process.log.read_text(errors="surrogateescape"), get(launcher.web_port, "/node-list")[2]):
            assert not [character for character in RAW if character in shown]


def test_long_texts(site, launcher, measured):
    tree = site.observer()
    with measured("labels of 800 kB", launcher):
        before = launcher.process.log.stat().st_size
        requests = [tree.add_request(["l" * 800_000]) for _ in range(scaled(10, 50))]
        for request in requests:
            tree.wait_request(request, "failed")
        assert serves(site, launcher)
        assert launcher.process.log.stat().st_size - before < 2_000_000 * scaled(1, 5)


def test_values(site, launcher, measured):
    """In every field of a request and of a node, one after the other."""
    tree = site.observer()
    values = [float("nan"), 1e308, -1e308, 10**30, -1, "../../../etc/passwd", "x" * 5000, None, [], {}, True]
    request = {"node_types": ["small"], "requestor": "r", "state": "requested", "state_time": 1.0, "priority": 1,
               "declined_by": [], "nodes": [], "relative_priority": 0, "tenant_name": "t", "provider": None}
    node = {"state": "hold", "state_time": 1.0, "provider": "elsewhere", "pool": "main", "type": ["small"], "resources": {"cores": 1},
            "hold_expiration": 1, "created_time": 1.0, "allocated_to": None, "hostname": "h", "connection_port": 22, "attributes": {}}
    with measured("records with odd values", launcher):
        for value in values:
            requests = [tree.add_raw_request(json.dumps({**request, field: value}).encode()) for field in request]
            for field in node:
                tree.add_raw_node(json.dumps({**node, field: value}).encode())
            assert serves(site, launcher), value
            for request_id in requests:
                tree.zk.delete(f"/nodepool/requests/{request_id}", recursive=True)


def test_what_is_no_record(site, launcher, measured):
    tree = site.observer()
    with measured("records that are none", launcher):
        for data in (b"", b"{", b"null", b"[" * 900_000, b"\xff" * 1000, b'"' + b"x" * 900_000 + b'"', b"{}",
                     b'{"a":' * 100_000, b"\x00" * 900_000):
            tree.add_raw_request(data)
            tree.add_raw_node(data)
        assert serves(site, launcher)


def test_texts_alike(site, launcher, measured):
    """In fields that thousands of nodes have in common."""
    tree = site.observer()
    fields = ["az", "cloud", "comment", "connection_type", "hold_job", "image_id", "python_path", "region", "shell_type",
              "tenant_name", "requestor", "username"]
    texts = alike(scaled(20_000, 40_000))
    with measured("texts made to hash alike", launcher):
        for first in range(0, len(texts), len(fields)):
            tree.add_node(state="hold", provider="elsewhere", **dict(zip(fields, texts[first:])))
        assert serves(site, launcher)


def create_all(tree, folder: str, names: list[str], data: bytes):
    tree.zk.ensure_path(folder)
    for first in range(0, len(names), 500):
        transaction = tree.zk.transaction()
        for name in names[first:first + 500]:
            transaction.create(f"{folder}/{name}", data)
        last = transaction.commit()[-1]
        assert not isinstance(last, Exception), last


def test_names_alike(site, launcher, measured):
    tree = site.observer()
    names = alike(scaled(20_000, 40_000))
    with measured("names made to hash alike", launcher):
        create_all(tree, "/nodepool/nodes", names, b"{}")
        assert serves(site, launcher)


BUILD = {"state": "ready", "state_time": 1, "builder": "b", "builder_id": "x", "formats": "raw"}
UPLOAD = {"state": "ready", "state_time": 1, "external_name": "x", "external_id": "y"}
POOL = {"id": "p", "supported_labels": ["small"], "priority": 100, "provider_name": "p", "hostname": "h"}
RULE = {"name": "job", "hold_on_failure": 1}
CONTENDER = "{:032x}__lock__{:010}"
MANY = {
    "contenders for a node": ("nodes/0000000000/lock", CONTENDER, None),
    "contenders for a request": ("requests-lock/900-0000000000", CONTENDER, None),
    "locks of requests": ("requests-lock", "200-{:010}", None),
    "components": ("components/pool", "c{:010}", POOL),
    "builds of an image": ("images/i/builds", "{:032x}", BUILD),
    "uploads of a build": ("images/i/builds/" + 32 * "0" + "/providers/fake-cloud/images", "{:010}", UPLOAD),
    "images": ("images", "i{}", None),
    "rules about jobs": ("jobs", "{:010}", RULE),
    "notes to hold nodes": ("jobs/holds", "{:010}", {"hold_job": "job", "comment": "c"}),
    "paused providers": ("paused-providers", "p{}", {"reason": "r"}),
    "open breakers": ("breakers", "b{}", {"kind": "boot", "failures": 3, "attempts": 3}),
    "leases": ("leases", "{:032x}", {"state": "waiting", "client": "c", "labels": ["small"], "lease_seconds": 300}),
}


@pytest.mark.parametrize("kind", MANY)
def test_many_of_a_kind(kind, site, launcher, measured):
    """The work for each does not grow with their number."""
    folder, name, record = MANY[kind]
    tree = site.observer()
    tree.add_node(state="hold", provider="elsewhere")
    data = b"" if record is None else json.dumps(record).encode()
    with measured(f"many {kind}", launcher):
        create_all(tree, f"/nodepool/{folder}", [name.format(i, i) for i in range(scaled(10_000, 20_000))], data)
        assert serves(site, launcher)


def test_requests_of_many_kinds(site, measured):
    """Each of which is decided about for itself."""
    launcher = site.start(tenant_resource_limits=[{"tenant-name": "full", "max-servers": 0}])
    tree = site.observer()
    with measured("requests of many kinds", launcher):
        record = {"node_types": ["small"], "requestor": "r", "state": "requested", "state_time": 1.0, "nodes": [],
                  "reuse": True, "relative_priority": 0, "tenant_name": "full"}
        records = [json.dumps({**record, "declined_by": [f"nobody-{i}"]}).encode() for i in range(scaled(10_000, 20_000))]
        tree.zk.ensure_path("/nodepool/requests")
        for created in [tree.zk.create_async(f"/nodepool/requests/200-{i:010}", record) for i, record in enumerate(records)]:
            created.get()
        assert serves(site, launcher)
        assert launcher.process.log.stat().st_size < 2_000_000
