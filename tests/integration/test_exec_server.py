"""What `nodepool exec --server` does besides what it has in common with the other way (test_exec.py)."""
import contextlib
import http.server
import os
import pty
import re
import signal
import socket
import ssl
import subprocess
import threading

import pytest
from exec_nodes import Nodes, host
from nodepool_helpers import BIN
from services import files_of_processes, free_port, wait_for
from web_client import get
from web_tls import WebTls


@pytest.fixture
def nodes(site, sshd):
    return Nodes(site, sshd, host(sshd, "small"), is_over_http=True)


class Relay:
    """Passes connections on to a port of this host, with TLS if it has certificates; counts them."""

    def __init__(self, port: int, certificates: WebTls | None = None):
        self.target = port
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.tls = None
        if certificates:
            self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self.tls.load_cert_chain(certificates.cert, certificates.key)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):  # it is closed
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError):
            if self.tls:
                client = self.tls.wrap_socket(client, server_side=True)
            self.connections += 1
            with client, socket.create_connection(("127.0.0.1", self.target)) as server:
                back = threading.Thread(target=self.copy, args=(server, client), daemon=True)
                back.start()
                self.copy(client, server)
                back.join()

    @staticmethod
    def copy(source, target):
        with contextlib.suppress(OSError):
            while part := source.recv(1 << 16):
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()


# EXEC-14
def test_neither_configuration_nor_zookeeper_is_needed(nodes, tmp_path):
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "NODEPOOL_TOKEN": nodes.token,
                   "NODEPOOL_CONFIG": str(tmp_path / "nowhere.yaml")}
    (tmp_path / "home").mkdir()
    words = [BIN / "nodepool", "exec", "--server", nodes.url + "/", "-i", nodes.key, "--tenant", "t", "--priority", "300",
             "--requestor", "me", "small", "--", "echo there; exit 3"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout) == (3, "there\n"), done.stderr
    nodes.wait_ready()
    assert "nodepool.audit: ci from 127.0.0.1: end request" in nodes.launcher.output()


def wait_begun(nodes, tmp_path, url=None):
    begun, go = tmp_path / "begun", tmp_path / "go"
    running = nodes.start("small", "--", f"touch {begun}; until [ -e {go} ]; do sleep 0.1; done; exit 7", url=url)
    wait_for(begun.exists, "the command has begun")
    return running, go


# EXEC-15
@pytest.mark.long
def test_a_server_that_is_away_does_not_end_the_command(nodes, tmp_path):
    running, go = wait_begun(nodes, tmp_path)
    os.kill(nodes.launcher.pid, signal.SIGKILL)
    nodes.launcher.wait()
    wait_for(lambda: "it is asked again for" in running.output(), "the loss is noticed", 30)
    go.touch()
    assert running.wait(30) == 7
    assert re.search(r"gives the nodes back when the lease ends, in 30 s at most", running.output())
    nodes.start_launcher()
    nodes.wait_ready()


# EXEC-15
def test_a_server_that_comes_back_is_asked_on(nodes, tmp_path):
    running, go = wait_begun(nodes, tmp_path)
    lease, = nodes.tree.children("/nodepool/leases")
    os.kill(nodes.launcher.pid, signal.SIGKILL)
    nodes.launcher.wait()
    before = nodes.tree.record(f"/nodepool/leases/{lease}")["renewed_time"]
    nodes.start_launcher()
    wait_for(lambda: nodes.tree.record(f"/nodepool/leases/{lease}")["renewed_time"] > before, "it is renewed", 30)
    go.touch()
    assert running.wait(30) == 7, running.output()
    nodes.wait_ready()


# EXEC-15
@pytest.mark.long
def test_the_command_ends_with_the_lease(nodes, tmp_path):
    running, _ = wait_begun(nodes, tmp_path)
    nodes.launcher.pause()
    assert running.wait(60) == 125
    assert "and with it the claim to the nodes" in running.output()
    nodes.launcher.resume()
    nodes.wait_ready()


