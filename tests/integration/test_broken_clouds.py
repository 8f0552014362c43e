"""Clouds that cannot be used: each says so everywhere, and again when it can be."""
import json
import re

import pytest

from services import free_port, wait_for
from small_cloud import SmallCloud, make_certificate, provider
from test_metrics import families
from web_client import get, web_config


class Broken:
    """One way to be broken, before the launcher starts; and how it is mended."""

    scheme = "http"
    cause = ""  # a regular expression

    def __init__(self, folder):
        self.cloud = SmallCloud(folder / "cloud", self.scheme)

    def break_it(self):
        self.cloud.start()

    def mend(self):
        self.cloud.misbehave = None


class WrongPassword(Broken):
    cause = r"cloud vendor: logging in at {url}/identity/v3: 401 The request you have made requires authentication"

    def break_it(self):
        self.cloud.password = "another"
        self.cloud.start()

    def mend(self):
        self.cloud.password = "correct-horse"


class ClosedPort(Broken):
    cause = (r"cloud vendor: logging in: POST {url}/identity/v3/auth/tokens: "
             r"Failed to connect to 127\.0\.0\.1 port \d+: Could(?:n't| not) connect to server")

    def break_it(self):
        pass

    def mend(self):
        self.cloud.start()


class WithCertificate(Broken):
    scheme = "https"
    host = "IP:127.0.0.1"
    days = 30

    def break_it(self):
        self.cloud.start(make_certificate(self.cloud.folder, "bad", self.host, self.days))

    def mend(self):
        self.cloud.stop()
        self.cloud.start(make_certificate(self.cloud.folder, "good", "IP:127.0.0.1"))


class WrongName(WithCertificate):
    cause = (r"cloud vendor: logging in: POST {url}/identity/v3/auth/tokens: "
             r"SSL: no alternative certificate subject name matches target (?:host name|ipv4 address) '127\.0\.0\.1'")
    host = "DNS:cloud.example.org"


class ExpiredCertificate(WithCertificate):
    cause = (r"cloud vendor: logging in: POST {url}/identity/v3/auth/tokens: "
             r"SSL certificate problem: certificate has expired")
    days = 0


class Unavailable(Broken):
    cause = r"cloud vendor: logging in at {url}/identity/v3: 503 the cloud is being mended"

    def break_it(self):
        self.cloud.misbehave = lambda handler: handler.send(503, b'{"message": "the cloud is being mended"}')
        self.cloud.start()


class HalfAnAnswer(Broken):
    cause = r"cloud vendor: logging in: POST {url}/identity/v3/auth/tokens: (?:transfer closed with .* remaining to read|end of response with .* bytes missing)"

    def break_it(self):
        self.cloud.misbehave = lambda handler: handler.send(201, b'{"token": {', length=4000)
        self.cloud.start()


class Watched:
    """A launcher of one provider, and what it shows of it."""

    def __init__(self, site):
        self.port = free_port()
        self.site = site
        self.config = web_config(site, self.port, providers=[provider()],
                                 labels=[{"name": "small"}, {"name": "large"}, {"name": "other"}])
        self.launcher = site.launcher(self.config)

    def lines(self, level: str) -> list[str]:
        return [line for line in self.launcher.output().splitlines() if f" {level} " in line]

    def provider(self) -> dict:
        found, = json.loads(get(self.port, "/api/v1/providers")[2])["providers"]
        return found

    def up(self) -> float:
        samples = families(get(self.port, "/metrics")[2])["nodepool_provider_up"].samples
        return next(sample.value for sample in samples if sample.labels == {"provider": "cloud"})

    def announced(self) -> dict:
        return next(iter(self.site.observer().components("launcher").values()))["providers"]["cloud"]


@pytest.mark.parametrize("kind", [WrongPassword, ClosedPort, WrongName, ExpiredCertificate, Unavailable, HalfAnAnswer],
                         ids=lambda kind: kind.__name__)
def test_a_cloud_that_cannot_be_used(site, monkeypatch, kind):
    """D-30, D-64: log, readiness, API, metric, lists and requests say why; then that it is over."""
    broken = kind(site.folder)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(broken.cloud.clouds_yaml()))
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    broken.break_it()
    try:
        check(Watched(site), broken)
    finally:
        broken.cloud.stop()


def check(watched, broken):
    site = watched.site
    line = wait_for(lambda: next((line for line in watched.lines("ERROR") if "cannot be used" in line), None),
                    "the log has the fault")
    cause = broken.cause.format(url=re.escape(broken.cloud.url))
    found = re.search(rf"Provider cloud cannot be used: ({cause}); tried again in \d+ s$", line)
    assert found, line
    fault = found.group(1)
    status, _, body = get(watched.port, "/ready")
    assert status == 503 and fault in body
    assert watched.up() == 0
    shown = watched.provider()
    assert (shown["state"], shown["is_up"], shown["fault"]) == ("failing", False, fault)
    assert 0 <= shown["next_start"] <= 45
    assert (watched.announced()["state"], watched.announced()["fault"]) == ("failing", fault)
    row, = json.loads(site.tool("provider-list", "--json", config=watched.config).stdout)
    assert fault in row.values()

    tree = site.tree()
    waiting = tree.add_request(["small"])
    detail = wait_for(lambda: next((line for line in site.tool("request-list", "--detail", config=watched.config)
                                    .stdout.splitlines() if waiting in line and "cannot be used" in line), None),
                      "the request says why it waits")
    assert f"provider cloud cannot be used: {fault}" in detail
    wait_for(lambda: any("tried again" in line for line in watched.lines("DEBUG")), "it was tried again", 60)
    assert watched.lines("ERROR") == [line], "one line, whatever the number of labels"
    assert "correct-horse" not in watched.launcher.output()
    tree.zk.delete(f"/nodepool/requests/{waiting}")

    broken.mend()
    wait_for(lambda: any("Provider cloud can be used again" in line for line in watched.lines("INFO")),
             "the log has the end of the fault", 90)
    assert get(watched.port, "/ready")[0] == 200
    assert watched.up() == 1
    shown = watched.provider()
    assert (shown["state"], shown["is_up"], shown["fault"], shown["next_start"]) == ("up", True, None, None)
    wait_for(lambda: watched.announced()["state"] == "up", "the recovery is announced")
    assert watched.launcher.output().count("can be used again") == 1
