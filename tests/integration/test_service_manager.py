"""What systemd is told, on its own kind of sockets."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from nodepool_helpers import BIN, fake_provider
from services import Process, wait_for

DRIVERS = BIN.parent / "test-drivers"
UNITS = pathlib.Path(__file__).resolve().parents[2] / "packaging/systemd"


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, address: str):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        self.env = {"NOTIFY_SOCKET": address}
        self.told = []  # (when, lines)

    def read(self):
        while True:
            try:
                self.told.append((time.monotonic(), self.socket.recv(1 << 16, socket.MSG_DONTWAIT).decode().splitlines()))
            except BlockingIOError:
                return self.told

    def wait(self, line: str, after: int = 0) -> int:
        """Until a message after the first `after` ones has a line that begins so; how many came up to it."""
        def find():
            for number, (_, lines) in enumerate(self.read()):
                if number >= after and any(found.startswith(line) for found in lines):
                    return number + 1
        return wait_for(find, f"systemd is told {line}")


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    address = str(tmp_path / "notify") if request.param == "path" else f"@nodepool-{os.getpid()}-{tmp_path.name}"
    manager = Manager(address)
    yield manager
    manager.socket.close()


def start(site, manager, program="nodepool-launcher", options=(), **settings) -> Process:
    (site.folder / "images").mkdir(exist_ok=True)
    settings = {"images-dir": str(site.folder / "images"), "build-log-dir": str(site.folder / "logs"), **settings}
    process = Process([BIN / program, "-f", "-c", site.config(**settings), *options], site.folder / "daemon.log",
                      env=manager.env)
    site.started.append(process)
    return process


@pytest.mark.parametrize("program", ["nodepool-launcher", "nodepool-builder"])
def test_start_reload_and_stop_are_told(site, manager, program):
    site.observer()
    process = start(site, manager, program)
    manager.wait("STATUS=Waiting for ZooKeeper at ")
    seen = manager.wait("READY=1")
    assert manager.told[seen - 1][1] == ["READY=1", "STATUS=Serving; providers: 1"]
    kind = "pool" if program == "nodepool-launcher" else "builder"
    assert site.observer().components(kind), "it serves when it says so"

    process.send(signal.SIGHUP)
    seen = manager.wait("RELOADING=1", seen)
    microseconds = int(manager.told[seen - 1][1][1].removeprefix("MONOTONIC_USEC="))
    assert abs(time.monotonic() - microseconds / 1e6) < 30
    seen = manager.wait("READY=1", seen)

    (site.folder / "nodepool.yaml").write_text("labels: nonsense\n")
    process.send(signal.SIGHUP)
    seen = manager.wait("READY=1", manager.wait("RELOADING=1", seen))
    assert "the changed one cannot be used: " in manager.told[seen - 1][1][1], "a bad file ends the reload, too"

    process.send(signal.SIGINT)
    manager.wait("STOPPING=1", seen)
    assert process.wait(60) == 0
    assert not any("WATCHDOG=1" in lines for _, lines in manager.read()), "nobody asked for it"


def test_ready_comes_with_zookeeper(private_site, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    private_site.zookeeper.process.pause()
    process = start(private_site, manager)
    manager.wait("STATUS=Waiting for ZooKeeper at ")
    wait_for(lambda: "Retrying zookeeper connection" in process.output(), "it has waited in vain")
    assert not any("READY=1" in lines for _, lines in manager.read())
    private_site.zookeeper.process.resume()
    manager.wait("READY=1")


@pytest.mark.skipif(not DRIVERS.is_dir(), reason="the test drivers are not built")
def test_a_stuck_loop_lets_the_watchdog_starve(site, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    manager.env |= {"WATCHDOG_USEC": "1000000"}
    wicked = {"name": "wicked", "driver": "wicked", "mischief": "block", "block-seconds": 5,
              "pools": [{"name": "main", "labels": ["block"]}]}
    tree = site.tree()
    start(site, manager, labels=[{"name": "small"}, {"name": "block"}], providers=[fake_provider(), wicked],
          options=["--drivers-dir", DRIVERS / "good"])
    manager.wait("READY=1")
    fed = manager.wait("WATCHDOG=1", manager.wait("WATCHDOG=1", manager.wait("WATCHDOG=1")))
    request = tree.add_request(["block"])

    def pauses():
        times = [when for when, lines in manager.read() if "WATCHDOG=1" in lines]
        return [after - before for before, after in zip(times, times[1:])]

    wait_for(lambda: max(pauses()) > 3, "it is fed no more for a while")
    assert fed > 2
    tree.zk.delete(f"/nodepool/requests/{request}")


def test_the_watchdog_of_another_process_is_not_fed(site, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    manager.env |= {"WATCHDOG_USEC": "200000", "WATCHDOG_PID": "1"}
    site.observer()
    process = start(site, manager)
    manager.wait("READY=1")
    process.send(signal.SIGINT)
    assert process.wait(60) == 0
    assert not any("WATCHDOG=1" in lines for _, lines in manager.read())


# --- journald -----------------------------------------------------------------------

def fields(entry: bytes) -> dict[str, str]:
    """An entry of journald's native protocol."""
    found = {}
    while entry:
        line, entry = entry.split(b"\n", 1)
        key, equals, value = line.partition(b"=")
        if not equals:
            size = int.from_bytes(entry[:8], "little")
            value, entry = entry[8:8 + size], entry[8 + size + 1:]
        found[key.decode()] = value.decode()
    return found


