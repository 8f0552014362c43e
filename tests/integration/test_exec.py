"""`nodepool exec` and `nodepool ssh` on nodes behind real SSH servers, with ZooKeeper and over HTTP."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import termios

import pytest
from exec_nodes import Nodes, host
from services import Sshd, wait_for

# ./test takes fewer than the hundred that the behaviour names, to be quicker.
AT_ONCE = int(os.environ.get("NODEPOOL_TEST_EXEC_AT_ONCE", 25))


@pytest.fixture(params=["zookeeper", "server"])
def nodes(site, sshd, request):
    return Nodes(site, sshd, host(sshd, "small"), is_over_http=request.param == "server")


# EXEC-1, EXEC-2
def test_a_command_runs_on_a_node_that_is_given_back(nodes):
    done = nodes.run("small", "--", "printf", "%s|", "a b", "it's", "$HOME", input="")
    assert (done.returncode, done.stdout) == (0, "a b|it's|$HOME|"), done.stderr
    nodes.wait_ready()
    assert not nodes.tree.children("/nodepool/requests")
    piped = nodes.run("small", "--", "wc -c; echo $((40 + 2)) >&2; exit 42", input="x" * 200_000)
    assert (piped.returncode, piped.stdout.strip()) == (42, "200000")
    assert "42" in piped.stderr
    nodes.wait_ready()


# EXEC-19
def test_a_simulated_machine_is_named_so(site):
    site.launcher()
    done = site.tool("exec", "small", "--", "true")
    assert done.returncode == 125
    assert re.search(r"Node \d+ cannot be logged in to: its machine is simulated", done.stderr), done.stderr


# EXEC-20
def test_the_private_key_of_the_environment(nodes, monkeypatch):
    words = [word for word in nodes.words("small", "--", "echo", "here") if word not in ("-i", nodes.key)]
    monkeypatch.setenv("NODEPOOL_IDENTITY", str(nodes.key))
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr
    nodes.wait_ready()


# EXEC-3
def test_signals_reach_the_command_and_its_status_comes_back(nodes, tmp_path):
    for number in (signal.SIGINT, signal.SIGTERM):
        begun, said = tmp_path / f"begun-{number}", tmp_path / f"said-{number}"
        script = (f"trap 'echo got it >{said}; kill %1; exit 7' {number.name[3:]}; sleep 1000 & echo $! >{begun}.tmp; "
                  f"mv {begun}.tmp {begun}; wait")
        running = nodes.start("small", "--", "bash", "-c", script, name=f"exec-{number}")
        wait_for(begun.exists, "the command has begun")
        running.send(number)
        assert running.wait(30) == 7, running.output()
        assert said.read_text() == "got it\n"
        wait_for(lambda: not pathlib.Path(f"/proc/{begun.read_text().strip()}").exists(), "nothing of the command is left")
        nodes.wait_ready()


def ssh_folder(pid: int) -> pathlib.Path:
    """The folder that `nodepool exec` has made for the ssh that it runs."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            found = re.search(r"/tmp/nodepool-ssh-\w+", (process / "cmdline").read_text())
            if parent == pid and found:
                return pathlib.Path(found[0])
    raise AssertionError("it runs no ssh")


# EXEC-4
def test_a_second_signal_ends_it_at_once(nodes, tmp_path):
    begun = tmp_path / "begun"
    running = nodes.start("small", "--", "sh", "-c", f"trap '' INT TERM; echo $$ >{begun}.tmp; mv {begun}.tmp {begun}; sleep 60")
    wait_for(begun.exists, "the command has begun")
    folder = ssh_folder(running.pid)
    assert folder.exists()
    running.send(signal.SIGINT)
    # Whichever signal is the second: until the first has been seen, another one is the same.
    def ends():
        running.send(signal.SIGINT)
        return not running.is_running()
    wait_for(ends, "it ends")
    assert running.wait() == 130
    assert not folder.exists()
    os.killpg(os.getpgid(int(begun.read_text())), signal.SIGKILL)
    nodes.wait_ready()


# EXEC-5
def test_a_lost_connection_gives_the_node_back(nodes, tmp_path):
    begun = tmp_path / "begun"
    running = nodes.start("small", "--", f"echo $PPID >{begun}.tmp; mv {begun}.tmp {begun}; sleep 1000")
    wait_for(begun.exists, "the command has begun")
    # The process of the connection is the parent of the shell's parent.
    parent = int(begun.read_text())
    while b"sshd" not in pathlib.Path(f"/proc/{parent}/comm").read_bytes():
        parent = int(pathlib.Path(f"/proc/{parent}/stat").read_text().rsplit(")", 1)[1].split()[1])
    group = os.getpgid(int(begun.read_text()))
    os.kill(parent, signal.SIGKILL)
    assert running.wait(30) == 255
    os.killpg(group, signal.SIGKILL)
    assert "The connection to node" in running.output()
    nodes.wait_ready()


# EXEC-6
def test_another_host_key_is_refused(nodes, tmp_path):
    node_id, = nodes.tree.nodes()
    other = Sshd(tmp_path / "other").host_key
    nodes.tree.change_node(node_id, host_keys=[other])
    done = nodes.run("small", "--", "true")
    assert done.returncode == 255
    assert "HOST IDENTIFICATION HAS CHANGED" in done.stderr or "Host key verification failed" in done.stderr
    wait_for(lambda: all(node["state"] == "ready" for node in nodes.tree.nodes().values()), "it is given back")


