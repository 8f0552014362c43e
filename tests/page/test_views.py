"""Every view in a browser (http.md PAGE-7 to PAGE-13)."""
import itertools

import pytest

from cluster import VIEWS
from services import wait_for

SIZES = {"desk": (1400, 900), "phone": (390, 844)}


def check(browser, cluster, view, screenshots, name):
    browser.open(cluster.view(view))
    wait_for(lambda: browser.count("main > *") and "Loading" not in browser.text(), "the view is shown", 60)
    assert browser.accessibility_faults() == []
    assert browser.faults() == []
    browser.picture(screenshots, name)


# PAGE-11
@pytest.mark.parametrize("count", [0, 20, 10_000])
def test_every_view(fresh_browser, cluster, screenshots, count):
    browser = fresh_browser
    if count:
        cluster.fill(count)
    for view in VIEWS:
        check(browser, cluster, view, screenshots, f"{view}-{count}")
        # Only the rows in view are in the document.
        assert browser.count("*") < 2500
    if count == 0:
        return
    browser.open(cluster.view("nodes"))
    browser.wait_text(f"{min(count + 1, 10_000):,}", ".tools")
    if count == 10_000:
        browser.wait_text("Only the first 10,000 nodes are shown; there are more.", "#banner")
    browser.open(cluster.view("overview"))
    for text in ("fake-cloud", "debian-12", "Requests waiting", "large"):
        browser.wait_text(text)


# PAGE-13
@pytest.mark.parametrize("size, scheme", list(itertools.product(SIZES, ["light", "dark"])))
def test_sizes_and_colours(fresh_browser, cluster, screenshots, size, scheme):
    browser = fresh_browser
    cluster.fill(20)
    browser.size(*SIZES[size])
    browser.colours(scheme)
    for view in VIEWS:
        check(browser, cluster, view, screenshots, f"{size}-{scheme}-{view}")
        width = SIZES[size][0]
        assert browser.script("return document.documentElement.scrollWidth") <= width, "the page is not wider than the screen"
    is_dark = browser.script("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
    assert is_dark == (scheme == "dark")
    node = sorted(cluster.tree.nodes())[0]
    browser.open(cluster.view("nodes", f"&id={node}"))
    browser.wait_text("host-0", ".details")
    assert browser.accessibility_faults() == []
    browser.picture(screenshots, f"{size}-{scheme}-details")


# PAGE-10
def test_the_url_is_the_state(fresh_browser, cluster):
    browser = fresh_browser
    ids = cluster.add_nodes(20)
    browser.open(cluster.view("nodes", "&state=hold&sort=-id"))
    browser.wait_text("4 of 20", ".tools")
    assert browser.texts(".rows .row [aria-colindex='1']") == sorted(
        (id for number, id in enumerate(ids) if number % 5 == 2), reverse=True)
    assert browser.find("[role=columnheader]").get_attribute("aria-sort") == "descending"
    browser.find(".chip[aria-pressed=false]").click()
    wait_for(lambda: "state=hold&" in browser.driver.current_url and "state=in-use" in browser.driver.current_url,
             "the chip writes the URL")
    browser.driver.back()
    browser.wait_text("4 of 20", ".tools")
    browser.press(*"host-7", selector="input[type=search]")
    wait_for(lambda: "q=host-7" in browser.driver.current_url, "the filter writes the URL")
    browser.wait_text("1 of 20", ".tools")
    browser.open(cluster.view("nodes", "&label=large"))
    browser.wait_text("7 of 20", ".tools")
    browser.open(cluster.view("bogus"))
    browser.wait_text("Providers")


# PAGE-12
def test_the_keyboard_is_enough(fresh_browser, cluster):
    browser = fresh_browser
    ids = sorted(cluster.add_nodes(300))
    browser.open(cluster.view("nodes"))
    browser.wait_text("300", ".tools")

    def active():
        return browser.script("return document.querySelector('.row.active')?.dataset.key")

    browser.press("ARROW_DOWN", "ARROW_DOWN", selector=".grid")
    assert active() == ids[1]
    browser.press("END", selector=".grid")
    assert active() == ids[-1] and browser.count(".rows .row") < 100
    assert browser.find(".grid").get_attribute("aria-activedescendant") == "row-299"
    assert browser.script("const row = document.querySelector('.row.active').getBoundingClientRect();"
                          "const grid = document.querySelector('.grid').getBoundingClientRect();"
                          "return row.top >= grid.top && row.bottom <= grid.bottom"), "the active row is in view"
    assert browser.faults() == []
    browser.press("PAGE_UP", "HOME", "ENTER", selector=".grid")
    browser.wait_text("host-0", ".details")
    assert f"id={ids[0]}" in browser.driver.current_url
    browser.press("ESCAPE", selector=".grid")
    wait_for(lambda: browser.count(".details") == 0, "the details are closed")
    browser.press("ENTER", selector="[role=columnheader] a")
    wait_for(lambda: "sort=-id" in browser.driver.current_url, "a header sorts")


# PAGE-8
def test_text_from_outside_is_text(fresh_browser, cluster):
    browser = fresh_browser
    evil = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
    node = cluster.tree.add_node(state="hold", provider=evil, type=[evil], comment=evil, hostname=evil, hold_job=evil,
                                 hold_expiration=0, user_data={evil: evil})
    cluster.tree.add_request([evil], requestor=evil, provider=evil)
    for view in VIEWS:
        browser.open(cluster.view(view, f"&id={node}"))
        wait_for(lambda: browser.count("main > *") and "Loading" not in browser.text(), "the view is shown")
        assert browser.driver.title.endswith("Nodepool") and browser.count("main img, main script") == 0
    browser.open(cluster.view("nodes", f"&id={node}"))
    browser.wait_text("<img src=x", ".details")
    assert browser.faults() == []
