"""The web server with TLS (docs/spec/http-tls.md), asked by curl, openssl and Python's ssl."""
import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import time

import pytest
import yaml

from exec_nodes import Nodes, host
from lease_client import LeaseClient, make_token
from nodepool_helpers import BIN, fake_provider
from services import Process, free_port, wait_for
from sse_client import EventStream
from standalone import Standalone
from web_client import connect, first_answer, get, web_config
from web_tls import WebTls


@pytest.fixture
def tls(tmp_path):
    return WebTls(tmp_path / "tls")


class Web:
    """A launcher whose web server has TLS."""

    def __init__(self, site, tls: WebTls, **settings):
        self.tls = tls
        self.port = free_port()
        self.url = f"https://localhost:{self.port}"
        self.config = web_config(site, self.port, tls, **settings)
        self.token, entry = make_token(site.config("token"), "ci", "--scope", "request")
        secure = site.folder / "secure.yaml"
        secure.write_text(yaml.safe_dump({"webapp-tokens": [entry]}))
        self.launcher = site.launcher(self.config, options=("-s", secure))
        wait_for(lambda: self.get("/ready")[0] == 200, "it is ready")

    def get(self, path: str, **headers):
        return get(self.port, path, self.tls.client(), **headers)

    def client(self) -> LeaseClient:
        return LeaseClient([self.port], self.token, self.tls.client())

    def common_name(self) -> str:
        """Of the certificate that a new connection gets."""
        with self.tls.client().wrap_socket(connect(self.port), server_hostname="localhost") as connection:
            subject = connection.getpeercert()["subject"]
        return dict(pair for part in subject for pair in part)["commonName"]


@pytest.fixture
def web(site, tls):
    return Web(site, tls)


def curl(*words) -> subprocess.CompletedProcess:
    return subprocess.run(["curl", "-sS", "--noproxy", "*", "--max-time", "20", *map(str, words)], capture_output=True, text=True,
                          timeout=60)


# TLS-1, TLS-6
def test_curl_gets_lists_metrics_and_the_page(web):
    assert f"Serving on https://127.0.0.1:{web.port}" in web.launcher.output()
    done = curl("-v", "--cacert", web.tls.authority, *(web.url + path for path in ("/ready", "/node-list", "/metrics", "/")))
    assert done.returncode == 0, done.stderr
    assert "OK" in done.stdout and "nodepool_" in done.stdout and "<html" in done.stdout
    assert "TLSv1.3" in done.stderr and "server accepted http/1.1" in done.stderr
    assert re.search("Re-?using existing", done.stderr)
    for asset in re.findall(r'(?:src|href)="(assets/[^"]+)"', done.stdout):
        assert curl("-f", "-o", "/dev/null", "--cacert", web.tls.authority, f"{web.url}/{asset}").returncode == 0, asset
    assert curl(web.url).returncode == 60, "an authority that is not known is not trusted"


