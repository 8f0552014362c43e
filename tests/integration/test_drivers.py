"""Drivers that are shared objects: what cannot be loaded, fails or blocks harms nobody else (D-86)."""
import pytest

from nodepool_helpers import BIN, fake_provider
from services import wait_for

DRIVERS = BIN.parent / "test-drivers"

pytestmark = pytest.mark.skipif(not DRIVERS.is_dir(), reason="the test drivers are not built")


def wicked_provider(mischief, label, **settings):
    return {"name": f"wicked-{mischief}", "driver": "wicked", "mischief": mischief,
            "pools": [{"name": "main", "labels": [label]}], **settings}


def labels(*names):
    return [{"name": name} for name in names]


# D-86
def test_what_cannot_be_loaded_is_told_and_left_out(site):
    launcher = site.launcher(options=["--drivers-dir", DRIVERS / "broken"])
    tree = site.tree()
    tree.wait_request(tree.add_request(["small"]), "fulfilled")
    log = launcher.output()
    for file, words in {
        "wrong_version.so": 'was built for "version 0, Boost 1_0',
        "missing_symbol.so": "undefined symbol: nodepool::driver::MakeDriverOfTheFuture",
        "throwing.so": "the licence has run out",
        "no_driver.so": "is no Nodepool driver",
        "name_taken.so": "driver 'fake' of",
    }.items():
        lines = [line for line in log.splitlines() if f"broken/{file} is left out" in line]
        assert len(lines) == 1 and words in lines[0], (file, lines)
        assert " ERROR " in lines[0]


# D-86
def test_the_command_line_knows_loaded_drivers(site):
    config = site.config(labels=labels("w"), providers=[wicked_provider("none", "w")])
    with_driver = site.tool("--drivers-dir", str(DRIVERS / "good"), "config-validate", config=config)
    assert with_driver.returncode == 0, with_driver.stderr
    config = site.config(labels=labels("w"), providers=[{**wicked_provider("none", "w"), "nonsense-key": 1}])
    wrong_key = site.tool("--drivers-dir", str(DRIVERS / "good"), "config-validate", config=config)
    assert wrong_key.returncode == 1 and "nonsense-key" in wrong_key.stderr


# D-86
def test_drivers_that_fail_harm_only_their_own_providers(site):
    kinds = ["throw", "nonsense", "nan", "list-fails", "no-adapter", "load-throws", "load-null"]
    config = site.config(labels=labels("small", *kinds),
                         providers=[fake_provider(), *(wicked_provider(kind, kind) for kind in kinds)])
    launcher = site.launcher(config, wait=False, options=["--drivers-dir", DRIVERS / "good"])
    tree = site.tree()
    wait_for(lambda: len(tree.components("pool")) >= 5, "the pools of those that start are there")
    wicked = {kind: tree.add_request([kind]) for kind in kinds}
    good = [tree.add_request(["small"]) for _ in range(5)]
    for request in good:
        tree.wait_request(request, "fulfilled")
    tree.wait_request(wicked["nonsense"], "failed")
    log = launcher.output()
    for words in ("driver's answer makes no sense: interface_ip is not UTF-8 text",
                  "driver wicked makes no adapter", "provider wicked-load-throws is skipped: its driver wicked failed",
                  "provider wicked-load-null is skipped", "503 the list is not available", "a list that throws"):
        assert words in log, words
    assert launcher.is_running()
    tree.wait_request(tree.add_request(["small"]), "fulfilled")
    assert tree.request(wicked["list-fails"])["state"] == "requested", "its provider was never usable"


# D-86
def test_a_driver_that_blocks_the_loop_is_named(site):
    config = site.config(labels=labels("small", "block"),
                         providers=[fake_provider(), wicked_provider("block", "block", **{"block-seconds": 8})])
    launcher = site.launcher(config, options=["--drivers-dir", DRIVERS / "good"])
    tree = site.tree()
    blocked = tree.add_request(["block"])
    wait_for(lambda: "The loop has been blocked for" in launcher.output(), "the watchdog barks")
    lines = [line for line in launcher.output().splitlines() if "The loop has been blocked for" in line]
    assert f"by driver wicked ({DRIVERS / 'good/wicked.so'})" in lines[0], lines
    assert "wicked.so+0x" in launcher.output() or "wicked::" in launcher.output(), "the stack tells where"
    # The session (4 s) is over by then; both are served in the next one.
    tree.wait_request(tree.add_request(["small"]), "fulfilled", 60)
    wait_for(lambda: "The loop turns again" in launcher.output(), "the watchdog is calm again", 60)
    assert launcher.is_running()
    tree.zk.delete(f"/nodepool/requests/{blocked}")
