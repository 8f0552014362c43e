"""Planted faults: `nodepool status` and /api/v1/problems name each within ten seconds, with its remedy."""
import json
import os
import re

import pytest

from images import ImageSite, image
from nodepool_helpers import fake_provider
from services import free_port, wait_for
from small_cloud import SmallCloud, provider
from web_client import get

SECONDS = 10


def static_hosts(port):
    return {"name": "metal", "driver": "static", "pools": [{"name": "main", "nodes": [
        {"name": "127.0.0.1", "connection-port": port, "labels": "board", "timeout": 1, "host-key-checking": True}]}]}


class Scene:
    """Two launchers and a builder with everything wrong that is planted in their configuration."""

    LABELS = ["plain", "full", "stock", "broken", "board", "away", "refused", "elsewhere", "paused"]

    def __init__(self, site, monkeypatch):
        self.site = site
        self.images = ImageSite(site)
        self.port = free_port()
        self.refusing = SmallCloud(site.folder / "refusing")
        self.refusing.password = "another"
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(self.refusing.clouds_yaml()))
        self.refusing.start()
        another_host = ["unshare", "--uts", "sh", "-c", 'hostname nl02.example.org && exec "$@"', "sh"] if os.getuid() == 0 else []
        self.other = site.launcher(site.config("other", labels=[{"name": "elsewhere"}], providers=[
            fake_provider("fake-elsewhere", ["elsewhere"])]), wait=False, under=another_host)
        self.config = self.images.config(**self.settings())
        self.launcher = site.launcher(self.config, wait=False)
        self.builder = self.images.builder(self.config)
        self.tree = site.observer()

    def settings(self):
        away = SmallCloud(self.site.folder / "away")  # is never started
        path = self.refusing.clouds_yaml()
        clouds = json.loads(path.read_text())
        clouds["clouds"]["away"] = json.loads(away.clouds_yaml().read_text())["clouds"]["vendor"]
        path.write_text(json.dumps(clouds))
        label = {"name": "broken", "cloud-image": "image", "flavor-name": "no-such-flavor"}
        plain = fake_provider("fake-plain", ["plain"])
        plain["pools"][0]["labels"].append(label)
        images = self.images.provider("fake-images", ["bad", "sent"], simulation={"upload-failure-rate": 1.0}, label="imaged")
        return {
            "images": [image("bad", env={"FAIL": 1}), image("sent")],
            "webapp": {"listen_address": "127.0.0.1", "port": self.port},
            "labels": [{"name": name, **({"min-ready": 2} if name == "stock" else {})} for name in self.LABELS + ["imaged"]],
            "tenant_resource_limits": [{"tenant-name": "acme", "max-servers": 1}],
            "providers": [
                plain, images, static_hosts(free_port()),
                fake_provider("fake-full", ["full"], simulation={"limits": {"instances": 1}}),
                fake_provider("fake-stock", ["stock"], **{"max-servers": 1}),
                fake_provider("fake-paused", ["paused"]),
                {**provider("refused", ["refused"]), "cloud": "vendor"},
                {**provider("away", ["away"]), "cloud": "away"}]}

    def plant(self):
        tool = self.site.tool
        tool("provider-pause", "fake-paused", "--reason", "the cloud is upgraded", config=self.config, check=True)
        self.tree.wait_request(self.tree.add_request(["elsewhere"]), "fulfilled")
        self.tree.wait_request(self.tree.add_request(["full"]), "fulfilled")
        self.tree.add_request(["full"])
        self.tree.wait_request(self.tree.add_request(["plain"], tenant_name="acme"), "fulfilled")
        self.tree.add_request(["plain"], tenant_name="acme")
        self.images.wait_build("sent")
        self.other.kill()
        self.config.write_text(self.config.read_text().replace("driver: static", "driver: sttic"))

    def of_api(self):
        status, _, body = get(self.port, "/api/v1/problems")
        return json.loads(body)["problems"] if status == 200 else []

    def of_status(self):
        done = self.site.tool("status", "--json", config=self.config)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["problems"]

    def stop(self):
        self.refusing.stop()