# EXEC-6
def test_a_node_without_host_keys_needs_an_option(nodes):
    node_id, = nodes.tree.nodes()
    nodes.tree.change_node(node_id, host_keys=[])
    refused = nodes.run("small", "--", "true")
    assert refused.returncode == 125 and "--any-host-key" in refused.stderr


# EXEC-7
def test_a_winrm_node_is_refused(nodes):
    node_id, = nodes.tree.nodes()
    nodes.tree.change_node(node_id, connection_type="winrm")
    refused = nodes.run("small", "--", "true")
    assert refused.returncode == 125
    assert "its connection type is winrm, and only ssh is supported" in refused.stderr


# EXEC-8
def test_folders_are_copied_to_the_node_and_results_back(nodes, tmp_path):
    project = tmp_path / "my project"
    (project / "src").mkdir(parents=True)
    (project / "src/main.txt").write_text("hello\n")
    copy = pathlib.Path.home() / "my project"
    try:
        done = nodes.run("small", "--sync", "--fetch", "out", "--", "mkdir -p out && tr a-z A-Z <src/main.txt >out/result",
                         cwd=project)
        assert done.returncode == 0, done.stderr
        assert (project / "out/result").read_text() == "HELLO\n"
        failed = nodes.run("small", "--sync", ".", "--fetch", "log", "--", "echo why >log; exit 3", cwd=project)
        assert failed.returncode == 3 and (project / "log").read_text() == "why\n"
    finally:
        subprocess.run(["rm", "-rf", copy], check=True)


# EXEC-9
def test_several_nodes_run_the_command_at_once(site, sshd, tmp_path):
    second = Sshd(tmp_path / "second", home=tmp_path).start()
    (second.folder / "authorized_keys").write_text(sshd.login_key().with_suffix(".pub").read_text())
    try:
        run_on_two_nodes(Nodes(site, sshd, host(sshd, "small"), host(second, "large"), slots=2), tmp_path)
    finally:
        second.stop()


def run_on_two_nodes(nodes, tmp_path):
    meet = tmp_path / "meet"
    meet.mkdir()
    # Each waits for the other.
    script = f"touch {meet}/$$; until [ $(ls {meet} | wc -l) = 2 ]; do sleep 0.05; done; echo met"
    done = nodes.run("small", "large", "--", script)
    assert done.returncode == 0, done.stderr
    # What the shell's start files print is no concern of ours.
    met = sorted(line.split()[0] for line in done.stdout.splitlines() if line.endswith("] met"))
    assert met == ["[large", "[small"]


# EXEC-10
def test_an_inventory_leads_to_the_nodes(nodes, tmp_path):
    inventory = tmp_path / "hosts.yaml"
    script = 'cp "$NODEPOOL_INVENTORY" copy.yaml; ssh -F "$NODEPOOL_SSH_CONFIG" $NODEPOOL_NODES echo there; exit 5'
    done = nodes.run("small", "--local", "--inventory", inventory, "--", script, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (5, "there\n"), done.stderr
    hosts = json.loads((tmp_path / "copy.yaml").read_text())["all"]
    assert list(hosts["hosts"]) == list(hosts["children"]["small"]["hosts"])
    refused = nodes.run("small", "--inventory", tmp_path / "hosts.txt", "--", "true")
    assert refused.returncode != 0 and "must end in .yaml" in refused.stderr


def test_what_is_missing_here_is_said_before_a_node_is_taken(nodes, tmp_path):
    before = nodes.tree.nodes()
    refused = nodes.run("small", "--sync", "--", "true", env={"PATH": str(tmp_path)})
    assert refused.returncode == 125 and refused.stderr == "nodepool: rsync is not installed here; --sync needs it\n"
    assert nodes.tree.nodes() == before


# EXEC-11
def test_it_fails_with_125_without_nodes(nodes):
    unknown = nodes.run("smal", "--", "true")
    assert unknown.returncode == 125 and "did you mean small?" in unknown.stderr, unknown.stderr


def talk(words, typed: str) -> tuple[int, str]:
    """Status and output of a program on a terminal of its own, on which `typed` is typed."""
    ours, its = pty.openpty()
    process = subprocess.Popen([str(word) for word in words], stdin=its, stdout=its, stderr=its, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(its)
    os.write(ours, typed.encode())
    shown = b""
    with contextlib.suppress(OSError):  # the end of the terminal
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    return process.wait(30), shown.decode(errors="replace")


# EXEC-12
def test_ssh_is_a_terminal_on_the_node(nodes):
    status, shown = talk(nodes.words("small", command="ssh"), "echo on $(tty); exit 9\n")
    assert status == 9 and "on /dev/pts/" in shown, shown
    nodes.wait_ready()
    status, shown = talk(nodes.words("small", "--", "tty; exit 8"), "")
    assert status == 8 and "/dev/pts/" in shown, shown
    nodes.wait_ready()


# EXEC-13
@pytest.mark.parametrize("is_over_http", [False, True], ids=["zookeeper", "server"])
def test_many_at_once(site, sshd, is_over_http):
    nodes = Nodes(site, sshd, host(sshd, "small", **{"max-parallel-jobs": AT_ONCE, "timeout": 30}), slots=AT_ONCE,
                  is_over_http=is_over_http)
    running = [subprocess.Popen(nodes.words("small", "--", f"exit {number % 50}"), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for number in range(AT_ONCE)]
    try:
        for number, process in enumerate(running):
            _, said = process.communicate(timeout=200)
            assert process.returncode == number % 50, said
    finally:
        for process in running:
            process.kill()
    nodes.wait_ready()