# EXEC-17
def test_the_certificate_is_compared(nodes, tmp_path):
    certificates = WebTls(tmp_path / "tls")
    relay = Relay(nodes.port, certificates)
    try:
        def run(*words, host="localhost"):
            command = nodes.words(*words, "small", "--", "echo there", url=f"https://{host}:{relay.port}")
            return subprocess.run(command, capture_output=True, text=True, timeout=60)

        trusted = run("--ca", certificates.authority)
        assert (trusted.returncode, trusted.stdout) == (0, "there\n"), trusted.stderr
        served = relay.connections
        assert served
        unknown = run()
        assert unknown.returncode == 125 and "certificate" in unknown.stderr, unknown.stderr
        assert unknown.stderr.endswith("; --ca names the file of the authority that has signed it\n"), unknown.stderr
        other_name = run("--ca", certificates.authority, host="127.0.0.1")
        assert other_name.returncode == 125 and "--ca" not in other_name.stderr, other_name.stderr
    finally:
        relay.close()
    made = [line for line in nodes.launcher.output().splitlines() if ": made, " in line]
    assert len(made) == 1, "nothing was asked of a server that is not trusted"


# EXEC-17
def test_the_token_goes_nowhere_else(nodes, tmp_path):
    elsewhere = Relay(nodes.port)

    class Redirect(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{elsewhere.port}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Redirect)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        words = nodes.words("-d", "small", "--", "true", url=f"http://127.0.0.1:{server.server_port}")
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    finally:
        server.shutdown()
        server.server_close()
        elsewhere.close()
    assert done.returncode == 125 and "307" in done.stderr, done.stderr
    assert elsewhere.connections == 0
    assert nodes.token.split(".")[1] not in done.stderr


# EXEC-17
def test_the_token_is_never_shown(nodes, tmp_path):
    begun = tmp_path / "begun"
    running = nodes.start("-d", "small", "--", f"touch {begun}; sleep 1000")
    wait_for(begun.exists, "the command has begun")
    secret = nodes.token.split(".")[1]
    for line in files_of_processes("cmdline"):
        with contextlib.suppress(OSError):
            assert secret.encode() not in line.read_bytes()
    running.send(signal.SIGTERM)
    running.wait()
    assert secret not in running.output() and "/api/v1/requests" in running.output()
    nodes.token_file.write_text("wrong.0123456789abcdef")
    refused = nodes.run("small", "--", "true")
    assert refused.returncode == 125 and "401" in refused.stderr and "0123456789" not in refused.stderr
    nodes.wait_ready()


# EXEC-18
def test_a_terminal_shows_why_it_waits(nodes, tmp_path):
    holder, go = wait_begun(nodes, tmp_path)
    ours, its = pty.openpty()
    process = subprocess.Popen([str(word) for word in nodes.words("small", "--", "true")], stdin=its, stdout=its, stderr=its)
    os.close(its)
    shown = b""
    while b"metal main has no free node" not in shown:
        shown += os.read(ours, 4096)
    assert re.search(rb"\d+ s: waiting; metal main has no free node ", shown), shown
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):
        while os.read(ours, 4096):
            pass
    os.close(ours)
    assert process.wait(30) == 130
    wait_for(lambda: len(nodes.tree.children("/nodepool/leases")) == 1, "its request is withdrawn")
    go.touch()
    assert holder.wait(30) == 7
    nodes.wait_ready()


# EXEC-11
def test_what_cannot_be_asked_is_refused(nodes):
    def refusal(*words):
        done = subprocess.run([BIN / "nodepool", "exec", *words, "small", "--", "true"], capture_output=True, text=True,
                              timeout=60, env={"PATH": os.environ["PATH"]})
        return done.returncode, done.stderr

    status, said = refusal("--server", nodes.url)
    assert status == 125 and "NODEPOOL_TOKEN" in said
    status, said = refusal("--server", f"http://127.0.0.1:{free_port()}", "--token-file", nodes.token_file,
                           "--wait-for-server=1")
    assert status == 125 and "Connection refused" in said or "connect" in said, said
    assert get(nodes.port, "/api/v1/requests")[0] == 200
