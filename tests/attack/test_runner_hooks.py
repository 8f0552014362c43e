"""Deliveries of webhooks by those who do not know the secret, and by those who do."""
import hashlib
import hmac
import json
import threading

import pytest
import yaml

from bounds import scaled
from web_client import exchange, free_port, web_config

from targets import BIN, Target

SECRET = "the-hooks-secret"
HOOK = "/api/v1/runners/hooks/octo"


@pytest.fixture
def hooks(site):
    secure = site.folder / "secure.yaml"
    secure.write_text(yaml.safe_dump({"runner-services": [{"name": "octo", "token": "x", "webhook-secret": SECRET}]}))
    port = free_port()
    sets = [{"name": "np-small", "node-label": "small"}]
    service = {"name": "octo", "url": "https://github.com/octo", "mode": "webhook", "repos": ["octo/app"], "sets": sets}
    process = site.launcher(web_config(site, port, None, runners=[service]), options=["-s", secure], seconds_between_sweeps=60)
    return Target(BIN / "nodepool-launcher", process, web_port=port)


def event(number=7, state="queued", **job) -> bytes:
    body = {"action": state, "repository": {"full_name": "octo/app"},
            "workflow_job": {"id": number, "run_id": 1, "status": state, "labels": ["np-small"], "name": "build"} | job}
    return json.dumps(body).encode()


def deliver(target, body: bytes, signature: str | None = None, *headers: str) -> int:
    signature = signature or "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    lines = [f"POST {HOOK} HTTP/1.1", "Host: localhost", "Connection: close",
             f"Content-Length: {len(body)}", "X-GitHub-Event: workflow_job", f"X-Hub-Signature-256: {signature}", *headers]
    return int(exchange(target.web_port, "\r\n".join([*lines, "", ""]).encode() + body).split(b" ", 2)[1])


def records(site):
    return site.observer().children("/nodepool/runners/jobs/octo")


# RUN-80: guesses are delayed, and do not keep good deliveries out.
def test_forged_deliveries(site, hooks, measured):
    statuses = []

    def forge(number):
        for _ in range(scaled(30, 300)):
            statuses.append(deliver(hooks, event(number), "sha256=" + "0" * 64))

    with measured("forged deliveries", hooks):
        forgers = [threading.Thread(target=forge, args=(number,)) for number in range(1, 17)]
        for forger in forgers:
            forger.start()
        good = [deliver(hooks, event(100 + number)) for number in range(5)]
        for forger in forgers:
            forger.join()
    assert good == [202] * 5 and set(statuses) <= {401, 429, 503}
    assert statuses.count(401) < 60, "most are refused for their number"
    assert sorted(records(site)) == [str(100 + number) for number in range(5)]
    assert hooks.process.output().count("its signature is wrong") < 60


# RUN-80, RUN-81: the same delivery again and again is one job.
def test_replayed_deliveries(site, hooks, measured):
    with measured("replayed deliveries", hooks):
        for _ in range(scaled(100, 1000)):
            assert deliver(hooks, event()) == 202
        assert deliver(hooks, event(8, created_at="2020-01-01T00:00:00Z")) == 200
    assert records(site) == ["7"]


# RUN-80
def test_oversized_and_malformed_deliveries(site, hooks, measured):
    with measured("oversized deliveries", hooks):
        for body in (b"[" * 60_000, b"{" * 60_000, b"\xff" * 60_000, b"", b"null", b'{"workflow_job": {"id": 1e999}}'):
            assert deliver(hooks, body) == 400
        assert deliver(hooks, event(name="x" * 70_000)) == 413
        assert deliver(hooks, event(7, name="n" * 50_000)) == 202
        assert deliver(hooks, event(8, labels=["l" * 50_000] + ["a"] * 2000)) == 202
        assert deliver(hooks, event(9, labels=None, run_id="x", name={"a": 1}, html_url="javascript:alert(1)")) == 202
        assert deliver(hooks, event(10, name="x\x1b[2J\r\nX-Evil: 1")) == 202
    assert all(len(json.dumps(site.observer().record(f"/nodepool/runners/jobs/octo/{number}"))) < 3000 for number in records(site))
    assert "\x1b" not in hooks.process.output()


# RUN-80: who knows the secret fills no more than there is room for.
def test_deliveries_without_end(site, hooks, measured):
    count = scaled(500, 6000)
    with measured("deliveries of many jobs", hooks):
        statuses = [deliver(hooks, event(number)) for number in range(1, count + 1)]
    assert set(statuses) <= {202, 503}
    assert len(records(site)) <= 5000