@pytest.fixture
def scene(site, monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    scene = Scene(site, monkeypatch)
    yield scene
    scene.stop()


# The id of each planted fault, what its sentence has, and what its remedy has.
EXPECTED = {
    "cloud away": ("provider-failing/away", r"cannot use provider away: .*Could(?:n't| not) connect to server", "clouds.yaml"),
    "wrong password": ("provider-failing/refused", r"cannot use provider refused: .*401", "credentials"),
    "quota full": ("quota-full/fake-full/main", r"Provider fake-full has no capacity .*1 of 1 instances", "Raise the quota"),
    "tenant's limit": ("tenant-limit/acme", r"Tenant acme has 1 of 1 instances: 1 request of it waits", "tenant-resource-limits"),
    "image fails": ("image-build-failed/bad", r"Image bad: its last build failed: .* ended with 1", "nodepool image-build bad"),
    "upload fails": ("image-upload-failed/sent/fake-images", r"Image sent: the upload to fake-images failed",
                     "nodepool image-upload-retry fake-images sent"),
    "label without flavor": ("label-unavailable/broken", r"Label broken cannot be launched: fake-plain main: .*no flavor for label broken",
                             "Correct the label"),
    "hosts that do not answer": (r"provider-notice/metal/", r"Provider metal: 1 of 1 hosts do not answer: 127\.0\.0\.1",
                                 "take it out of nodepool.yaml"),
    "rejected file": ("configuration-rejected/launcher/", r"keeps its previous configuration: .*sttic", "nodepool config-validate"),
    "stock short": ("short-stock/stock", r"Label stock has 1 of 2 min-ready nodes: fake-stock main: ", "lower min-ready"),
    "launcher dead": ("launcher-gone/fake-elsewhere", r"The launcher on \S+ is gone: nobody serves provider fake-elsewhere, which has 1 node",
                      "systemctl start nodepool-launcher"),
    "paused provider": ("provider-paused/fake-paused", r"Provider fake-paused is paused by .*the cloud is upgraded",
                        "nodepool provider-unpause fake-paused"),
}


def lacking(problems):
    """The planted faults that no problem names, in a sentence of one line with its remedy."""
    def names(problem, expected):
        id, text, remedy = expected
        return (problem["id"].startswith(id) and re.search(text, problem["text"]) and "\n" not in problem["text"]
                and remedy in problem["remedy"])
    return [fault for fault, expected in EXPECTED.items() if not any(names(problem, expected) for problem in problems)]


# PAGE-20, PAGE-22
def test_every_planted_fault_is_named_with_its_remedy(scene):
    scene.plant()
    for ask in (scene.of_api, scene.of_status):
        try:
            wait_for(lambda: not lacking(ask()), "every fault is named", SECONDS)
        except AssertionError:
            problems = ask()
            raise AssertionError(f"{lacking(problems)} are not named by\n{json.dumps(problems, indent=1)}") from None
    problems = scene.of_api()
    urgency = [(problem["severity"], -problem["delayed_requests"], problem["rank"]) for problem in problems]
    assert urgency == sorted(urgency), "bad before wait, what delays most first"
    delays = {problem["id"]: problem["delayed_requests"] for problem in problems}
    assert delays["quota-full/fake-full/main"] == delays["tenant-limit/acme"] == 1 and delays["provider-failing/away"] == 0
    screen = scene.site.tool("status", config=scene.config).stdout
    assert screen.startswith("Check first:\n- "), screen
    for problem in scene.of_status():
        assert f"- {problem['text'][:40]}" in screen and f"\n  {problem['remedy']}\n" in screen, problem
        assert f"ore: {problem['command']}\n" in screen, problem


LISTS = [["list"], ["status"], ["request-list"], ["label-list"], ["image-list"], ["dib-image-list"], ["image-status"],
         ["provider-list"], ["info", "elsewhere"], ["job-list"]]


# Configurations of which not all can be used, and the fault that is named; a cloud that is not known concerns its provider only.
BROKEN = {
    "no clouds.yaml": (lambda text: text.replace("driver: fake", "driver: openstack").replace("fake-cloud", "real"),
                       None),
    "a typo": (lambda text: text.replace("driver: fake", "driver: fkae").replace("fake-cloud", "real"), "fkae: unknown driver"),
    "no YAML": (lambda text: text + "diskimages: [\n", "line "),
    "a label without a name": (lambda text: text.replace("- name: small\nproviders", "- nme: small\nproviders"), "labels[0]"),
}


@pytest.mark.parametrize("change,fault", BROKEN.values(), ids=BROKEN)
def test_what_needs_only_zookeeper_does_without_the_rest(site, monkeypatch, change, fault):
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(site.folder / "none.yaml"))
    tree = site.tree()
    node = tree.add_node(provider="elsewhere")
    config = site.config()
    before = config.read_text()
    config.write_text(change(before))
    assert config.read_text() != before

    def done(*words):
        done = site.tool(*words, config=config)
        warnings = [line for line in done.stderr.splitlines() if "going on with what can be read" in line]
        assert done.returncode == 0 and len(warnings) == (fault is not None), done
        assert fault is None or fault in warnings[0], done
        return done.stdout

    for words in LISTS:
        done(*words)
    assert node in done("list")
    done("hold", node)
    assert tree.node(node)["state"] == "hold"
    done("delete", node)
    assert tree.node(node)["state"] == "deleting"


@pytest.mark.parametrize("change", [
    lambda text: text.replace("host:", "hst:"), lambda text: text.replace("zookeeper-servers:", "zookeeper-servers: ["),
    lambda text: '"zookeeper-servers"' + text.removeprefix("zookeeper-servers") + "diskimages: [\n",
    lambda text: text.replace("zookeeper-timeout: 4.0", "zookeeper-timeout: soon")])
def test_without_the_servers_nothing_is_done(site, change):
    config = site.config()
    before = config.read_text()
    config.write_text(change(before))
    assert config.read_text() != before
    done = site.tool("list", config=config)
    assert done.returncode == 1 and "going on" not in done.stderr and str(config) in done.stderr, done


def test_a_rejected_file_is_named_everywhere_until_it_is_good(site):
    port = free_port()
    config = site.config(webapp={"listen_address": "127.0.0.1", "port": port})
    site.launcher(config)
    good = config.read_text()
    config.write_text(good.replace("driver: fake", "driver: fkae").replace("fake-cloud", "cloud"))
    rejected = "nodepool_configuration_rejected"

    def since():
        found = re.search(rf'^{rejected}{{kind="launcher",hostname="[^"]*"}} (\S+)$', get(port, "/metrics")[2], re.M)
        return float(found[1]) if found else None

    wait_for(since, "the metric has the time", SECONDS)
    status, _, body = get(port, "/ready")
    assert status == 200 and body.startswith("OK; the changed configuration is rejected: ") and "fkae: unknown driver" in body
    record, = site.observer().components("launcher").values()
    assert record["configuration_rejected"]["since"] == pytest.approx(since(), abs=0.001)
    assert "fkae: unknown driver" in record["configuration_rejected"]["error"]
    config.write_text(good)
    wait_for(lambda: since() == 0, "the metric has the end", SECONDS)
    assert get(port, "/ready")[2] == "OK"
    assert "configuration_rejected" not in next(iter(site.observer().components("launcher").values()))
