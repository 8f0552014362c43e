"""The command line against a real tree (operations.md 5, 16; coordination.md 17.28, 17.42)."""
import json
import os
import pty
import signal
import subprocess
import time

import pytest

from nodepool_helpers import BIN, fake_provider
from services import wait_for
from zk_raw import Closed, RawClient


def cells(line):
    return [cell.strip() for cell in line.split("|")]


BRIEF = "ID, Provider, Label, Server ID, Public IPv4, IPv6, State, Age, Locked"
COLUMNS = {
    "list": BRIEF,
    "list --detail": BRIEF + ", Pool, Hostname, Private IPv4, AZ, Username, Port, Launcher, Allocated To, Hold Job, "
                             "Comment, User Data, Driver Data",
    "dib-image-list": "ID, Image, Builder, Formats, State, Age",
    "image-list": "Build ID, Upload ID, Provider, Image, Provider Image Name, Provider Image ID, State, Age",
    "image-status": "Image, Paused, Build Request, Build Request Age, Last Build, Build Age, Build Error",
    "request-list": "Request ID, Priority, State, Requestor, Node Types, Nodes, Declined By, Event ID",
    "alien-image-list": "Provider, Name, Image ID",
    "alien-list": "Provider, Hostname, Server ID, IP",
    "job-list": "ID, Name, Hold on Failure",
}


def is_rule(line):
    return set(line) == {"+", "-"}


# operations.16.2; the columns of operations.5.4
@pytest.mark.parametrize("command", COLUMNS)
def test_16_02_an_empty_tree_gives_headers_only(site, command):
    done = site.tool(*command.split(), check=True)
    rule, header, middle, end = done.stdout.splitlines()
    assert ", ".join(cells(header)[1:-1]) == COLUMNS[command]
    assert is_rule(rule) and rule == middle == end
    assert site.tree().zk.exists("/nodepool") is None, "listing writes nothing"


# operations.16.2; the columns of operations.5.4
def test_16_02_nothing_is_known_of_a_provider(site):
    lines = site.tool("info", "fake-cloud", check=True).stdout.splitlines()
    images, nodes = lines[3:7], lines[9:]
    assert [lines[0], lines[1], lines[2], lines[7], lines[8]] == ["ZooKeeper data for provider fake-cloud", "", "Image data:", "", "Nodes:"]
    for table, columns in ((images, ["Image Name", "Build ID", "Upload IDs"]), (nodes, ["ID", "Server ID"])):
        rule, header, middle, end = table
        assert cells(header)[1:-1] == columns and is_rule(rule) and rule == middle == end


# operations.16.5
def test_16_05_a_paused_image(site):
    assert site.tool("image-pause", "debian").returncode == 1, "there is none"
    tree = site.tree()
    assert tree.zk.exists("/nodepool/images/debian") is None
    for build, state in (("a" * 32, "ready"), ("b" * 32, "failed")):
        record = {"state": state, "state_time": time.time(), "builder": "nb01", "builder_id": "x", "formats": "qcow2"}
        tree.zk.create(f"/nodepool/images/debian/builds/{build}", json.dumps(record).encode(), makepath=True)

    def states():
        return {build["state"] for build in json.loads(site.tool("dib-image-list", "--json", check=True).stdout)}

    assert states() == {"ready", "failed"}
    for _ in range(2):
        done = site.tool("image-pause", "debian", check=True)
        assert done.stdout == ""
        assert states() == {"paused"}
    site.tool("image-unpause", "debian", check=True)
    assert states() == {"ready", "failed"}


def test_16_11_positions_of_columns(site):
    tree = site.tree()
    tree.add_node(public_ipv4="203.0.113.7")
    line = site.tool("list").stdout.splitlines()[3]
    assert cells(line)[5] == "203.0.113.7"


