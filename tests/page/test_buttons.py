"""The page's buttons (http-actions.md ACT-14)."""
import json
import time

import pytest

from cluster import Cluster
from lease_client import LeaseSite
from nodepool_helpers import fake_provider
from prefix_proxy import PrefixProxy
from services import wait_for

EVIL = "<img src=x onerror=document.title='owned'> & \"quotes\""


@pytest.fixture
def leases(site):
    provider = fake_provider(labels=("small",))
    provider["diskimages"] = [{"name": "debian"}]
    leases = LeaseSite(site, providers=[provider], labels=[{"name": "small"}],
                       diskimages=[{"name": "debian", "elements": ["vm"], "dib-cmd": "/bin/false"}])
    leases.token("ops", "--scope", "operate")
    leases.token("ci", "--scope", "request")
    leases.seconds_between_sweeps = 600
    leases.start()
    cluster = Cluster(site, next(iter(leases.launchers)))
    leases.cluster = cluster
    now = time.time()
    base = "/nodepool/images/debian/builds/b1"
    cluster.tree.zk.create(base, makepath=True, value=json.dumps(
        {"state": "ready", "state_time": now - 4000, "builder": "nb01", "formats": "qcow2"}).encode())
    for number, state in (("0000000001", "failed"), ("0000000002", "failed")):
        cluster.tree.zk.create(f"{base}/providers/fake-cloud/images/{number}", makepath=True, value=json.dumps(
            {"state": state, "state_time": now - 4000, "external_id": None}).encode())
    return leases


@pytest.fixture
def page(leases, fresh_browser):
    return Page(leases, fresh_browser)


class Page:
    def __init__(self, leases, browser):
        self.leases, self.browser = leases, browser
        self.tree = leases.cluster.tree
        self.url = leases.cluster.url
        browser.open(self.url)
        browser.script("sessionStorage.clear()")
        browser.faults()  # those of other tests

    def show(self, view: str, entry: str):
        self.browser.open(f"{self.url}?view={view}&id={entry}")
        wait_for(lambda: self.browser.text(".details h2").endswith(entry), f"the details of {entry} are shown")

    def buttons(self) -> list[str]:
        return self.browser.texts(".details .actions button")

    def click(self, text: str, selector: str = ".details .actions button"):
        wait_for(lambda: self.browser.script(
            "const found = [...document.querySelectorAll(arguments[0])].find((each) => each.textContent === arguments[1]);"
            "found?.click(); return Boolean(found)", selector, text), f"there is a button {text}: {self.buttons()}", 10)

    def fill(self, name: str, value: str):
        self.browser.find(f"#ask-{name}").send_keys(value)

    def agree(self) -> str:
        """What the dialog says once it is answered."""
        self.click(self.browser.text("dialog [data-do]"), "dialog [data-do]")
        return wait_for(lambda: (said := self.browser.text("dialog .result")) not in ("", "…") and said, "there is an answer", 20)

    def close(self):
        self.browser.find("dialog .actions button:last-child").click()
        wait_for(lambda: self.browser.count("dialog") == 0, "the dialog is closed")

    def do(self, title: str, **fields) -> str:
        self.click(f"{title}…")
        assert self.browser.text("dialog h2").startswith(title)
        for name, value in fields.items():
            if value is True:
                self.browser.find(f"#ask-{name}").click()
            else:
                self.fill(name, value)
        said = self.agree()
        self.close()
        return said

    def enter_token(self, text: str) -> str:
        self.click("Enter a token to change it…")
        self.fill("token", text)
        said = self.agree()
        self.close()
        return said


