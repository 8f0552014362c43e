"""The page of a pool as large sites have it (http.md PAGE-15 to PAGE-18)."""
import itertools
import re
import time

import pytest

from cluster import VIEWS
from planted import LABELS, PROVIDERS
from services import wait_for

SIZES = {"wide": (1920, 1080), "desk": (1400, 900), "phone": (390, 844)}

# Texts that end beyond the right edge of the screen, but for those in boxes that scroll sideways.
CUT = """
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode;
  const parent = text.parentElement;
  if (!text.data.trim() || parent.closest('.hidden, .skip, option, svg, [hidden], details:not([open]) > :not(summary)')) continue;
  const range = document.createRange();
  range.selectNodeContents(text);
  const {right, width} = range.getBoundingClientRect();
  if (width > 0 && right > innerWidth + 1) found.push(text.data.slice(0, 60));
}
return found;
"""


@pytest.fixture
def browser(fresh_browser, planted):
    fresh_browser.open(planted.url)
    fresh_browser.script("sessionStorage.clear()")
    fresh_browser.faults()  # those of other tests
    return fresh_browser


def show(browser, planted, view="overview", query=""):
    url = planted.url if view == "overview" else f"{planted.url}?view={view}{query}"
    browser.open(url)
    wait_for(lambda: browser.count("main > *") and "Loading" not in browser.text(), "the view is shown", 60)
    if "&id=" in query:
        wait_for(lambda: browser.count(".details dt"), "the details are shown")


def facts(browser) -> dict[str, str]:
    """The facts of the details, by their titles, in their order."""
    return dict(zip(browser.texts(".details .facts > dt"), browser.texts(".details .facts > dd")))


def node_in(planted, state: str, **wanted) -> dict:
    return next(node for node in planted.entries("nodes") if node["state"] == state
                and all(node[key] == value for key, value in wanted.items()))


def leased(planted) -> dict:
    return next(node for node in planted.entries("nodes") if isinstance(node["user_data"], dict) and "lease" in node["user_data"])


# PAGE-15
def test_the_first_screen_says_what_is_bad(browser, planted, screenshots):
    show(browser, planted)
    browser.wait_text("vexxhost-ca-ymq-1", "#problems")
    browser.picture(screenshots, "planted-first-screen")
    boxes = browser.script("return [...document.querySelectorAll('#problems, .provider')].map((each) => each.getBoundingClientRect().bottom)")
    assert len(boxes) == 1 + len(PROVIDERS) and max(boxes) <= 900, boxes
    assert browser.texts(".provider h3 a") == list(PROVIDERS)
    widths = browser.script("return [...document.querySelectorAll('.provider .meter')].map((each) => each.getBoundingClientRect().width)")
    assert len(widths) >= 8 and min(widths) > 120, widths
    assert "paused by ada@bastion: the site moves" in browser.text("[aria-label='osuosl-regionone-arm64']")


# PAGE-15
def test_waiting_requests_are_grouped_by_the_reason(browser, planted):
    show(browser, planted)
    waiting = [each for each in planted.entries("requests") if each["state"] in ("requested", "pending") and each["requestor"] != "NodePool:min-ready"]
    assert len(waiting) == 13
    lines = browser.texts("#waiting .reasons li")
    assert 1 < len(lines) <= 5, lines
    counts = [int(re.match(r"[\d,]+", line)[0]) for line in lines]
    assert counts == sorted(counts, reverse=True)
    text = browser.text("#waiting")
    assert "tenant openstack has 8 of max-servers 8" in text and "PoolWorker" not in text
    browser.find("#waiting .reasons a").click()
    browser.wait_text(f"{counts[0]} of", ".tools")
    assert len(browser.texts(".rows .row")) == counts[0]


# PAGE-15
def test_labels_and_images_are_complete(browser, planted):
    show(browser, planted)
    assert set(browser.texts("#labels tbody th")) == set(LABELS)
    images = dict(zip(browser.texts("#images tbody th"), browser.texts("#images tbody tr")))
    assert sorted(images) == ["debian-bookworm", "openeuler-24-03-lts", "ubuntu-noble"]
    assert "no build is ready" in images["openeuler-24-03-lts"]
    assert browser.script("return document.querySelector('#images table').scrollWidth <= document.querySelector('#images').clientWidth")


