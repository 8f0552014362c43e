"""Pools with nothing in them, and with several launchers of which one dies (http.md PAGE-11, PAGE-15)."""
import uuid

from planted import PROVIDERS, PlantedPool
from services import free_port, wait_for
from web_client import web_config

SHARES = [("rackspace-flex-sjc3", "bare-metal-lab"), ("ovh-gra1", "vexxhost-ca-ymq-1"), ("openmetal-iad3", "osuosl-regionone-arm64")]


# PAGE-11
def test_an_empty_pool_says_what_to_do_next(fresh_browser, site, screenshots):
    browser, port = fresh_browser, free_port()
    config = web_config(site, port, labels=[{"name": "small"}])
    site.launcher(config)
    browser.open(f"http://127.0.0.1:{port}/")
    browser.wait_text("No machines yet: ask for one with nodepool request small --wait", "#welcome")
    assert browser.count(".tile") == 0 and browser.count("#charts") == 0, "no zeros, no charts of nothing"
    browser.picture(screenshots, "empty-pool")
    assert browser.accessibility_faults() == []
    site.observer().add_request(["small"])
    wait_for(lambda: browser.count(".tile"), "there is something to show")
    assert browser.count("#welcome") == 0


# PAGE-15
def test_three_launchers_of_which_one_dies(fresh_browser, tmp_path, shared_zookeeper, screenshots):
    browser = fresh_browser
    pool = PlantedPool(tmp_path, shared_zookeeper.hosts, f"/planted-{uuid.uuid4().hex}", SHARES)
    try:
        pool.start(nodes=48)
        browser.open(pool.url)
        wait_for(lambda: browser.texts(".provider h3 a") == sorted(PROVIDERS), "the page of one shows the providers of all three", 60)
        browser.picture(screenshots, "three-launchers")
        pool.launchers[1].kill()
        browser.wait_text("has left", "#changes")
        wait_for(lambda: len(pool.entries("components")) and not any(
            each["kind"] == "launcher" and pool.hostnames[1].startswith(each["hostname"]) for each in pool.entries("components")),
            "its record is gone", 60)
        browser.wait_text(f"serves provider {SHARES[1][0]}, which has", "#problems")
        browser.picture(screenshots, "three-launchers-one-dead")
        assert browser.accessibility_faults() == [] and browser.faults() == []
        assert "The connection is lost" not in browser.text("#banner")
        pool.start_launcher(1)
        browser.wait_text("has registered", "#changes")
    finally:
        pool.stop()