class Journal:
    def __init__(self, path: pathlib.Path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.entries = []

    def find(self, text: str) -> dict | None:
        while True:
            try:
                self.entries.append(fields(self.socket.recv(1 << 20, socket.MSG_DONTWAIT)))
            except BlockingIOError:
                break
        return next((entry for entry in self.entries if text in entry["MESSAGE"]), None)


def test_a_logging_file_may_name_the_journal(site):
    journal = Journal(site.folder / "journal")
    setup = site.folder / "logging.yaml"
    setup.write_text(f"""version: 1
handlers:
  journal: {{class: systemd.journal.JournalHandler, address: {site.folder}/journal, SYSLOG_IDENTIFIER: np}}
root: {{level: INFO, handlers: [journal]}}
""")
    launcher = site.launcher(options=["-l", setup])
    request = site.tree().add_request(["small"], event_id="e1")
    site.tree().wait_request(request, "fulfilled")
    entry = wait_for(lambda: journal.find("Fulfilled with"), "it is in the journal")
    assert entry["NODEPOOL_REQUEST"] == request and entry["NODEPOOL_EVENT"] == "e1"
    assert entry["SYSLOG_IDENTIFIER"] == "np" and entry["PRIORITY"] == "6"
    assert entry["LOGGER"].startswith("nodepool.") and launcher.output() == ""
    node, = site.tree().request(request)["nodes"]
    assert wait_for(lambda: next((e for e in journal.entries if e.get("NODEPOOL_NODE") == node), None), "its node is named")


def may_mount() -> bool:
    words = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/run/systemd", "true"]
    return shutil.which("bwrap") is not None and subprocess.run(words, capture_output=True).returncode == 0


# operations.8.1
@pytest.mark.skipif(not may_mount(), reason="bubblewrap cannot mount here")
@pytest.mark.parametrize("is_connected", [True, False])
def test_the_journal_is_used_when_the_output_goes_there(site, is_connected):
    folder = site.folder / "j"
    folder.mkdir()
    journal = Journal(folder / "socket")
    output = site.folder / "stream"
    output.touch()
    status = output.stat()
    device = status.st_dev if is_connected else status.st_dev + 1
    words = ["bwrap", "--die-with-parent", "--dev-bind", "/", "/", "--tmpfs", "/run/systemd", "--bind", folder, "/run/systemd/journal",
             BIN / "nodepool-launcher", "-f", "-c", site.config()]
    site.observer()
    process = Process(words, output, env={"JOURNAL_STREAM": f"{device}:{status.st_ino}"})
    site.started.append(process)
    wait_for(lambda: site.observer().components("pool"), "it runs")
    if is_connected:
        entry = wait_for(lambda: journal.find("Nodepool launcher"), "it is in the journal")
        assert entry["SYSLOG_IDENTIFIER"] == "nodepool-launcher"
        assert process.output() == ""
    else:
        assert "Nodepool launcher" in process.output()
        assert journal.find("Nodepool launcher") is None


# --- units ------------------------------------------------------------------------------

UNIT_FILES = sorted(UNITS.glob("*.service"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_the_units_are_in_order(tmp_path):
    assert len(UNIT_FILES) == 4
    # The programs at their place, as far as the check wants to see them.
    for unit in UNIT_FILES:
        text = unit.read_text()
        program = re.search(r"^ExecStart=(\S+)", text, re.M)[1]
        assert program.startswith("/usr/bin/nodepool")
        (tmp_path / unit.name).write_text(text.replace(f"ExecStart={program}", f"ExecStart={BIN / pathlib.Path(program).name}"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                           *(str(tmp_path / unit.name) for unit in UNIT_FILES)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    (tmp_path / "etc").mkdir()
    for kind in ("sysusers", "tmpfiles"):
        if shutil.which(f"systemd-{kind}"):
            done = subprocess.run([f"systemd-{kind}", f"--root={tmp_path}", *(["--create"] if kind == "tmpfiles" else []),
                                   UNITS / f"nodepool.{kind}.conf"], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