# TLS-6
def test_old_versions_are_refused(web):
    words = ["openssl", "s_client", "-connect", f"localhost:{web.port}", "-cipher", "DEFAULT@SECLEVEL=0", "-tls1_1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, input="")
    assert "alert protocol version" in done.stderr, done.stderr


# TLS-8
def test_the_wrong_scheme_is_named(site, web):
    plain = curl("-i", f"http://localhost:{web.port}/ready")
    assert plain.stdout.startswith("HTTP/1.1 400 Bad Request"), plain.stderr
    assert plain.stdout.endswith("This port speaks HTTPS only: begin the URL with https:// in place of http://\n")
    port = free_port()
    other = site.launcher(web_config(site, port), wait=False, name="plain")
    first_answer(port, "/ready")
    assert "wrong version number" in curl("-k", f"https://localhost:{port}/ready").stderr
    wait_for(lambda: "127.0.0.1 speaks TLS to the web server, which serves plain HTTP" in other.output(), "it is logged")


# TLS-1
def test_a_request_from_its_creation_to_its_end(web):
    client = web.client()
    lease = client.make(["small"])
    assert client.held(lease)["nodes"], "a long poll"
    assert client.renew(lease).status == 200
    assert client.end(lease).status == 204
    answer = client.ask("POST", "/api/v1/requests", {"labels": ["small"]}, Origin=web.url)
    assert answer.status == 201, answer.text
    assert client.end(answer.id).status == 204
    assert client.ask("POST", "/api/v1/requests", {"labels": ["small"]}, Origin="https://evil.example").status == 403
    connection = http.client.HTTPSConnection("localhost", web.port, context=web.tls.client(), timeout=20)
    for _ in range(3):
        connection.request("GET", "/api/v1/nodes")
        assert connection.getresponse().read().startswith(b"{")
    connection.close()
    assert "PRIVATE" not in web.launcher.output()


# TLS-1
def test_exec_over_https(site, sshd, tls):
    nodes = Nodes(site, sshd, host(sshd, "small"), is_over_http=True, tls=tls)
    trusted = nodes.run("--ca", tls.authority, "small", "--", "echo there; exit 3")
    assert (trusted.returncode, trusted.stdout) == (3, "there\n"), trusted.stderr
    unknown = nodes.run("small", "--", "true")
    assert unknown.returncode == 125 and "certificate" in unknown.stderr, unknown.stderr
    nodes.wait_ready()


# TLS-10
def test_commands_ask_launchers_over_https(site, tls):
    web = Web(site, tls, providers=[fake_provider(**{"max-servers": 1})])
    tree = site.tree()
    held = tree.use(tree.add_request(["small"]))
    waiting = tree.add_request(["small"])

    def shown(config):
        done = site.tool("request-list", "--detail", config=config)
        assert done.returncode == 0, done.stderr
        row, = [row for row in done.stdout.splitlines() if waiting in row]
        return row, done.stderr

    wait_for(lambda: "instances" in shown(web.config)[0], "the reason is known")
    without = yaml.safe_load(web.config.read_text())
    del without["webapp"]["tls"]["ca"]
    web.config.write_text(yaml.safe_dump(without))
    assert "does not answer" in shown(web.config)[1], "the system's authorities do not include it"
    tree.give_back(held)


# TLS-3, TLS-4
def test_a_certificate_changes_while_a_stream_goes_on(site, web):
    tree = site.observer()
    with EventStream(web.port, "/api/v1/events?topics=nodes", tls=web.tls.client()) as stream:
        stream.until(lambda event: event.name == "hello")

        def assert_goes_on():
            node = tree.add_node(state="hold", provider="elsewhere")
            stream.until(lambda event: event.name == "nodes" and event.data["id"] == node)

        assert_goes_on()
        assert web.common_name() == "first"
        second_cert, second_key = web.tls.make_pair("second")
        second_cert.rename(web.tls.cert)
        second_key.rename(web.tls.key)
        wait_for(lambda: web.common_name() == "second", "the new one is used")
        assert_goes_on()
        web.tls.make_pair("third")[0].rename(web.tls.cert)
        wait_for(lambda: "the previous one stays in use" in web.launcher.output(), "the pair is reported")
        assert web.common_name() == "second"
        os.utime(web.tls.cert)
        assert_goes_on()
        web.tls.key.write_text("not a key")
        wait_for(lambda: "it is not PEM" in web.launcher.output(), "the other fault is reported")
        assert web.common_name() == "second"
        assert_goes_on()
    assert web.launcher.output().count("is not the key of the certificate") == 1
    assert "not a key" not in web.launcher.output()


# TLS-5
def test_a_certificate_that_ends_soon_is_warned_of(site, tls):
    for made, place in zip(tls.make_pair("short", days=3), (tls.cert, tls.key)):
        made.rename(place)
    web = Web(site, tls)
    wait_for(lambda: f"The web server's certificate {tls.cert} ends soon, at " in web.launcher.output(), "it is warned of")
    assert web.get("/ready")[0] == 200


# TLS-2
@pytest.mark.parametrize("change, says", [
    (lambda tls: tls.key.unlink(), "cannot read the key file \"{key}\": No such file or directory"),
    (lambda tls: tls.make_pair("other")[1].rename(tls.key), "is not the key of the certificate in \"{cert}\""),
    (lambda tls: tls.cert.write_text("x"), "the cert file \"{cert}\" cannot be used: it is not PEM"),
], ids=["missing", "mismatch", "not PEM"])
def test_without_a_usable_certificate_there_is_no_start(site, tls, change, says):
    config = web_config(site, free_port(), tls)
    change(tls)
    said = says.format(cert=tls.cert, key=tls.key)
    launcher = site.launcher(config, wait=False)
    assert launcher.wait() == 1
    assert "webapp.tls: " in launcher.output() and said in launcher.output()
    checked = site.tool("config-validate", config=config)
    assert checked.returncode == 0 and said in checked.stderr, checked.stderr
    assert "the launcher starts with it when the warnings have been dealt with" in checked.stderr
    without = site.launcher(config, wait=False, options=("--no-webapp",), name="without")
    wait_for(lambda: "Serving 1 pools" in without.output(), "a launcher without a web server needs none")


# TLS-2
def test_faults_of_the_section_are_placed(site, tls):
    config = web_config(site, free_port(), tls)
    good = config.read_text()
    assert site.tool("config-validate", config=config).returncode == 0
    config.write_text(good.replace("    cert:", "    certificate:"))
    unknown = site.tool("config-validate", config=config)
    assert unknown.returncode == 1 and re.search(r"line \d+, column \d+", unknown.stderr), unknown.stderr
    assert "data['webapp']['tls']['certificate']" in unknown.stderr
    config.write_text(re.sub(r"    cert: .*\n    key: .*\n    ca: .*\n", "    {}\n", good))
    empty = site.launcher(config, wait=False)
    assert empty.wait() == 1
    assert re.search(r"line \d+, column \d+.*webapp.*tls.*expected cert and key", empty.output()), empty.output()


# TLS-7
def test_slow_handshakes_hold_up_nobody(site, web):
    begun = bytes.fromhex("160301020001")
    silent = [connect(web.port, begun[:number % len(begun)]) for number in range(400)]
    for _ in range(3):
        start = time.monotonic()
        assert web.get("/ready")[2] == "OK"
        assert time.monotonic() - start < 3
        for connection in silent:
            with contextlib.suppress(OSError):
                connection.sendall(b"\0")
    wait_for(lambda: silent[0].recv(1) == b"", "the first is hung up on")
    assert "The loop has been blocked" not in web.launcher.output()
    for connection in silent:
        connection.close()


# TLS-9
def test_a_client_that_ends_its_half_still_gets_its_answer(web):
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = web.tls.client().wrap_bio(theirs, ours, server_hostname="localhost")
    with connect(web.port) as connection:
        def until(operation):
            while True:
                try:
                    return operation()
                except ssl.SSLWantReadError:
                    if sent := ours.read():
                        connection.sendall(sent)
                    part = connection.recv(65536)
                    theirs.write(part) if part else theirs.write_eof()

        until(tls.do_handshake)
        tls.write(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        connection.sendall(ours.read())
        connection.shutdown(socket.SHUT_WR)
        assert until(lambda: tls.read(4096)).startswith(b"HTTP/1.1 200 ")


# TLS-1
def test_standalone_serves_https(tmp_path, tls):
    standalone = Standalone(tmp_path)
    content = yaml.safe_load(standalone.config.read_text())
    content["webapp"]["tls"] = tls.settings
    standalone.config.write_text(yaml.safe_dump(content))
    standalone.start()
    try:
        standalone.wait_ready()
        status, _, body = get(standalone.web_port, "/api/v1/nodes", tls.client())
        assert status == 200 and json.loads(body)["nodes"]
    finally:
        standalone.process.stop()