# coordination.17.42, operations.16.3
def test_16_03_17_28_42_a_locked_node_is_left_alone(site):
    tree = site.tree()
    node_id = tree.add_node(state="in-use", comment="kept", jenkins_key={"a": 1})
    lock = tree.lock_node(node_id)
    assert cells(site.tool("list").stdout.splitlines()[3])[9] == "locked"
    before = tree.zk.get(f"/nodepool/nodes/{node_id}")[0]
    for command in ("hold", "delete"):
        start = time.monotonic()
        done = site.tool(command, node_id)
        assert done.returncode == 1
        assert 4.5 < time.monotonic() - start < 15
        assert "Timeout trying to acquire lock" in done.stderr
    assert tree.zk.get(f"/nodepool/nodes/{node_id}")[0] == before
    assert len(tree.node_contenders(node_id)) == 1
    lock.release()

    done = site.tool("hold", node_id)
    assert done.returncode == 0
    assert cells(done.stdout.splitlines()[3])[7] == "hold"
    record, old = tree.node(node_id), json.loads(before)
    assert record["state"] == "hold" and record["state_time"] > old["state_time"]
    assert all(record[key] == value for key, value in old.items() if key not in ("state", "state_time"))
    assert tree.node_contenders(node_id) == []


def test_rows_are_chosen(site):
    tree = site.tree()
    ready = tree.add_node()
    held = tree.add_node(state="hold", type=["large", "huge"], provider="elsewhere")
    tree.add_request(["small"])
    tree.add_request(["small", "large"], state="fulfilled")

    def ids(*words):
        return [entry["id"] for entry in json.loads(site.tool(*words, "--json", check=True).stdout)]

    assert ids("list") == [ready, held]
    assert ids("list", "--state", "hold", "--state=used") == [held]
    assert ids("list", "--label", "huge", "--label", "small", "--provider", "fake-cloud") == [ready]
    assert len(ids("request-list", "--label", "large", "--state", "fulfilled")) == 1
    refused = site.tool("info", "fake-cloud", "--state", "ready")
    assert refused.returncode == 2 and refused.stdout == ""
    assert refused.stderr == "nodepool info: there is no option --state; see nodepool info --help\n"


def test_json_has_ages_in_seconds(site):
    tree = site.tree()
    now = time.time()
    tree.add_node(state_time=now - 100)
    tree.add_request(["small"], state_time=now - 50)
    node, = json.loads(site.tool("list", "--json", check=True).stdout)
    request, = json.loads(site.tool("request-list", "--detail", "--json", check=True).stdout)
    assert 100 <= node["age"] < 160 and node["state_since"] == int(now - 100)
    assert 50 <= request["age"] < 110 and request["since"] == int(now - 50)
    chosen = site.tool("request-list", "--output", "columns=id,age", "--json", check=True).stdout
    assert list(json.loads(chosen)[0]) == ["id", "age", "since"], "a column of --detail"


def test_help_is_a_command(site):
    for command in ([], ["list"], ["standalone"]):
        shown = site.tool("help", *command, check=True).stdout
        assert shown == site.tool(*command, "--help", check=True).stdout and "Usage: nodepool" in shown


def test_a_list_is_watched_until_it_is_interrupted(site):
    tree = site.tree()
    first = tree.add_node()
    watcher = site.start_tool("list", "--watch", "--json", "--state", "ready")

    def tables():
        return [json.loads(line) for line in watcher.output().splitlines() if line.startswith("[")]

    wait_for(lambda: len(tables()) == 1, "the first table")
    tree.add_node(state="hold")
    second = tree.add_node()
    wait_for(lambda: [node["id"] for node in tables()[-1]] == [first, second], "the new node is shown")
    tree.zk.delete(f"/nodepool/nodes/{first}", recursive=True)
    wait_for(lambda: [node["id"] for node in tables()[-1]] == [second], "the old node is gone")
    assert len(tables()) == 3, "what is not shown makes no table"
    watcher.stop(20, signal.SIGINT)
    assert watcher.wait() == 0


def test_a_watch_ends_when_nobody_reads_it(site):
    tree = site.tree()
    tree.add_node()
    command = [BIN / "nodepool", "-c", site.config("tool"), "list", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as watcher:
        assert watcher.stdout.readline().startswith(b"+--")
        watcher.stdout.close()
        tree.add_node()
        try:
            assert watcher.wait(15) == 0
        finally:
            watcher.kill()


def on_a_terminal(site, *words, **environment):
    """What the tool writes to a terminal, until it has been silent after a whole table, and its status after Ctrl-C."""
    parent, child = pty.openpty()
    command = [BIN / "nodepool", "-c", site.config("tool"), *words]
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=subprocess.DEVNULL, start_new_session=True,
                          env={**os.environ, "TERM": "xterm", **environment}) as tool:
        os.close(child)
        shown = b""
        try:
            while shown.count(b"-+\r\n") < 3:
                shown += os.read(parent, 65536)
            tool.send_signal(signal.SIGINT)
            status = tool.wait(15)
        finally:
            tool.kill()
    os.close(parent)
    return shown.decode(), status