# PAGE-13, PAGE-16
@pytest.mark.parametrize("size, scheme", list(itertools.product(SIZES, ["light", "dark"])))
def test_pictures_of_every_view(browser, planted, screenshots, size, scheme):
    width, height = SIZES[size]
    browser.size(width, height)
    browser.colours(scheme)
    details = {"held": ("nodes", node_in(planted, "hold")["id"]), "leased": ("nodes", leased(planted)["id"]),
               "provider": ("providers", "ovh-gra1"), "failing": ("providers", "vexxhost-ca-ymq-1"),
               "image": ("images", "openeuler-24-03-lts"), "request": ("requests", planted.entries("requests")[0]["id"]),
               "job": ("jobs", planted.entries("jobs")[0]["id"])}
    shown = {**{view: (view, "") for view in VIEWS}, **{name: (view, f"&id={key}") for name, (view, key) in details.items()}}
    for name, (view, query) in shown.items():
        show(browser, planted, view, query)
        browser.picture(screenshots, f"planted-{size}-{scheme}-{name}")
        assert browser.script("return document.documentElement.scrollWidth") <= width, f"{name} is wider than the screen"
        if size == "phone" or view == "overview":
            assert browser.script(CUT) == [], name
        if size == "phone":
            low = browser.script("return [...document.querySelectorAll('.rows .row')].filter((row) => row.scrollHeight > row.clientHeight + 1).map((row) => row.textContent)")
            assert low == [], f"{name}: rows are cut"
        # Neither the width nor the colours are new in the other combinations.
        if (size, scheme) in (("desk", "light"), ("desk", "dark"), ("phone", "light")):
            assert browser.accessibility_faults() == [], name
        assert browser.faults() == [], name
    show(browser, planted)
    browser.size(width, browser.script("return document.querySelector('main').scrollHeight") + 150)
    browser.picture(screenshots, f"planted-{size}-{scheme}-overview-whole")


# PAGE-17
def test_values_under_the_pointer(browser, planted, screenshots):
    show(browser, planted)
    wait_for(lambda: browser.count("svg[data-chart='Nodes'] .fill"), "there are samples", 60)
    chart = browser.find("svg[data-chart='Nodes']")
    browser.script("arguments[0].scrollIntoView({block: 'center'})", chart)
    box = browser.script("return arguments[0].getBoundingClientRect().toJSON()", chart)
    browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": box["x"] + box["width"] * 0.9, "y": box["y"] + 40})
    wait_for(lambda: browser.script("return !document.querySelector('.tooltip').hidden"), "the values are shown")
    browser.picture(screenshots, "planted-pointer")
    counts = planted.ask(0, "samples?since=60")["hour"][-1]["nodes"]
    found = dict(zip(browser.texts(".tooltip li span"), browser.texts(".tooltip li b")))
    assert int(found["in-use"]) == counts["in-use"] and {"ready", "hold", "limit"} <= set(found), found
    colour = "return getComputedStyle(document.querySelector(arguments[0])).color"
    assert browser.script(colour, "#charts .legend .good") == browser.script(colour, ".badge.good"), "charts have the badges' colours"
    browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 5, "y": 5})
    wait_for(lambda: browser.script("return document.querySelector('.tooltip').hidden"), "the values are gone")
    assert not re.search(r"\d [AP]M", browser.text("#charts")), "24 hours"


# PAGE-17
def test_each_provider_has_a_chart_with_its_limit(browser, planted):
    show(browser, planted)
    wait_for(lambda: browser.count("svg[data-chart='provider ovh-gra1'] .limit"), "there are samples by provider", 60)
    assert "limit 40" in browser.text("figure:has(svg[data-chart='provider ovh-gra1'])")


# PAGE-14
def test_silence_is_noticed(browser, planted):
    show(browser, planted)
    launcher = planted.launchers[0]
    launcher.pause()
    try:
        paused = time.monotonic()
        wait_for(lambda: "silent for 25 s" in browser.text("#banner"), "the banner says so", 60)
        assert time.monotonic() - paused < 40
    finally:
        launcher.resume()
    wait_for(lambda: browser.text("#banner") == "", "the banner is gone", 60)


# PAGE-18
def test_details_begin_with_what_matters(browser, planted):
    node = node_in(planted, "hold")
    show(browser, planted, "nodes", f"&id={node['id']}")
    found = facts(browser)
    assert list(found)[:3] == ["State", "Why", "Held until"]
    assert found["Why"].startswith("tempest-full-py3 fails with a time-out") and "(in 2" in found["Held until"]
    assert found["Log in"].startswith("ssh ") and browser.count(".details button[data-copy]") >= 2
    assert not browser.script("return document.querySelector('.details .fields').open")
    assert "{" not in browser.text(".details"), "no JSON"
    show(browser, planted, "providers", "&id=vexxhost-ca-ymq-1")
    assert list(facts(browser))[:2] == ["State", "What is wrong"]
    show(browser, planted, "images", "&id=openeuler-24-03-lts")
    assert facts(browser)["In use is"] == "no build is ready"
    change = next(each for each in planted.entries("changes") if each["kind"] == "node")
    show(browser, planted, "events", f"&id={change['id']}")
    assert list(facts(browser)) == ["What", "When", "About"] and browser.count(".details dd a") == 1


