"""A cloud that is away for seconds while nodes are requested: no request fails for it."""
import json
import time

import pytest

from services import free_port, wait_for
from small_cloud import SmallCloud, provider
from web_client import get, web_config

AWAY = 8  # seconds


def refuse_connections(cloud):
    cloud.stop()
    return cloud.start


def answer(status: int, body: bytes):
    def begin(cloud):
        cloud.misbehave = lambda handler: handler.send(status, body)

        def end():
            cloud.misbehave = None
        return end
    return begin


def hang_up(cloud):
    cloud.misbehave = lambda handler: handler.connection.close()

    def end():
        cloud.misbehave = None
    return end


KINDS = {
    "closed port": refuse_connections,
    "502 in HTML": answer(502, b"<html><h1>Bad Gateway</h1></html>"),
    "503": answer(503, b"{}"),
    "401": answer(401, b'{"error": {"message": "The request you have made requires authentication."}}'),
    "no answer": hang_up,
}


@pytest.fixture(name="cloud")
def small_cloud(site, monkeypatch):
    cloud = SmallCloud(site.folder / "cloud")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(cloud.clouds_yaml()))
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    cloud.launches = True
    cloud.start()
    yield cloud
    cloud.stop()


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_requests_of_an_outage_are_served_after_it(site, cloud, kind):
    """BB-40: one request meets the outage, a later one waits for its end with that reason."""
    port = free_port()
    wanted = provider(labels=("small",))
    wanted.update({"launch-retries": 1, "clean-floating-ips": False})
    wanted["pools"][0].update({"host-key-checking": False, "auto-floating-ip": False})
    config = web_config(site, port, providers=[wanted], labels=[{"name": "small"}])
    launcher = site.launcher(config)
    tree = site.tree()
    wait_for(lambda: get(port, "/ready")[0] == 200, "the launcher is ready")

    end = kind(cloud)
    begun = time.monotonic()
    first = tree.add_request(["small"])
    # Calls that are answered with 503 are repeated first, with pauses that chance lengthens: some 12 to 35 s.
    wait_for(lambda: get(port, "/ready")[0] == 503, "the provider counts as away", 90)
    later = tree.add_request(["small"])
    wait_for(lambda: any(later in line and "cannot be used" in line for line in
                         site.tool("request-list", "--detail", config=config).stdout.splitlines()),
             "the later request says why it waits")
    wait_for(lambda: time.monotonic() - begun > AWAY, "the outage is over")
    end()
    for request in (first, later):
        wait_for(lambda: tree.request(request)["state"] == "fulfilled", "the request is served", 60)
    assert "Launch attempt" not in launcher.output()
    errors = [line for line in launcher.output().splitlines() if " ERROR " in line]
    assert len(errors) <= 3, "each cause is reported once"
    wait_for(lambda: get(port, "/ready")[0] == 200, "the launcher is ready again")
    assert len(cloud.servers) == 2, json.dumps(list(cloud.servers.values()))
