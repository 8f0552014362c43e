"""The page's view of runners, with records as nodepool-runners writes them (runners.md 10)."""
import itertools
import json
import time

import pytest
from services import wait_for

from test_views import SIZES

EVIL = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>\u202e\x1b[2J"


@pytest.fixture
def jobs(fresh_browser, cluster):
    """A set in fault, one that listens, a job that runs, one that waits for its node, waiting and lost ones."""
    create, now = cluster.tree.zk.create, time.time()

    def write(path, **record):
        create(f"/nodepool/runners/{path}", json.dumps(record).encode(), makepath=True)

    def job(number, repository="octo/app", name="build", url=None):
        return {"request": number, "repository": repository, "workflow": ".github/workflows/ci.yaml", "job": name,
                "run_url": url or f"https://github.com/{repository}/actions/runs/{number}", "queued_time": now - 90, "assigned_time": now - 80}

    node = cluster.tree.add_node(state="in-use", provider="elsewhere", type=["small"], interface_ip="192.0.2.7", user_data={
        "lease": "0" * 32, "client": "runners:octo", "runner": {"name": "np0a1b2c-np-small-00000001", "set": "octo/np-small",
                                                               "repository": "octo/app", "workflow": "ci.yaml", "job": "build",
                                                               "run_url": "https://github.com/octo/app/actions/runs/1"}})
    hostile = cluster.tree.add_node(state="in-use", provider="elsewhere", type=["small"], user_data={
        "lease": "1" * 32, "client": "runners:octo", "runner": {"name": EVIL, "set": EVIL, "repository": EVIL, "workflow": EVIL, "job": EVIL,
                                                               "run_url": "javascript:document.title='hacked'"}})
    run = {"service": "octo", "set": "np-small", "lease": "0" * 32, "created_time": now - 79}
    write("runs/00000001", **run, **job(1), state="job", runner_name="np0a1b2c-np-small-00000001", runner_id=5, node=node,
          node_time=now - 78, online_time=now - 76, job_time=now - 75)
    write("runs/00000002", **run, **job(2, EVIL, EVIL, "javascript:document.title='hacked'"), state="job",
          runner_name="np0a1b2c-np-small-00000002", node=hostile)
    write("runs/00000003", **run, state="wanted", runner_name="np0a1b2c-np-small-00000003")
    write("sets/octo/np-small", scale_set=4, state="listening", since=now - 600, waiting=2, why="max-runners of the set, 2, is reached",
          max_runners=2, url="https://github.com/octo", jobs=[job(4), job(5, EVIL, EVIL)],
          lost=[{**job(6), "node": "0000000099", "reason": "its node is gone", "time": now - 30}])
    write("sets/octo/np-large", scale_set=0, state="fault", since=now - 60, fault=f"they get no jobs: status 401 {EVIL}",
          remedy="Correct the credentials", max_runners=2, url="https://github.com/octo", waiting=0)
    return {"browser": fresh_browser, "cluster": cluster, "node": node, "hostile": hostile}


def show(jobs, view="runners", query=""):
    browser = jobs["browser"]
    browser.open(jobs["cluster"].view(view, query))
    wait_for(lambda: browser.count("main > *") and "Loading" not in browser.text(), "the view is shown", 60)
    return browser


def is_harmless(browser) -> bool:
    return (browser.driver.title.endswith("Nodepool") and browser.count("main img, main script") == 0
            and browser.count("a[href^='javascript']") == 0 and browser.faults() == [])


# RUN-73
def test_sets_and_their_jobs(jobs, screenshots):
    browser = show(jobs)
    for text in ("octo/np-small", "octo/np-large", "octo/app", "max-runners of the set, 2, is reached", "status 401", "its node is gone"):
        browser.wait_text(text)
    assert browser.accessibility_faults() == [] and is_harmless(browser)
    browser.picture(screenshots, "runners")


# RUN-73: what a job is called cannot become a part of the page.
def test_hostile_names_are_text(jobs):
    for view, query in (("runners", ""), ("runners", "&id=octo/np-small/00000002"), ("runners", "&id=octo/np-large"), ("nodes", ""),
                        ("nodes", f"&id={jobs['hostile']}"), ("overview", ""), ("events", "")):
        browser = show(jobs, view, query)
        assert is_harmless(browser), (view, query)
    browser = show(jobs, "nodes", f"&id={jobs['hostile']}")
    browser.wait_text("<img src=x", ".details")
    assert is_harmless(browser)


# RUN-73, RUN-74
def test_a_job_has_its_time_line_and_its_address(jobs):
    browser = show(jobs, query="&id=octo/np-small/00000001")
    browser.wait_text("first step", ".details")
    text = browser.text(".details")
    assert all(step in text for step in ("queued", "assigned", "node requested", "has its node", "runner online"))
    assert browser.count(".details a[href='https://github.com/octo/app/actions/runs/1'][rel=noreferrer]") == 1
    browser = show(jobs, "nodes", f"&id={jobs['node']}")
    browser.wait_text("octo/app", ".details")
    assert browser.count(".details a[href='https://github.com/octo/app/actions/runs/1']") == 1


# RUN-73: what does not work is among the first things that the page says.
def test_a_fault_is_on_the_first_screen(jobs):
    browser = show(jobs, "overview")
    browser.wait_text("The runners octo/np-large do not work", "#problems")
    browser.wait_text("was lost on node 0000000099", "#problems")


# RUN-73: changes arrive by themselves.
def test_changes_are_shown_by_themselves(jobs):
    browser = show(jobs)
    jobs["cluster"].tree.zk.delete("/nodepool/runners/runs/00000003")
    record = {"state": "listening", "waiting": 0, "max_runners": 7, "url": "https://github.com/octo"}
    jobs["cluster"].tree.zk.create("/nodepool/runners/sets/octo/np-new", json.dumps(record).encode())
    browser.wait_text("octo/np-new")


# PAGE-13
@pytest.mark.parametrize("size, scheme", list(itertools.product(SIZES, ["light", "dark"])))
def test_runners_in_sizes_and_colours(jobs, screenshots, size, scheme):
    jobs["browser"].size(*SIZES[size])
    jobs["browser"].colours(scheme)
    for query in ("", "&id=octo/np-small", "&id=octo/np-small/00000001"):
        browser = show(jobs, query=query)
        assert browser.script("return document.documentElement.scrollWidth") <= SIZES[size][0]
        assert browser.accessibility_faults() == [] and is_harmless(browser)
        browser.picture(screenshots, f"runners-{size}-{scheme}{query[-1:]}")