def test_terminals_get_colors_and_a_clear_screen(site):
    site.tree().add_node()
    shown, _ = on_a_terminal(site, "list")
    assert "\x1b[32mready\x1b[0m" in shown and "\x1b[2J" not in shown
    assert "\x1b" not in on_a_terminal(site, "list", NO_COLOR="1")[0]
    assert "\x1b" not in on_a_terminal(site, "list", "--color", "never")[0]
    assert "\x1b" not in on_a_terminal(site, "list", TERM="dumb")[0]
    shown, status = on_a_terminal(site, "list", "--watch")
    assert shown.startswith("\x1b[H\x1b[2J+--") and status == 0
    assert "\x1b[32mready" in site.tool("list", "--color", "always").stdout
    assert "\x1b" not in site.tool("list").stdout


def test_delete_makes_the_launcher_delete(site):
    site.launcher()
    tree = site.tree()
    node_id = tree.wait_request(tree.add_request(["small"]), "fulfilled")["nodes"][0]
    assert site.tool("delete", node_id).returncode == 0
    tree.wait_node_gone(node_id)


# D-66
def test_what_is_not_there_is_an_error(site):
    for name in ("0000000042", "bogus", "../x", ""):
        done = site.tool("delete", name)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"nodepool: Node id {name} not found\n")
    for command in ("info", "erase", "alien-list", "alien-image-list", "provider-unpause", "image-unpause"):
        done = site.tool(command, "nope")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "nodepool: nope is not configured, and there are no records of it\n"
    done = site.tool("list", "--provider", "fake-clod", check=True)
    assert done.stderr == "nodepool: fake-clod is not configured, and there are no records of it; did you mean fake-cloud?\n"
    assert site.tree().zk.exists("/nodepool/nodes") is None


def test_request_wait_and_release_from_elsewhere(site):
    site.launcher()
    tree = site.tree()
    client = site.start_tool("request", "small", "small", "--wait", "--json", "--tenant", "demo")
    line = wait_for(lambda: [text for text in client.output().splitlines() if text.startswith("{")], "nodes", 60)[0]
    answer = json.loads(line)
    first, second = [node["id"] for node in answer["nodes"]]
    assert tree.request(answer["request"]) is None, "the request is deleted once the nodes are locked"
    for node_id in (first, second):
        record = tree.node(node_id)
        assert record["state"] == "in-use"
        assert record["tenant_name"] == "demo"
        assert len(tree.node_contenders(node_id)) == 1

    assert site.tool("release", first).returncode == 0
    tree.wait_node_gone(first)
    assert client.is_running() and tree.node(second)["state"] == "in-use"
    assert site.tool("release", answer["request"]).returncode == 0
    assert client.wait(20) == 0
    tree.wait_node_gone(second)


def test_request_ends_by_time_and_by_interruption(site):
    site.launcher()
    tree = site.tree()
    done = site.tool("request", "small", "--wait", "--hold-for", "0.2s")
    assert done.returncode == 0, done.stderr
    client = site.start_tool("request", "small", "--wait", "--json")
    wait_for(lambda: '"nodes":' in client.output(), "nodes", 60)
    client.stop(20, signal.SIGINT)
    assert client.wait() == 0
    wait_for(lambda: tree.nodes() == {}, "all nodes are deleted")
    assert tree.children("/nodepool/requests") == []


def test_a_killed_request_leaves_nothing_behind(site):
    site.launcher()
    tree = site.tree()
    client = site.start_tool("request", "small", "--wait", "--json")
    wait_for(lambda: '"nodes":' in client.output(), "nodes", 60)
    client.kill()
    wait_for(lambda: tree.nodes() == {}, "the node is deleted after the session's end", 60)