# ACT-14
def test_a_token_is_asked_for_and_stays_in_the_tab(page, screenshots):
    browser, node = page.browser, page.tree.add_node(state="ready", provider="elsewhere", pool="main", type=["small"])
    page.show("nodes", node)
    assert page.buttons() == ["Enter a token to change it…"]
    page.click("Enter a token to change it…")
    browser.picture(screenshots, "actions-token")
    assert browser.accessibility_faults() == []
    page.fill("token", "ops.wrong")
    assert page.agree() == "The token is wrong."
    browser.picture(screenshots, "actions-token-wrong")
    page.close()
    assert page.buttons() == ["Enter a token to change it…"]
    wait_for(lambda: "The token is good" in page.enter_token(page.leases.texts["ops"]), "the pause is over", 10)
    assert page.buttons() == ["Hold…", "Delete…", "Forget the token"]
    secret = page.leases.texts["ops"].split(".")[1]
    assert secret not in browser.driver.current_url and secret not in browser.script("return document.documentElement.outerHTML")
    assert browser.script("return [localStorage.length, document.cookie]") == [0, ""]
    page.show("nodes", node)
    assert "Hold…" in page.buttons(), "it is known after a reload"
    browser.picture(screenshots, "actions-node")
    browser.driver.switch_to.new_window("tab")
    try:
        page.show("nodes", node)
        assert page.buttons() == ["Enter a token to change it…"], "another tab does not know it"
    finally:
        browser.driver.close()
        browser.driver.switch_to.window(browser.driver.window_handles[0])
    page.click("Forget the token")
    wait_for(lambda: page.buttons() == ["Enter a token to change it…"], "it is forgotten")
    assert page.browser.script("return sessionStorage.length") == 0


# ACT-13, ACT-14
def test_nodes(page, screenshots):
    browser, tree = page.browser, page.tree
    node = tree.add_node(state="ready", provider="elsewhere", pool="main", type=["small"])
    page.show("nodes", node)
    page.enter_token(page.leases.texts["ops"])
    page.click("Hold…")
    page.fill("reason", EVIL)
    page.fill("seconds", "2")
    browser.picture(screenshots, "actions-hold")
    assert browser.accessibility_faults() == []
    assert page.agree() == f"Done: node {node} is hold."
    browser.picture(screenshots, "actions-held")
    page.close()
    record = tree.node(node)
    assert (record["state"], record["comment"], record["hold_expiration"]) == ("hold", EVIL, 7200)
    browser.wait_text(EVIL, ".details")
    assert browser.count("main img") == 0 and browser.script("return document.title") != "owned"
    assert page.buttons() == ["Hold…", "Give back…", "Delete…", "Forget the token"]
    assert page.do("Give back") == f"Done: node {node} is used."
    lock = tree.lock_node(node)
    page.click("Delete…")
    assert "the node is in use" in page.agree()
    browser.picture(screenshots, "actions-refused")
    lock.release()
    assert page.agree() and tree.node(node)["state"] == "deleting", "it may be tried again in the same dialog"
    page.close()
    page.click("Hold…")
    page.browser.press("ESCAPE", selector="#ask-reason")
    wait_for(lambda: browser.count("dialog") == 0, "Escape closes the dialog alone")
    assert browser.count(".details") == 1 and tree.node(node)["state"] == "deleting", "nothing is done without a confirmation"
    assert [fault for fault in browser.faults() if "409 (Conflict)" not in fault] == []


# ACT-14
def test_images_builds_and_uploads(page, screenshots):
    browser, tree = page.browser, page.tree
    page.show("images", "debian")
    page.enter_token(page.leases.texts["ops"])
    base = "/nodepool/images/debian"
    assert page.buttons() == ["Build now…", "Pause…", "Forget the token"]
    assert page.do("Pause") == "Done: image debian."
    assert tree.zk.exists(f"{base}/pause")
    wait_for(lambda: "Build again…" in page.buttons(), "the page knows it")
    browser.picture(screenshots, "actions-image")
    page.do("Build again")
    assert not tree.zk.exists(f"{base}/pause")
    page.do("Build now")
    assert tree.zk.exists(f"{base}/request-build")
    wait_for(lambda: "Build now…" not in page.buttons(), "the page knows it")
    page.show("images", "debian/b1/fake-cloud/0000000001")
    page.do("Try again now")
    assert tree.zk.exists(f"{base}/builds/b1/providers/fake-cloud").version == 1
    browser.picture(screenshots, "actions-upload")
    page.do("Delete")
    assert tree.record(f"{base}/builds/b1/providers/fake-cloud/images/0000000001")["state"] == "deleting"
    page.show("images", "debian/b1")
    browser.picture(screenshots, "actions-build")
    assert page.do("Delete") == "Done: build debian/b1 is deleting."
    assert tree.record(f"{base}/builds/b1")["state"] == "deleting"
    assert browser.faults() == []