# PAGE-12, PAGE-16
def test_the_phone_reaches_everything(browser, planted):
    browser.size(*SIZES["phone"])
    node = node_in(planted, "in-use", labels=["debian-bookworm-kubernetes-control-plane-large"])
    show(browser, planted, "nodes", f"&id={node['id']}")
    links = browser.script("return [...document.querySelectorAll('nav a')].map((each) => each.getBoundingClientRect().right)")
    assert len(links) == len(VIEWS) and max(links) <= 390
    close = browser.find(".details .close")
    browser.script("document.querySelector('.details').scrollTop = 10000")
    box = browser.script("return arguments[0].getBoundingClientRect().toJSON()", close)
    assert box["right"] <= 390 and 0 <= box["top"] <= 800, box
    close.click()
    wait_for(lambda: browser.count(".details") == 0, "the details are closed")


class Buttons:
    """What a person does with the page's buttons."""

    def __init__(self, browser):
        self.browser = browser

    def names(self, selector=".details .actions button") -> list[str]:
        return self.browser.texts(selector)

    def click(self, text: str, selector: str = ".actions button"):
        wait_for(lambda: self.browser.script(
            "const found = [...document.querySelectorAll(arguments[0])].find((each) => each.textContent === arguments[1]);"
            "found?.click(); return Boolean(found)", selector, text), f"there is a button {text}", 10)

    def agree(self, **fields) -> str:
        for name, value in fields.items():
            self.browser.find(f"#ask-{name}").send_keys(value)
        self.browser.find("dialog [data-do]").click()
        said = wait_for(lambda: (found := self.browser.text("dialog .result")) not in ("", "…") and found, "there is an answer", 20)
        self.browser.find("dialog .actions button:last-child").click()
        return said

    def enter(self, token: str) -> str:
        self.click("Enter a token to change it…")
        return self.agree(token=token)


@pytest.fixture
def buttons(browser):
    return Buttons(browser)


# ACT-14
def test_a_token_that_may_not_change_anything(browser, planted, buttons, screenshots):
    show(browser, planted, "nodes", f"&id={node_in(planted, 'hold')['id']}")
    assert buttons.enter(planted.tokens["ci"]) == "ci may not change anything here: it lacks the scope operate."
    assert buttons.names() == ["Forget the token"]
    assert "ci may not change anything here" in browser.text(".details")
    browser.picture(screenshots, "planted-scope")
    assert browser.accessibility_faults() == [] and browser.faults() == []


# ACT-14
def test_who_uses_a_node_and_the_end_of_a_lease(browser, planted, buttons, screenshots):
    used = node_in(planted, "in-use", labels=["ubuntu-noble-arm64-16GB"])
    show(browser, planted, "nodes", f"&id={used['id']}")
    assert facts(browser)["Used by"].startswith("zuul.opendev.org for request 200-")
    buttons.enter(planted.tokens["ops"])
    buttons.click("Delete…")
    assert "It is in use by zuul.opendev.org for request 200-" in browser.text("dialog")
    browser.picture(screenshots, "planted-in-use")
    browser.press("ESCAPE", selector="dialog button:last-child")
    lease = planted.lease("rockylinux-9")
    node = planted.ask(0, f"requests/{lease}", token="ci")["nodes"][0]["id"]
    show(browser, planted, "nodes", f"&id={node}")
    browser.wait_text("(in ", ".details")
    assert facts(browser)["Used by"] == f"ci, lease {lease}, for gitlab-runner-7"
    assert facts(browser)["Lease ends"].endswith("unless it is renewed")
    browser.picture(screenshots, "planted-lease")
    buttons.click("End the lease…")
    assert "All nodes of the lease are taken from ci at once" in browser.text("dialog")
    assert buttons.agree() == f"Done: node {node}."
    wait_for(lambda: planted.ask(0, f"requests/{lease}", token="ci") is None, "the lease is gone")


# ACT-14
def test_rules_about_jobs(browser, planted, buttons, screenshots):
    show(browser, planted, "jobs")
    buttons.enter(planted.tokens["ops"])
    buttons.click("Hold nodes of a job…")
    browser.picture(screenshots, "planted-new-rule")
    assert re.fullmatch(r"Done: rule \d{10} is made\.", buttons.agree(name="nova-grenade", hold_on_failure="1"))
    browser.wait_text("nova-grenade", ".rows")
    buttons.click("Hold nodes of a job…")
    assert "is about job nova-grenade already" in buttons.agree(name="nova-grenade", hold_on_failure="1")
    rule = next(each["id"] for each in planted.entries("jobs") if each["name"] == "nova-grenade")
    show(browser, planted, "jobs", f"&id={rule}")
    buttons.click("Delete…")
    assert buttons.agree() == f"Done: rule {rule}."
    wait_for(lambda: all(each["name"] != "nova-grenade" for each in planted.entries("jobs")), "the rule is gone")