def test_release_without_names_gives_back_what_is_mine(site):
    site.launcher()
    tree = site.tree()
    request_id = site.tool("request", "small").stdout.strip()
    mine = tree.wait_request(request_id, "fulfilled")["nodes"][0]
    other = tree.add_request(["small"])
    tree.wait_request(other, "fulfilled")
    client = site.start_tool("request", "small", "--wait", "--json")
    wait_for(lambda: '"nodes":' in client.output(), "nodes", 60)
    done = site.tool("release")
    assert done.returncode == 1 and "2 requests match; --yes is missing to release them all" in done.stderr
    done = site.tool("release", "--yes", check=True)
    assert f"Request {request_id} withdrawn\n" in done.stdout and f"Node {mine} released\n" in done.stdout
    assert client.wait(20) == 0
    assert tree.request(request_id) is None and tree.request(other)["state"] == "fulfilled"
    tree.wait_node_gone(mine)


def test_request_without_waiting_stays_until_released(site):
    site.launcher()
    tree = site.tree()
    request_id = site.tool("request", "small").stdout.strip()
    node_id = tree.wait_request(request_id, "fulfilled")["nodes"][0]
    assert tree.zk.exists(f"/nodepool/requests/{request_id}").ephemeralOwner == 0
    assert site.tool("release", request_id).returncode == 0
    assert tree.request(request_id) is None
    tree.wait_node_gone(node_id)


def test_a_declined_request_says_why(site):
    site.launcher(site.config(providers=[fake_provider(**{"max-servers": 1})]))
    done = site.tool("request", "small", "small", "--wait")
    assert done.returncode == 1
    assert "failed: fake-cloud main: 2 instances needed, the pool's max-servers is 1" in done.stderr
    assert site.tree().children("/nodepool/requests") == []


def test_release_refuses_what_belongs_to_others(site):
    site.launcher()
    tree = site.tree()
    request_id = tree.add_request(["small"])
    node_id = tree.wait_request(request_id, "fulfilled")["nodes"][0]
    for name in (request_id, node_id, "nonsense", "0000009999", "200-0000009999"):
        assert site.tool("release", name).returncode == 1
    assert tree.request(request_id)["state"] == "fulfilled"
    assert tree.node(node_id)["state"] == "ready"


def test_kazoo_reads_what_the_tool_writes(site):
    """The request has every key that other clients insist on (coordination.md 4.3)."""
    tree = site.tree()
    request_id = site.tool("request", "a", "b", "--priority", "100", "--provider", "p", "--requestor", "me").stdout.strip()
    assert request_id.startswith("100-")
    record = tree.request(request_id)
    assert record["node_types"] == ["a", "b"]
    assert record["provider"] == "p" and record["requestor"] == "me" and record["state"] == "requested"
    assert isinstance(record["state_time"], float) and len(record["event_id"]) == 32
    assert record["declined_by"] == [] and record["nodes"] == [] and record["reuse"] is True


# operations.16.8
def test_erase_asks_first(site):
    tree = site.tree()
    node = tree.add_node(provider="gone-cloud")
    words = [BIN / "nodepool", "-c", site.config("tool"), "erase", "gone-cloud"]
    with open(os.devnull) as nothing:
        done = subprocess.run(words, stdin=nothing, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith("[N/y] Aborting. No data erased.\n"), done.stderr
    assert tree.node(node)
    # The session lives on while somebody thinks; one that says nothing is over by then.
    asking = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert asking.stdout.readline() == "\n"
        silent = RawClient(int(site.hosts.rsplit(":", 1)[1]), timeout_ms=int(site.settings["zookeeper-timeout"] * 1000))
        with pytest.raises(Closed):
            silent.read_frame()
        shown, _ = asking.communicate("y\n", timeout=60)
    finally:
        asking.kill()
    assert asking.returncode == 0 and "Erasing node data for gone-cloud...\n" in shown
    assert tree.node(node) is None
    tree.add_node(provider="gone-cloud")
    read, write = os.pipe()
    interrupted = subprocess.Popen(words, stdin=read, stdout=subprocess.PIPE, text=True)
    assert interrupted.stdout.readline() == "\n"
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.wait(30) == 130
    assert os.get_blocking(read), "it is left as it was"
    os.close(read)
    os.close(write)
    with open(site.folder / "answer", "w+") as answer:
        answer.write("y\n")
        answer.seek(0)
        done = subprocess.run(words, stdin=answer, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Erasing node data" in done.stdout, "a file may answer"