# ACT-14, ACT-7
def test_providers(page, screenshots):
    browser, tree = page.browser, page.tree
    page.show("providers", "fake-cloud")
    page.enter_token(page.leases.texts["ops"])
    assert page.do("Pause", reason=EVIL, drain=True) == "Done: provider fake-cloud is drained."
    record = tree.record("/nodepool/paused-providers/fake-cloud")
    assert (record["reason"], record["drain"], record["paused_by"]) == (EVIL, True, "ops")
    browser.wait_text(f"drained by ops: {EVIL}", ".details")
    wait_for(lambda: page.buttons() == ["Use again…", "Forget the token"], "the page knows it")
    browser.picture(screenshots, "actions-provider")
    browser.open(page.url)
    browser.wait_text(f"drained by ops: {EVIL}", "#providers")
    assert browser.accessibility_faults() == []
    browser.picture(screenshots, "actions-overview")
    page.show("providers", "fake-cloud")
    assert page.do("Use again") == "Done: provider fake-cloud is up."
    assert tree.children("/nodepool/paused-providers") == []
    wait_for(lambda: page.buttons() == ["Pause…", "Forget the token"], "the page knows it")
    assert browser.count("main img") == 0 and browser.faults() == []


# ACT-14: also where the scope is taken away from a token that a tab knows
def test_a_token_that_allows_less(page, screenshots):
    page.show("providers", "fake-cloud")
    assert page.enter_token(page.leases.texts["ci"]) == "ci may not change anything here: it lacks the scope operate."
    assert page.buttons() == ["Forget the token"]
    page.browser.picture(screenshots, "actions-scope")
    page.browser.script("sessionStorage.setItem('nodepool-token-scopes', 'operate')")
    page.show("providers", "fake-cloud")
    page.click("Pause…")
    assert page.agree() == "The token ci lacks the scope operate."
    page.close()
    assert page.tree.children("/nodepool/paused-providers") == []


# ACT-14; with the headers that docs/operator/page.md has for proxies, and without
@pytest.mark.parametrize("headers, said", [({}, "Done: provider fake-cloud is paused."),
                                           ({"Host": "localhost", "Origin": ""}, "Done: provider fake-cloud is paused."),
                                           ({"Host": "localhost"}, "Web pages of others may change nothing here.")])
def test_behind_a_proxy(page, headers, said):
    with PrefixProxy("/nodepool", page.leases.cluster.port, headers) as proxy:
        page.url = f"http://127.0.0.1:{proxy.port}/nodepool/"
        page.show("providers", "fake-cloud")
        page.enter_token(page.leases.texts["ops"])
        assert page.do("Pause") == said
    assert bool(page.tree.children("/nodepool/paused-providers")) == said.startswith("Done")


# ACT-14
def test_narrow_and_dark(page, screenshots):
    browser, node = page.browser, page.tree.add_node(state="hold", provider="elsewhere", pool="main", type=["small"])
    browser.size(390, 844)
    browser.colours("dark")
    page.show("nodes", node)
    page.enter_token(page.leases.texts["ops"])
    browser.picture(screenshots, "actions-phone")
    page.click("Hold…")
    browser.picture(screenshots, "actions-phone-dialog")
    assert browser.accessibility_faults() == []
    assert browser.script("return document.documentElement.scrollWidth") <= 390
