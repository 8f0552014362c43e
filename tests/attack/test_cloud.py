"""Clouds that answer with what a launcher must not take."""
import contextlib
import http.server
import json
import threading
import time

import pytest

from bounds import IS_WHOLE
from nodepool_helpers import fake_provider
from services import LOOPBACK, wait_for
from small_cloud import SmallCloud, provider
from web_client import web_config

FLAVORS = "/compute/v2.1/flavors/detail"


@pytest.fixture
def cloud(tmp_path, monkeypatch):
    cloud = SmallCloud(tmp_path / "cloud")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(cloud.clouds_yaml()))
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    cloud.start()
    yield cloud
    cloud.stop()


LABELS = [{"name": "small"}, {"name": "other"}]
OTHER = fake_provider(labels=["other"])


@pytest.fixture
def launcher(site, cloud):
    """It knows the variables that name the cloud, and only another cloud."""
    return site.start(labels=LABELS, providers=[OTHER])


def add_cloud(site, launcher):
    web_config(site, launcher.web_port, labels=LABELS, providers=[OTHER, provider(labels=["small"])])


def serve_other_cloud(site):
    tree = site.observer()
    tree.use(tree.add_request(["other"]))


class Asked:
    """Counts the requests for the flavors, and answers them with `answer(handler, number)`."""

    def __init__(self, cloud: SmallCloud, answer):
        self.count = 0
        self.answer = answer
        cloud.misbehave_at[FLAVORS] = self

    def __call__(self, handler):
        self.count += 1
        with contextlib.suppress(OSError):
            self.answer(handler, self.count)


def pages(url: str, flavors: list[dict]):
    """An answer to each request for a page: `flavors`, and that there are more."""
    entries = json.dumps(flavors)

    def answer(handler, number):
        link = f'[{{"rel": "next", "href": "{url}{FLAVORS}?marker={number}"}}]'
        handler.send(200, f'{{"flavors": {entries}, "flavors_links": {link}}}'.encode())

    return answer


FLAVOR = {"id": "1", "name": "m1.small", "vcpus": 1, "ram": 2048}


@pytest.mark.parametrize("name, flavors", [
    ("short pages", [FLAVOR]), ("pages of many entries", [FLAVOR] * 4000),
    ("pages of large entries", [{**FLAVOR, "name": "x" * 1_000_000}]),
], ids=["short", "many", "large"])
def test_lists_without_end(site, cloud, launcher, measured, name, flavors):
    asked = Asked(cloud, pages(cloud.url, flavors))
    with measured(f"lists without end: {name}", launcher):
        add_cloud(site, launcher)
        serve_other_cloud(site)
        is_read_to_the_bound = IS_WHOLE or name != "short pages"
        wait_for(lambda: "does not end" in launcher.process.output() if is_read_to_the_bound else asked.count > 100,
                 "the list is refused", 120)


def send_without_end(handler, _):
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"x" * 1_000_000)


def send_drop_by_drop(handler, _):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while True:
        handler.wfile.write(b" ")
        time.sleep(0.02)


def send_many_headers(handler, _):
    handler.send_response(200)
    for number in range(20_000):
        handler.send_header(f"X-{number}", "x" * 1000)
    handler.end_headers()


def send_deep(handler, _):
    handler.send(200, b'{"flavors": ' + b"[" * 1_000_000)


def send_numbers(handler, _):
    handler.send(200, b'{"flavors": [{"id": -1e308, "name": 7, "vcpus": 1e400, "ram": "NaN", "disk": null}, 3, null]}')


@pytest.mark.parametrize("name, answer, is_refused", [
    ("without end", send_without_end, True), ("drop by drop", send_drop_by_drop, False),
    ("20,000 headers", send_many_headers, True), ("JSON with a million levels", send_deep, True),
    ("odd numbers", send_numbers, False),
], ids=["endless", "drops", "headers", "deep", "numbers"])
def test_answers_that_are_none(site, cloud, launcher, measured, name, answer, is_refused):
    asked = Asked(cloud, answer)
    with measured(f"a cloud's answers: {name}", launcher):
        add_cloud(site, launcher)
        wait_for(lambda: asked.count > 0, "the cloud is asked")
        serve_other_cloud(site)
        if is_refused:
            wait_for(lambda: asked.count > 1, "the answer is refused, and asked for again", 60)


class Thief(http.server.BaseHTTPRequestHandler):
    """Another service on the same host."""

    seen: list[str] = []

    def do_GET(self):
        self.seen.extend(f"{name}: {value}" for name, value in self.headers.items())
        self.send_error(404)

    def log_message(self, *_):
        pass


def test_tokens_stay_with_their_cloud(site, cloud, launcher, measured):
    thief = http.server.ThreadingHTTPServer((LOOPBACK, 0), Thief)
    threading.Thread(target=thief.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def redirect(handler, _):
        handler.send_response(302)
        handler.send_header("Location", f"http://{LOOPBACK}:{thief.server_port}/steal")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    asked = Asked(cloud, redirect)
    try:
        with measured("a redirection to another port", launcher):
            add_cloud(site, launcher)
            wait_for(lambda: asked.count > 1, "the redirection is seen twice", 60)
            serve_other_cloud(site)
        assert not [line for line in Thief.seen if "token" in line.lower()]
    finally:
        thief.shutdown()
        thief.server_close()
