"""A command on a machine that is requested for it, as a CI system runs a job."""
import contextlib
import json
import pathlib
import subprocess

from services import BIN, die_with_parent

LABEL = "debian"


def login_words(node: dict, folder: pathlib.Path, *command) -> list[str]:
    """ssh to a node of `nodepool request --json`, which has to have the host keys of its record."""
    place = node["address"] if node["connection_port"] == 22 else f"[{node['address']}]:{node['connection_port']}"
    known_hosts = folder / "state" / f"known_hosts-{node['id']}"
    known_hosts.write_text("".join(f"{place} {key}\n" for key in node["host_keys"]))
    return ["ssh", "-F", "none", "-i", str(folder / "key"), "-p", str(node["connection_port"]), "-o", "BatchMode=yes",
            "-o", "StrictHostKeyChecking=yes", "-o", f"UserKnownHostsFile={known_hosts}", "-o", "LogLevel=ERROR",
            "-o", "ConnectTimeout=60", f"{node['username']}@{node['address']}", *command]


@contextlib.contextmanager
def requested(tool, labels):
    """The answer of `nodepool request --wait --json`, whose nodes are given back at the end. `tool` makes a command line of
    the words for `nodepool`. RuntimeError: the request failed."""
    client = subprocess.Popen(tool("request", *labels, "--wait", "--json"), stdout=subprocess.PIPE, text=True,
                              preexec_fn=die_with_parent)
    try:
        line = client.stdout.readline()
        if not line:
            raise RuntimeError("nodepool request got no nodes")
        answer = json.loads(line)
        yield answer
        subprocess.run(tool("release", *(node["id"] for node in answer["nodes"])), check=True, timeout=60)
        if client.wait(30) != 0:
            raise RuntimeError("nodepool request ended with an error")
    finally:
        client.terminate()  # which gives the nodes back, too
        client.wait(30)


def run_job(folder: pathlib.Path, command: str) -> int:
    """The command's status. RuntimeError: no ./run --real is going on in the folder, or it gave no machine."""
    config = folder / "nodepool.yaml"
    if not (folder / "libvirt/host.json").exists():
        raise RuntimeError("No real machines are running; start them with ./run --real")
    with requested(lambda *words: [str(BIN / "nodepool"), "-c", str(config), *words], [LABEL]) as answer:
        node, = answer["nodes"]
        return subprocess.run(login_words(node, folder, command)).returncode
