"""Apache's own command lines, in Java and C, on Apache ZooKeeper and on the embedded server: the same words are printed."""
import re
import subprocess

import pytest

from services import EmbeddedZooKeeper, ZooKeeper, wait_for

JARS = ":".join(f"/usr/share/java/{name}.jar" for name in ("zookeeper", "netty-codec", "slf4j-log4j12", "log4j-1.2",
                                                           "commons-cli"))
JAVA_WORDS = """create /shell data
create -s -e /shell/n- x
get -s /shell
set /shell other
get -w /shell
ls -s /shell
create -c /shell/c
addWatch -m PERSISTENT_RECURSIVE /shell
create /shell/seen some
delete /shell/seen
getAcl /shell
sync /
getAllChildrenNumber /shell
getEphemerals
delete /shell
deleteall /shell
ls /
addauth digest user:word
create /mine secret auth:user:word:crwda
getAcl /mine
get /mine
setAcl /mine digest:other:nonsense:r
get /mine
setAcl /shell world:anyone:r
removewatches /shell
quit
"""
C_WORDS = """create /c
create +s /c/n-
create +e /c/e
set /c data
get /c
ls /c
ls2 /c
sync /c
delete /c
delete /c/e
quit
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    both = [ZooKeeper(tmp_path_factory.mktemp("apache")).start(), EmbeddedZooKeeper(tmp_path_factory.mktemp("own")).start()]
    yield both
    for server in both:
        server.stop()


def without_numbers(text: str) -> list[str]:
    """The lines without what differs from run to run: times, transaction numbers, sessions, ports."""
    text = re.sub(r"(?m)^.*(log4j|INFO|WARN|DEBUG|ZOO_|Connecting to|[Ss]ession).*\n", "", text)
    text = re.sub(r"zxid: -?\d+", "zxid", text)  # from 3.9 on, Apache's server tells that of an event
    text = re.sub(r"\b(\w*[zZ]xid|\w*time|ephemeralOwner)\s*=\s*[^\n]*", r"\1", text)
    return [re.sub(r"0x[0-9a-f]+|[0-9]{13,}", "N", line) for line in text.splitlines()]


def of_threads(lines: list[str]) -> tuple[list[str], list[str]]:
    """The events' lines and the others: Java's shell prints events in a thread of their own, between the others somewhere."""
    shown = [line for line in lines if line.startswith(("WATCHER::", "WatchedEvent"))]
    # The last event, that the session is closed, is printed or not: the shell ends meanwhile.
    events = [line for line in shown if line != "WATCHER::" and "state:Closed" not in line]
    return events, [line for line in lines if line and line not in shown]


def test_java(servers):
    found = []
    for server in servers:
        done = subprocess.run(["java", "-cp", JARS, "org.apache.zookeeper.ZooKeeperMain", "-server", server.hosts],
                              input=JAVA_WORDS, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        found.append((*of_threads(without_numbers(done.stdout)), without_numbers(done.stderr)))
    assert "Created /shell/seen" in found[1][2] and "secret" in found[1][1] and found[1][0]
    assert found[1] == found[0]


def test_c(servers, tmp_path):
    found = []
    for number, server in enumerate(servers):
        output = tmp_path / f"{number}.log"
        with open(output, "w") as log:
            shell = subprocess.Popen(["/usr/lib/zookeeper/bin/cli_mt", server.hosts], stdin=subprocess.PIPE, stdout=log,
                                     stderr=subprocess.STDOUT, text=True)
            try:
                wait_for(lambda: "CONNECTED_STATE" in output.read_text(), "the shell is connected")
                for line in C_WORDS.splitlines():
                    # It asks without waiting; the answer to the last word ends with these.
                    before = output.read_text().count("rc = ")
                    shell.stdin.write(line + "\n")
                    shell.stdin.flush()
                    if line != "quit":
                        wait_for(lambda: output.read_text().count("rc = ") > before, f"an answer to {line}")
                shell.wait(20)
            finally:
                shell.kill()
        # The answers' lines come from another thread than the echo of the words.
        found.append(sorted(line for line in without_numbers(output.read_text()) if not line.startswith("time")))
    assert any("data" in line for line in found[1])
    assert found[1] == found[0]
